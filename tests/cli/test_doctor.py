"""doctor finds what is wrong, says what to do, and changes nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread.adapters.stores.restore import unfinished
from everthread.core.embeddings import VectorPart, unit
from everthread.core.nouns import Ref
from tests.cli.conftest import Quick
from tests.cli.shell import user
from tests.postgres import Server


@pytest.fixture
def healthy(quick: Quick) -> Quick:
    quick("append", "c", input=[user(f"message number {number}") for number in range(30)])
    quick("search", "message")
    return quick


def checks(quick: Quick, *arguments: str) -> dict[str, Any]:
    return {row["name"]: row for row in quick("doctor", "--json", *arguments).lines}


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(statement)
        connection.commit()


def test_a_healthy_database_has_no_complaint_on_either_store(quick: Quick, durable_url: str) -> None:
    quick("append", "c", "--database", durable_url, input=[user("hello 世界"), user("")])
    quick("append", "c", "--database", durable_url, "--owner", "eve", input=[user("x")])
    quick("search", "hello", "--database", durable_url)
    found = checks(quick, "--database", durable_url)
    wrong = {name: row for name, row in found.items() if row["state"] not in ("ok", "absent")}
    wrong.pop("model smollm2", None)  # no model is set here, and its weights are not fetched
    wrong.pop("durability", None)  # the tests' own server does not wait for its disk
    assert wrong == {}
    assert {"python", "sqlite", "extras", "database", "tables", "erasures", "search index", "search sample"} <= set(
        found
    )
    assert found["search index"]["found"] == "3 messages of 3"


def test_messages_missing_from_the_index_are_damage(healthy: Quick, tmp_path: Path) -> None:
    change(tmp_path / "et.db", "INSERT INTO words (words) VALUES ('delete-all')")
    ran = healthy("doctor", "--json")
    found = {row["name"]: row["state"] for row in ran.lines}
    assert ran.code == 5
    assert (found["search index"], found["search sample"]) == ("damaged", "damaged")
    assert healthy("verify").code == 0


def test_messages_missing_from_the_index_of_postgresql_are_damage(quick: Quick, postgres_server: Server) -> None:
    with postgres_server.database() as url:
        quick("append", "c", "--database", url, input=[user("one"), user("two")])
        postgres_server.run_sql("DELETE FROM words", url.partition("@/")[2].partition("?")[0])
        assert quick("doctor", "--database", url).code == 5


def test_messages_that_wait_for_the_index_are_no_damage(quick: Quick) -> None:
    quick("append", "c", input=[user("not searched for yet")])
    found = checks(quick)["search index"]
    assert (found["state"], found["found"]) == ("ok", "0 messages of 0; 1 wait for the next search")


def test_a_torn_page_is_damage(healthy: Quick, tmp_path: Path) -> None:
    database = tmp_path / "et.db"
    with database.open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096)
    assert healthy("doctor").code == 5


def test_no_database_is_a_failure_with_advice(quick: Quick, tmp_path: Path) -> None:
    ran = quick("doctor")
    assert ran.code == 1
    assert "everthread migrate" in ran.out
    assert not (tmp_path / "et.db").exists()


def test_older_and_newer_tables_are_told_apart(healthy: Quick, tmp_path: Path) -> None:
    change(tmp_path / "et.db", "UPDATE schema_version SET version = 0")
    assert checks(healthy)["tables"]["advice"] == "everthread migrate"
    change(tmp_path / "et.db", "UPDATE schema_version SET version = 9999")
    assert checks(healthy)["tables"]["state"] == "fail"
    assert healthy("ls").code == 1


def test_an_unfinished_erasure_is_told_and_left_to_the_next_opening(healthy: Quick, tmp_path: Path) -> None:
    healthy("erase", "conversation", "c", "--yes")
    change(tmp_path / "et.db", "UPDATE erasures SET finished_at = NULL")
    assert checks(healthy)["erasures"]["state"] == "warn"
    assert checks(healthy)["erasures"]["state"] == "warn"
    healthy("stats")
    assert checks(healthy)["erasures"]["state"] == "ok"


def test_what_a_killed_restore_left_is_told(healthy: Quick, tmp_path: Path) -> None:
    unfinished(tmp_path / "et.db").write_bytes(b"")
    assert checks(healthy)["restore"]["state"] == "warn"


def test_a_mistyped_variable_is_told(quick: Quick) -> None:
    rows = quick("doctor", "--json", env={"EVERTHREAD_DATABSE": "sqlite:///x.db"}).lines
    (found,) = [row for row in rows if row["name"] == "environment"]
    assert found["state"] == "warn"
    assert "EVERTHREAD_DATABSE" in found["found"]


def test_a_server_that_is_not_there_is_a_failure(quick: Quick) -> None:
    assert quick("doctor", "--database", "postgresql://nobody@127.0.0.1:1/none").code == 1


def test_an_old_file_that_is_migrated_says_which_steps_ran(quick: Quick) -> None:
    made = quick("migrate", "--json").json["steps"]
    assert made == sorted(made) != []
    assert quick("migrate", "--json").json["steps"] == []
    assert "nothing to do" in quick("migrate").out


def test_what_finds_by_meaning_is_told_and_where_its_vectors_are(quick: Quick, durable_url: str) -> None:
    quick("append", "c", "--database", durable_url, input=[user("hello")])
    found = checks(quick, "--database", durable_url)
    assert found["meaning"]["found"] == "search by words only"
    assert "models fetch minilm" in found["meaning"]["advice"]
    assert found["vectors"]["found"].startswith("in the database")
    asyncio.run(_index(durable_url))
    assert checks(quick, "--database", durable_url)["vectors"]["found"].endswith(": 1 by fake/2")


async def _index(url: str) -> None:
    async with everthread.open(url, worker=False, embedder=None) as et:
        await et.vectors.put(Ref("local", "c"), "fake/2", [VectorPart(1, 0, unit([1.0, 0.0]))])


def test_a_place_for_vectors_that_does_not_answer_fails(quick: Quick, tmp_path: Path) -> None:
    pytest.importorskip("pymilvus", reason="needs everthread[milvus]")
    settings = tmp_path / "mine.toml"
    settings.write_text('vectors = "milvus:http://admin:verysecret@127.0.0.1:1"\nembedder = "minilm"\n')
    ran = quick("doctor", "--json", "--config", str(settings))
    found = {row["name"]: row for row in ran.lines}
    assert (ran.code, found["vectors"]["state"]) == (1, "fail")
    assert found["meaning"]["state"] == "fail"
    assert "verysecret" not in ran.out + ran.err


def test_weights_that_are_not_there_are_not_called_ok(quick: Quick) -> None:
    without = {"EVERTHREAD_MODEL": "scripted:echo"}
    found = {row["name"]: row["state"] for row in quick("doctor", "--json", env=without).lines}
    assert found["model minilm"] == "absent"
    assert found["model smollm2"] == "absent"
    needed = {row["name"]: row["state"] for row in quick("doctor", "--json").lines}
    assert needed["model smollm2"] == "warn"  # no other model is set to answer
