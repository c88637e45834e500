"""LangGraph's own tests of its graphs, with our saver as their checkpointer. They are fetched, never copied: the source
distribution of the version that is installed, from the index that packages come from; without one this skips visibly.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("syrupy", reason="needs syrupy and pytest-mock")

ROOT: Final = Path(__file__).parents[3]
SUITES: Final = (
    "test_pregel.py",
    "test_pregel_async.py",
    "test_large_cases.py",
    "test_large_cases_async.py",
    "test_time_travel.py",
    "test_time_travel_async.py",
    "test_subgraph_persistence.py",
    "test_subgraph_persistence_async.py",
    "test_interruption.py",
    "test_delta_channel_fork.py",
    "test_delta_channel_update_state.py",
    "test_delta_channel_exit_mode.py",
)
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py::\S+)", re.MULTILINE)

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=os.environ | environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their tests, with our fixtures; beside no package that would hide the one that is installed."""
    folder = tmp_path_factory.mktemp("langgraph")
    tools = str(folder / "tools")
    run("sh", "tools/uv.sh", "pip", "install", "--quiet", "--target", tools, "pip", "hatchling")
    wanted = ("--no-deps", "--no-binary", ":all:", "--no-build-isolation", f"langgraph=={version('langgraph')}")
    got = run(sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), *wanted, PYTHONPATH=tools)
    archives = list(folder.glob("langgraph-*.tar.gz"))
    if not archives:
        pytest.skip(f"the source of langgraph cannot be fetched here: {got.stderr.strip()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.glob("langgraph-*") if path.is_dir())
    shutil.copyfile(Path(__file__).with_name("their_conftest.py"), unpacked / "tests" / "conftest.py")
    shutil.rmtree(unpacked / "langgraph")
    (unpacked / "pytest.ini").write_text("[pytest]\naddopts = -p no:asyncio -p no:cacheprovider\n")
    return unpacked


def play(theirs: Path, *tests: str, **environment: str) -> tuple[set[str], str]:
    """The names of those that failed, and what pytest told."""
    known = os.environ | {"PYTHONPATH": str(ROOT / "src"), "LANGGRAPH_STRICT_MSGPACK": "true"} | environment
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--confcutdir", ".", "--quiet", "--tb=short", *tests],
        env=known,
        cwd=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout[-2_000:] + done.stderr[-2_000:]
    return set(_FAILED.findall(done.stdout)), done.stdout


@pytest.mark.parametrize("suite", SUITES)
def test_langgraphs_own_tests_pass_with_our_saver(theirs: Path, suite: str) -> None:
    """What fails with LangGraph's InMemorySaver too (another version of a package, a saver of the test's own) is not
    ours to mend."""
    if not (theirs / "tests" / suite).is_file():
        pytest.skip(f"langgraph {version('langgraph')} has no {suite}")
    failed, told = play(theirs, f"tests/{suite}")
    assert re.search(r"\d+ passed", told), told[-2_000:]
    ours = failed and failed - play(theirs, *sorted(failed), EVERTHREAD_REFERENCE="1")[0]
    ours = ours and play(theirs, *sorted(ours))[0]  # some set tasks 10 ms apart, which a busy machine does not keep to
    assert not ours, told[-6_000:]
