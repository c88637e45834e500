"""`export` and `import`: a conversation as a file for people, and as an archive that comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import zstandard
from pypdf import PdfReader

from everthread.cli.errors import ExitCode
from tests.cli.conftest import Quick

TALK: list[Any] = [
    {"role": "user", "content": "what is on the desk?"},
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "I shall look.", "signature": "s"}],
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "a blue lamp"},
    {"role": "assistant", "content": "There is a lamp."},
]


@pytest.fixture
def talk(quick: Quick) -> None:
    quick("append", "c", input=TALK)


def test_markdown_has_all_or_only_what_was_said(quick: Quick, talk: None) -> None:
    whole = quick("export", "c", "-f", "md").out
    assert "I shall look." in whole
    assert "a blue lamp" in whole
    without = quick("export", "c", "-f", "md", "--no-thinking").out
    assert "I shall look." not in without
    assert "a blue lamp" in without
    said = quick("export", "c", "-f", "md", "--no-thinking", "--no-tools").out
    assert "There is a lamp." in said
    assert "I shall look." not in said
    assert "a blue lamp" not in said


@pytest.mark.parametrize("form", ["json", "jsonl", "archive"])
def test_what_programs_read_is_always_whole(quick: Quick, talk: None, form: str, tmp_path: Path) -> None:
    ran = quick("export", "c", "-f", form, "--no-tools", "-o", str(tmp_path / "part"))
    assert ran.code == ExitCode.USAGE
    assert "cannot leave parts out" in ran.err
    assert not (tmp_path / "part").exists()


def test_an_archive_is_read_in_once_and_gives_the_same_again(quick: Quick, talk: None, tmp_path: Path) -> None:
    first, second = tmp_path / "first.zst", tmp_path / "second.zst"
    assert quick("export", "c", "-o", str(first)).code == ExitCode.OK
    assert quick("export", "c", "-o", str(first)).code == ExitCode.CONFLICT  # a file that is there stays
    elsewhere = ("--database", f"sqlite:///{tmp_path / 'other.db'}")
    assert quick("import", str(first), "--json", *elsewhere).json["imported"] == ["c"]
    assert quick("import", str(first), "--json", *elsewhere).json["skipped"] == ["c"]
    assert quick("export", "c", "-o", str(second), *elsewhere).code == ExitCode.OK
    assert second.read_bytes() == first.read_bytes()


def test_an_archive_comes_back_under_the_name_that_the_docs_give_it(quick: Quick, talk: None, tmp_path: Path) -> None:
    archive, unpacked = tmp_path / "trip.jsonl.zst", tmp_path / "trip.jsonl"
    quick("export", "c", "-o", str(archive))
    elsewhere = ("--database", f"sqlite:///{tmp_path / 'other.db'}")
    with archive.open("rb") as packed, unpacked.open("wb") as plain:
        zstandard.ZstdDecompressor().copy_stream(packed, plain)
    refused = quick("import", str(unpacked), *elsewhere)
    assert refused.code == ExitCode.USAGE
    assert f"zstd -o {archive}" in refused.err
    assert quick("import", str(archive), "--json", *elsewhere).json["imported"] == ["c"]


def test_an_archive_that_was_cut_off_changes_nothing(quick: Quick, talk: None, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.zst", tmp_path / "cut.zst"
    quick("export", "c", "-o", str(whole))
    cut.write_bytes(whole.read_bytes()[:-20])
    elsewhere = ("--database", f"sqlite:///{tmp_path / 'other.db'}")
    assert quick("import", str(cut), *elsewhere).code != ExitCode.OK
    assert quick("ls", "--json", *elsewhere).lines == []


@pytest.mark.parametrize("form", ["md", "html", "json", "jsonl", "pdf"])
def test_an_export_says_when_a_message_was_said_and_not_when_it_was_imported(
    quick: Quick, form: str, tmp_path: Path
) -> None:
    quick("append", "old", input=[{"role": "user", "content": "Hi", "created_at": "2019-03-01T10:00:00Z"}])
    file = tmp_path / "export"
    assert quick("export", "old", "-f", form, "-o", str(file)).code == ExitCode.OK
    text = PdfReader(file).pages[0].extract_text() if form == "pdf" else file.read_text()
    assert "2019-03-01" in text
    written_at = quick("show", "old", "--json").json["created_at"]
    assert (written_at in text) == (form in ("json", "jsonl")), "programs are told both"


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_an_export_for_programs_names_the_format_that_comes_back(
    quick: Quick, talk: None, form: str, tmp_path: Path
) -> None:
    file = tmp_path / f"c.{form}"
    assert quick("export", "c", "-f", form, "-o", str(file)).code == 0
    refused = quick("import", str(file), "--json")
    assert refused.code == ExitCode.USAGE
    assert "-f archive" in refused.error["message"]
    assert [line["id"] for line in quick("ls", "--json").lines] == ["c"]
