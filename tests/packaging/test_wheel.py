"""The wheel alone, in an empty environment, does what the README shows and brings no more than it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "everthread" / "http" / "static" / "index.html"
UV: tuple[str | Path, ...] = ("sh", ROOT / "tools" / "uv.sh")
NOT_FOR_EVERYBODY = ["typer", "rich", "prometheus_client", "fastapi", "langchain_core", "langgraph", "onnxruntime"]
FIRST_PROGRAM = re.compile(r"^```python\n(?P<program>.*?)^```\n\n```text\n(?P<output>.*?)^```$", re.M | re.S)


def run(*command: str | Path, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` builds: the sdist, and the wheel from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(*UV, "build", "--quiet", "--no-build-isolation", "--python", sys.executable, "--out-dir", folder, folder=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (built,) = dist.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel and what it depends on, in the versions of the lock."""
    folder = tmp_path_factory.mktemp("empty")
    run(*UV, "venv", "--quiet", folder / "venv", folder=ROOT)
    interpreter = folder / "venv" / "bin" / "python"
    pins = folder / "pins.txt"
    lines = (ROOT / "requirements" / "run.txt").read_text().splitlines()
    pins.write_text("\n".join(re.sub(r" \\$", "", line) for line in lines if re.match(r"[A-Za-z0-9].*==", line)))
    run(*UV, "pip", "install", "--quiet", "--python", interpreter, "--constraint", pins, wheel, folder=ROOT)
    return interpreter


def test_the_wheel_alone_runs_the_readmes_first_program(python: Path, tmp_path: Path) -> None:
    shown = FIRST_PROGRAM.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert shown is not None
    assert run(python, "-c", shown["program"], folder=tmp_path) == shown["output"]


def test_the_wheel_brings_nothing_that_only_extras_need(python: Path, tmp_path: Path) -> None:
    look = f"import importlib.util as u; print([name for name in {NOT_FOR_EVERYBODY} if u.find_spec(name)])"
    assert run(python, "-c", look, folder=tmp_path).strip() == "[]"


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not built: make web")
def test_the_wheel_holds_the_page(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "everthread/http/static/index.html" in names
    assert "everthread/py.typed" in names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_sdist_holds_what_its_makefile_needs(dist: Path) -> None:
    (built,) = dist.glob("*.tar.gz")
    with tarfile.open(built) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    needed = ["Makefile", "tools/uv.sh", "requirements/dev.txt", "web/package-lock.json", "benchmarks/__main__.py"]
    assert [name for name in needed if name not in names] == []
    assert not [name for name in names if "node_modules" in name or name.startswith((".venv", ".cache"))]
