"""verify, heads and erase: what is proven, and what is found when somebody was at the file."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Quick
from tests.cli.shell import user
from tests.cli.test_prove import new_key


@pytest.fixture
def kept(quick: Quick) -> Quick:
    """Two conversations, of three messages and of one."""
    quick("append", "c1", input=[user("one", id="m1"), user("two", id="m2"), user("three", id="m3")])
    quick("append", "c2", input=[user("four")])
    return quick


def tamper(database: Path, *statements: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def test_an_untouched_log_verifies(kept: Quick) -> None:
    report = kept("verify", "--json").json
    assert (report["ok"], report["conversations"], report["messages"], report["problems"]) == (True, 2, 4, [])
    assert "all chains hold" in kept("verify").out


def test_a_changed_payload_is_found(kept: Quick, tmp_path: Path) -> None:
    tamper(tmp_path / "et.db", "UPDATE entries SET raw = (SELECT raw FROM entries WHERE id = 'm1') WHERE id = 'm2'")
    found = kept("verify", "--json")
    assert found.code == 5
    assert [(problem["kind"], problem["seq"]) for problem in found.json["problems"]] == [("chain", 2)]
    shown = kept("verify")
    assert shown.code == 5
    assert "c1" in shown.out


def test_an_older_file_put_in_its_place_is_found_against_newer_heads(kept: Quick, tmp_path: Path) -> None:
    """Nothing in the older file is wrong by itself: its tail is merely gone."""
    older = f"sqlite:///{tmp_path / 'older.db'}"
    kept("backup", str(tmp_path / "older.db"))
    kept("append", "c1", input=[user("five")])
    (tmp_path / "heads.jsonl").write_text(kept("heads").out)
    assert kept("verify", "--against", str(tmp_path / "heads.jsonl"), "--json").json["heads"] == 2
    assert kept("verify", "--database", older).code == 0
    found = kept("verify", "--database", older, "--against", str(tmp_path / "heads.jsonl"), "--json")
    assert found.code == 5
    assert [(problem["kind"], problem["seq"]) for problem in found.json["problems"]] == [("cut", 3)]


def test_a_conversation_that_is_gone_is_found_against_earlier_heads(kept: Quick, tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    heads.write_text(kept("heads", "--json").out)
    tamper(tmp_path / "et.db", "DELETE FROM conversations WHERE id = 'c2'")
    found = kept("verify", "--against", str(heads), "--json")
    assert [problem["kind"] for problem in found.json["problems"]] == ["missing"]


def test_what_was_appended_since_is_no_problem(kept: Quick, tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    heads.write_text(kept("heads").out)
    kept("append", "c1", input=[user("five")])
    assert kept("verify", "--against", str(heads)).code == 0


OTHER_TYPES = '{"owner": 1, "conversation_id": "c", "count": "1", "chain": ""}'


@pytest.mark.parametrize("line", ["nonsense", "[]", "5", '{"owner": "local"}', OTHER_TYPES])
def test_a_file_of_heads_that_is_none_is_refused_by_line(kept: Quick, tmp_path: Path, line: str) -> None:
    (tmp_path / "heads.jsonl").write_text(kept("heads").out + line + "\n")
    ran = kept("verify", "--against", str(tmp_path / "heads.jsonl"))
    assert ran.code == 2
    assert "line 3" in ran.err


def test_erase_says_what_it_reached_and_what_it_cannot(kept: Quick) -> None:
    report = kept("erase", "message", "c1", "m2", "--yes", "--json").json
    assert report["entries"] == 1
    assert report["cannot_reach"]
    assert [m["text"] for m in kept("show", "c1", "--json").lines] == ["one", "three"]
    assert kept("verify", "--json").json["erased"] == 1


def test_everything_of_an_owner_is_erased_by_name(kept: Quick) -> None:
    kept("append", "c1", "--owner", "ada", input=[user("hers")])
    assert kept("erase", "owner", "ada", "--yes", "--json").json["conversations"] == 1
    assert kept("ls", "--owner", "ada", "--json").lines == []
    assert len(kept("ls", "--json").lines) == 2


def test_nothing_is_erased_unless_somebody_says_yes(kept: Quick) -> None:
    assert kept("erase", "conversation", "c1").code == 2
    assert len(kept("show", "c1", "--json").lines) == 3


def test_a_late_write_to_what_was_erased_is_a_conflict(kept: Quick) -> None:
    kept("erase", "conversation", "c1", "--yes")
    ran = kept("append", "c1", "--json", input=[user("again")])
    assert (ran.code, ran.error["code"]) == (4, "erased")


def test_erasures_are_listed_for_a_later_restore(kept: Quick) -> None:
    kept("erase", "message", "c1", "m1", "--yes")
    kept("erase", "owner", "ada", "--yes")
    rows = kept("erasures").lines
    assert [(row["owner"], row["conversation_id"], row["message_id"]) for row in rows] == [
        ("local", "c1", "m1"),
        ("ada", None, None),
    ]


def test_heads_count_only_if_the_given_key_signed_each(kept: Quick, tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        private, public = new_key()
        (tmp_path / f"{name}.pem").write_bytes(private)
        (tmp_path / f"{name}.pub").write_bytes(public)
    heads, key = tmp_path / "heads.jsonl", str(tmp_path / "ours.pub")
    signed = kept("heads", "--key", str(tmp_path / "ours.pem")).out
    lines = [json.loads(line) for line in signed.splitlines()]
    bare = "".join(json.dumps({**head, "public_key": None, "signature": None}) + "\n" for head in lines)
    files = {
        "ours": signed,
        "nobody's": kept("heads").out,
        "another's": kept("heads", "--key", str(tmp_path / "theirs.pem")).out,
        "changed": signed.replace('"count": 3', '"count": 1'),
        "emptied": bare,
    }
    codes = {}
    for whose, content in files.items():
        heads.write_text(content)
        codes[whose] = kept("verify", "--against", str(heads), "--key", key).code
    assert codes == {"ours": 0, "nobody's": 2, "another's": 2, "changed": 2, "emptied": 2}
    heads.write_text(signed)
    assert kept("verify", "--against", str(heads), "--key", str(heads)).code == 2
    assert kept("verify", "--key", key).code == 2
