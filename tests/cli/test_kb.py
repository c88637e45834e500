"""Memories and documents at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from everthread.cli.errors import ExitCode
from tests.cli.conftest import Quick
from tests.cli.shell import user


def test_what_is_remembered_is_listed_found_and_forgotten(quick: Quick) -> None:
    assert quick("memories", "add", "lives", "in", "Paris", "--subject", "home").code == 0
    made = quick("memories", "add", "lives in Berlin", "--subject", "home", "--kind", "profile", "--json").json
    assert (made["text"], made["is_pinned"], made["supersedes"] is not None) == ("lives in Berlin", True, True)
    assert [row["text"] for row in quick("memories", "ls", "--json").lines] == ["lives in Berlin"]
    assert len(quick("memories", "ls", "--past", "--json").lines) == 2
    assert len(quick("memories", "ls", "--pinned", "--json").lines) == 1
    assert "lives in Berlin" in quick("memories", "search", "berlin").out
    assert quick("memories", "search", "berlin", "--owner", "bob", "--json").lines == []
    assert quick("memories", "forget", made["id"]).out == f"{made['id']} is forgotten\n"
    assert quick("memories", "ls", "--json").lines == []
    assert quick("memories", "forget", made["id"], "--undo", "--json").json["state"] == "live"
    refused = quick("memories", "erase", made["id"])
    assert refused.code != 0
    assert "--yes" in refused.err
    assert quick("memories", "erase", made["id"], "--yes", "--json").json["memory_id"] == made["id"]
    assert quick("memories", "ls", "--json").lines == []
    assert quick("memories", "erase", made["id"], "--yes").code != 0


def test_a_memory_may_hold_in_one_conversation(quick: Quick) -> None:
    for id in ("c1", "c2"):
        assert quick("append", id, input=[user("hello")]).code == 0
    assert quick("memories", "add", "is a draft", "--conversation", "c1", "--pin").code == 0
    assert len(quick("memories", "ls", "--conversation", "c1", "--json").lines) == 1
    assert quick("memories", "ls", "--conversation", "c2", "--json").lines == []
    assert "pinned conversation c1" in quick("memories", "ls").out


def test_habits_are_listed(quick: Quick) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    quick("append", "c", input=[{"role": "assistant", "content": "", "tool_calls": [call]}])
    assert quick("memories", "ls", "--habits", "--json").json["name"] == "look_up"
    assert "look_up" in quick("memories", "ls", "--habits").out


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (("memories", "forget", "unknown"), ExitCode.NOT_FOUND),
        (("memories", "add", "x", "--kind", "wish"), ExitCode.USAGE),
        (("memories", "add", " "), ExitCode.USAGE),
        (("memories", "add", "x", "--conversation", "unknown"), ExitCode.NOT_FOUND),
        (("kb", "rm", "unknown", "--yes"), ExitCode.NOT_FOUND),
        (("kb", "rm", "unknown"), ExitCode.USAGE),
        (("kb", "search", "x", "--collection", "unknown"), ExitCode.NOT_FOUND),
        (("kb", "add", "notes", "nowhere.txt"), ExitCode.ERROR),
        (("kb", "add", "notes", "."), ExitCode.USAGE),
    ],
)
def test_what_cannot_be_done_is_told_by_an_exit_code(quick: Quick, line: tuple[str, ...], code: ExitCode) -> None:
    quick("append", "c", input=[user("hello")])
    ran = quick(*line)
    assert ran.code == code
    assert ran.err.startswith("everthread: ")
    assert ran.err.count("\n") == 1


def test_a_search_that_finds_nothing_says_where_it_looked(quick: Quick, folder: Path) -> None:
    quick("append", "c", input=[user("hello")])
    assert "no documents yet" in quick("kb", "search", "grinder").err
    quick("kb", "add", "notes", str(folder / "machine.md"))
    ran = quick("kb", "search", "nosuch", "aardvark")
    assert (ran.code, ran.out, ran.err) == (0, "", "nothing found in notes\n")
    assert quick("kb", "search", "grinder").err == ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents, and what is none."""
    docs = tmp_path / "docs"
    (docs / "deep").mkdir(parents=True)
    (docs / "machine.md").write_text("# Machine\n\n## Errors\nE07: the grinder is blocked.\n")
    (docs / "deep" / "旅行.txt").write_text("高铁二等座实报实销。")
    (docs / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (docs / "picture.png").write_bytes(b"\x89PNG\x00")
    return docs


def test_a_folder_is_added_file_by_file_and_found(quick: Quick, folder: Path) -> None:
    ran = quick("kb", "add", "notes", str(folder), "--json")
    assert ran.code == ExitCode.ERROR, "one of them cannot be read"
    assert [(row["id"], row["outcome"]) for row in ran.lines] == [("deep/旅行.txt", "added"), ("machine.md", "added")]
    assert ran.error["code"] == "invalid"
    assert "broken.pdf" in ran.error["message"]
    (folder / "broken.pdf").unlink()
    again = quick("kb", "add", "notes", str(folder))
    assert again.code == 0
    assert again.out.count("same ") == 2
    hit = quick("kb", "search", "what is E07", "--json").json
    assert (hit["document_id"], hit["heading"]) == ("machine.md", "Machine › Errors")
    assert "高铁二等座" in quick("kb", "search", "高铁", "--collection", "notes").out


def test_collections_are_listed_and_removed(quick: Quick, folder: Path) -> None:
    for name in ("one", "two"):
        assert quick("kb", "add", name, str(folder / "machine.md")).code == 0
    assert [(row["name"], row["documents"]) for row in quick("kb", "ls", "--json").lines] == [("one", 1), ("two", 1)]
    assert quick("kb", "ls", "one", "--json").json["id"] == "machine.md"
    assert "machine.md" in quick("kb", "ls", "one").out
    assert quick("kb", "rm", "one", "machine.md").out == "removed 1 document\n"
    assert quick("kb", "rm", "two", "--yes", "--json").json == {"removed": 1}
    assert quick("kb", "ls", "--json").lines == []


def test_a_question_is_routed_to_the_collection_it_is_for(quick: Quick, folder: Path) -> None:
    quick("kb", "add", "machines", str(folder / "machine.md"))
    quick("kb", "add", "travel", str(folder / "deep"))
    found = quick("kb", "search", "--route", "why is the grinder blocked?")
    assert "for the collection machines" in found.err
    assert "E07" in found.out
    none = quick("kb", "search", "--route", "who won the world cup?")
    assert ("for no collection" in none.err, none.out) == (True, "")
