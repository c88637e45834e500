"""Large outputs of tools, which Claude Code keeps in files beside its transcripts."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from everthread import Everthread
from everthread.imports.claude_code import OUTPUTS
from everthread.imports.importer import Importer
from everthread.imports.line_file import BATCH_BYTES, LineFile
from everthread.imports.write import ImportCounts
from tests.imports.agent_files import (
    SESSION,
    as_lines,
    claude_file,
    claude_line,
    claude_subagent_file,
    tool_result,
    tool_use,
)
from tests.imports.test_follow import ID, follower, ids, on_disk

OUTPUT = "first line\r\n" + "列表 of files\n" * 9000 + "\udcff\x00the cinnamon at the end"
SAVED_AS = "/elsewhere/.claude/projects/-srv/{session}/tool-results/{name}"


def saved(session: str = SESSION, name: str = "b1.txt") -> str:
    path = SAVED_AS.format(session=session, name=name)
    return (
        f"<persisted-output>\nOutput too large (99.0KB). Full output saved to: {path}\n\n"
        "Preview (first 2KB):\nfirst line\n...\n</persisted-output>"
    )


def lines(said: object) -> list[dict[str, Any]]:
    return [
        claude_line("u1", None, "user", "List all files.", 1),
        claude_line("a1", "u1", "assistant", [tool_use("t1", "Bash", command="ls -R")], 2),
        claude_line("r1", "a1", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": said}], 3),
        claude_line("a2", "r1", "assistant", [{"type": "text", "text": "Many."}], 4),
    ]


def keep(transcript: Path, name: str = "b1.txt", session: str = SESSION) -> Path:
    path = transcript.parent / session / OUTPUTS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(OUTPUT.encode("utf-8", "surrogateescape"))
    return path


async def result_of(et: Everthread, id: str = ID) -> str:
    conversation = await et.conversations.get(id)
    return [str(one.payload["content"]) async for one in conversation.messages() if one.role == "tool"][-1]


@pytest.mark.parametrize(
    "said",
    [
        saved(),
        [{"type": "text", "text": saved()}],
        f"<persisted-output>Tool result saved to: {SAVED_AS.format(session=SESSION, name='b1.txt')}\n\n"
        "Use Read to view</persisted-output>",
        "Error: result (912,345 characters) exceeds maximum allowed tokens. Output has been saved to "
        f"{SAVED_AS.format(session=SESSION, name='b1.txt')}.\nFormat: Plain text",
        saved().replace("/", "\\").replace("<\\persisted", "</persisted"),
    ],
    ids=["text", "block", "short", "too-many", "windows"],
)
async def test_a_large_output_is_read_from_its_file_byte_for_byte(said: object, et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path, lines(said))
    keep(path)
    await follower(et).catch_up(path, "claude-code")
    assert await result_of(et) == OUTPUT
    assert [hit.conversation_id for hit in await et.search("cinnamon")] == [ID]
    assert await on_disk(et) == path.read_bytes()  # the line is as Claude Code wrote it


async def test_a_large_output_stays_whole_when_its_file_is_gone(et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path, lines(saved()))
    output = keep(path)
    one = follower(et)
    await one.catch_up(path, "claude-code")
    output.unlink()
    claude_file(tmp_path, [claude_line("u0", None, "user", "Before all.", 0), *lines(saved())])
    await one.catch_up(path, "claude-code")
    assert one.counts.revised == 0
    assert await result_of(et) == OUTPUT
    assert await on_disk(et) == path.read_bytes()


async def test_an_output_whose_file_comes_later_is_whole_once_its_session_is_read_again(
    et: Everthread, tmp_path: Path
) -> None:
    path = claude_file(tmp_path, lines(saved()))
    one = follower(et)
    await one.catch_up(path, "claude-code")
    assert await result_of(et) == saved()
    keep(path)
    claude_file(tmp_path, [claude_line("u0", None, "user", "Before all.", 0), *lines(saved())])
    await one.catch_up(path, "claude-code")
    assert (one.counts.revised, await result_of(et)) == (1, OUTPUT)
    assert len(await ids(et)) == 5


async def test_the_output_of_a_subagent_is_in_the_folder_of_its_session(et: Everthread, tmp_path: Path) -> None:
    path = claude_subagent_file(tmp_path)
    side = {"isSidechain": True, "agentId": "abc"}
    path.write_bytes(as_lines([{**line, **side} for line in lines(saved())]))
    keep(claude_file(tmp_path))
    await follower(et).catch_up(path, "claude-code")
    assert await result_of(et, f"{ID}:agent-abc") == OUTPUT


@pytest.mark.parametrize("session", ["..", "../..", "other"])
async def test_no_output_is_read_from_elsewhere(session: str, et: Everthread, tmp_path: Path) -> None:
    path = claude_file(tmp_path, lines(saved(session.rpartition("/")[2])))
    outside = tmp_path / "secret.txt"
    outside.write_text("a secret")
    for folder in (path.parent.parent, path.parent.parent.parent, path.parent / "other"):
        (folder / OUTPUTS).mkdir(parents=True)
        (folder / OUTPUTS / "b1.txt").symlink_to(outside)
    (path.parent.parent / OUTPUTS / "b1.txt").unlink()
    (path.parent.parent / OUTPUTS / "b1.txt").write_text("a secret")
    await follower(et).catch_up(path, "claude-code")
    assert "a secret" not in await result_of(et)


async def test_what_a_tool_only_printed_is_no_file(et: Everthread, tmp_path: Path) -> None:
    said = f"grep: {saved()}"
    path = claude_file(tmp_path, lines(said))
    keep(path)
    await follower(et).catch_up(path, "claude-code")
    assert await result_of(et) == said


async def test_one_output_is_that_of_one_result(et: Everthread, tmp_path: Path) -> None:
    more = [
        claude_line(f"r{number}", "a1", "user", [tool_result("t1", saved())], 9) for number in range(2, 9)
    ]  # what would make a file of kilobytes to a log of gigabytes
    path = claude_file(tmp_path, [*lines(saved()), *more])
    keep(path)
    await follower(et).catch_up(path, "claude-code")
    conversation = await et.conversations.get(ID)
    texts = [message.text async for message in conversation.messages() if message.role == "tool"]
    assert texts.count(saved()) == len(more)
    assert len(texts) == 1 + len(more)


async def test_outputs_that_many_sessions_of_a_zip_name_are_bounded(et: Everthread, tmp_path: Path) -> None:
    path = tmp_path / "amplified.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(f"p/{SESSION}/{OUTPUTS}/b1.txt", "x" * 1_000_000)
        for number in range(20):
            packed.writestr(f"p/agent-{number}.jsonl", as_lines(lines(saved())).replace(b"u1", str(number).encode()))
    importer = Importer(et, "local", most_unpacked_bytes=5_000_000)
    counts = await importer.import_path(path)
    assert 10 < counts.problem_count < 20
    assert "would unpack" in counts.problems[0]


async def imported(et: Everthread, path: Path) -> ImportCounts:
    return await Importer(et, "local").import_path(path)


@pytest.mark.parametrize("is_packed", [False, True], ids=["folder", "zip"])
async def test_outputs_of_a_folder_or_a_zip_are_no_sessions_of_their_own(
    is_packed: bool, et: Everthread, tmp_path: Path
) -> None:
    path = claude_file(tmp_path / "home", lines(saved()))
    keep(path)
    printed = path.parent / SESSION / OUTPUTS / "printed.txt"
    printed.write_bytes(as_lines([claude_line("p", None, "user", "Only printed.", 1)]))
    given = tmp_path / "home"
    if is_packed:
        given = tmp_path / "home.zip"
        with zipfile.ZipFile(given, "w") as packed:
            for file in sorted((tmp_path / "home").rglob("*.*")):
                if file.is_file():
                    packed.write(file, file.relative_to(tmp_path))
            packed.writestr(SESSION, "a file with the name of the folder")
    counts = await imported(et, given)
    assert counts.messages == 4
    assert await result_of(et) == OUTPUT
    assert len(counts.problems) == is_packed
    os.utime(given)
    assert (await imported(et, given)).messages == 0


async def test_many_large_outputs_are_read_a_few_at_a_time(et: Everthread, tmp_path: Path) -> None:
    said = lines("short")
    for number in range(40):
        said.append(claude_line(f"o{number}", "a1", "user", [tool_result("t1", saved(name=f"{number}.txt"))], 9))
    path = claude_file(tmp_path, said)
    for number in range(40):
        keep(path, f"{number}.txt")
    reading, sizes = LineFile(path, "claude-code"), []
    with path.open("rb") as file:
        while not (batch := reading.read(file)).is_last:
            sizes.append(sum(len(str(message.payload["content"])) for message, _, _ in batch.messages))
    assert len(sizes) == 1
    assert max(sizes) < BATCH_BYTES + len(OUTPUT)
    await follower(et).catch_up(path, "claude-code")
    assert len(await ids(et)) == 44
