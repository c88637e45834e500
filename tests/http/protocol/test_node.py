"""The protocol as `@langchain/langgraph-sdk` speaks it: the first version, pinned where the example of a front end pins
it, and the second one."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.http.protocol.rig import HERE, Server

CLIENTS = {"1.12": HERE.parents[2] / "examples" / "frontend", "2.0": HERE / "node"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = shutil.which("npm")
    if found is None:
        pytest.skip("needs Node and npm")
    return found


def copy_program(name: str, version: str, folder: Path) -> None:
    """Put a program, and the names of the packages of its client, into a folder."""
    folder.mkdir(exist_ok=True)
    for path in (CLIENTS[version] / "package.json", CLIENTS[version] / "package-lock.json", HERE / "node" / name):
        shutil.copy(path, folder)


async def install(npm: str, folder: Path) -> None:
    """The client that is named in the folder."""
    await run(folder, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev")


async def run(folder: Path, *command: str) -> str:
    """What a command prints; it must end well."""
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.parametrize("version", CLIENTS)
async def test_the_client_for_javascript_finds_what_it_expects(
    light: Server, node: str, tmp_path: Path, version: str
) -> None:
    copy_program("talk.mjs", version, tmp_path)
    await install(node, tmp_path)
    seen = json.loads(await run(tmp_path, "node", "talk.mjs", light.address))
    assert seen == {
        "told": ["metadata", "values", *["messages"] * 5, "updates", "values", "updates", "values", "end"],
        "status": "interrupted",
        "last": "got yes",
        "followed": 22,
        "end": "end",
        "modes": ["metadata", "custom", "end"],
        "isPagedToItsEnd": True,
        "found": 1,
        "history": 3,
        "item": {"text": "milk"},
        "assistant": "agent",
    }
