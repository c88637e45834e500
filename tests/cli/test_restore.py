"""backup and restore: everything comes back but what was erased, and nothing half is ever seen."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import everthread
from everthread.adapters.stores.restore import unfinished
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from tests.cli.conftest import Quick
from tests.cli.shell import Ran, Shell, user
from tests.forensics import readable
from tests.forkserver import ForkServer
from tests.postgres import Server

SECRET = "the password is tangerine"


class Kept:
    """A command line on one database, and files beside it."""

    def __init__(self, quick: Quick, url: str, folder: Path, programs: Path | None) -> None:
        self._quick = quick
        self.url = url
        self.folder = folder
        path = os.environ["PATH"] if programs is None else f"{programs}{os.pathsep}{os.environ['PATH']}"
        self._env = {"EVERTHREAD_DATABASE": url, "PATH": path}

    def __call__(self, *arguments: str, input: list[object] | None = None) -> Ran:
        return self._quick(*arguments, input=input or b"", env=self._env)

    def backup(self, name: str) -> str:
        target = str(self.folder / name)
        assert self("backup", target).code == 0
        return target

    def texts(self, conversation: str = "c") -> list[str]:
        return [message["text"] for message in self("show", conversation, "--json").lines]


@pytest.fixture
def kept(quick: Quick, durable_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Kept:
    """A conversation of two messages, one of them a secret, on SQLite and on PostgreSQL."""
    is_file = durable_url.startswith("sqlite")
    programs: Path | None = None if is_file else request.getfixturevalue("postgres_server").programs
    folder = tmp_path / "backups"
    folder.mkdir()
    kept = Kept(quick, durable_url, folder, programs)
    kept("append", "c", input=[user("hello", id="m1"), user(SECRET, id="m2")])
    return kept


@pytest.fixture
def file(quick: Quick, shell: Shell, tmp_path: Path) -> Kept:
    """The same on SQLite only."""
    (tmp_path / "backups").mkdir()
    assert shell.database is not None
    kept = Kept(quick, shell.database, tmp_path / "backups", None)
    kept("append", "c", input=[user("hello", id="m1"), user(SECRET, id="m2")])
    return kept


def test_a_backup_brings_everything_back(kept: Kept) -> None:
    heads = kept("heads").out
    backup = kept.backup("b")
    kept("append", "c", input=[user("too late")])
    restored = kept("restore", backup, "--force", "--json").json
    assert (restored["restored"], restored["erased_again"]) == (True, [])
    assert kept.texts() == ["hello", SECRET]
    assert kept("heads").out == heads
    assert kept("search", "tangerine", "--json").json["hits"][0]["id"] == "m2"
    assert kept("append", "c", "--json", input=[user("on we go")]).json["receipts"][0]["seq"] == 3


def test_a_backup_is_put_where_there_was_nothing(file: Kept, tmp_path: Path) -> None:
    backup = file.backup("b")
    (tmp_path / "et.db").unlink()
    assert file("restore", backup).code == 0
    assert file.texts() == ["hello", SECRET]


def test_a_database_is_replaced_only_by_force(kept: Kept) -> None:
    backup = kept.backup("b")
    kept("append", "c", input=[user("newer")])
    assert kept("restore", backup).code == 4
    assert kept.texts() == ["hello", SECRET, "newer"]


def test_what_was_erased_since_does_not_come_back(kept: Kept) -> None:
    backup = kept.backup("b")
    kept("erase", "message", "c", "m2", "--yes")
    erased = kept("erasures").lines
    restored = kept("restore", backup, "--force", "--json").json
    assert restored["erased_again"] == erased
    assert kept.texts() == ["hello"]
    assert kept("search", "tangerine", "--json").json["hits"] == []
    assert kept("erasures").lines == erased
    assert kept("verify", "--json").json["erased"] == 1
    assert kept("append", "c", input=[user(SECRET, id="m2")]).code == 4


def test_i22_no_file_holds_what_was_erased_since_the_backup(file: Kept, tmp_path: Path) -> None:
    backup = file.backup("b")
    file("erase", "conversation", "c", "--yes")
    file("restore", backup, "--force")
    assert SECRET.encode() in readable(Path(backup).read_bytes())
    for place in tmp_path.glob("*et.db*"):
        assert SECRET.encode() not in readable(place.read_bytes()), place


def test_an_erasure_that_the_backup_knows_does_not_take_what_came_after_it(kept: Kept) -> None:
    kept("erase", "owner", "local", "--yes")
    kept("append", "later", input=[user("written after the erasure")])
    backup = kept.backup("b")
    kept("restore", backup, "--force")
    assert kept.texts("later") == ["written after the erasure"]


def test_an_erasure_is_remembered_over_backups_that_do_not_have_its_text(kept: Kept) -> None:
    with_text = kept.backup("with")
    kept("append", "other", input=[user("x")])
    kept("erase", "conversation", "c", "--yes")
    kept("append", "d", input=[user("tangerine again", id="d1")])
    without_d = with_text
    with_d = kept.backup("with-d")
    kept("erase", "conversation", "d", "--yes")
    kept("restore", without_d, "--force")
    kept("restore", with_d, "--force")
    assert kept("show", "c").code == 3
    assert kept("show", "d").code == 3
    assert len(kept("erasures").lines) == 2


def test_a_list_kept_elsewhere_is_erased_again_too(file: Kept, tmp_path: Path) -> None:
    backup = file.backup("b")
    file("erase", "message", "c", "m2", "--yes")
    (tmp_path / "erasures.jsonl").write_text(file("erasures").out)
    (tmp_path / "et.db").write_bytes(b"no database at all" * 1000)
    blind = file("restore", backup, "--force")
    assert blind.code == 0
    assert "could not be read" in blind.err
    assert file.texts() == ["hello", SECRET]
    told = file("restore", backup, "--force", "--erasures", str(tmp_path / "erasures.jsonl"), "--json").json
    assert len(told["erased_again"]) == 1
    assert file.texts() == ["hello"]


async def test_keys_and_links_that_were_revoked_since_stay_revoked(kept: Kept) -> None:
    """Of each, one that was revoked, and one that was not."""
    async with everthread.open(kept.url, worker=False) as et:
        gone, good = (new_key("ann", now=system_clock()).key for _ in range(2))
        for key in (gone, good):
            await et.store.api_keys.add(key)
        for id in ("revoked", "replaced", "shared"):
            await et.conversations.create(id=id, metadata={"share": {"sha256": "before"}, "mine": id})
    backup = await asyncio.to_thread(kept.backup, "b")
    async with everthread.open(kept.url, worker=False) as et:
        await et.store.api_keys.revoke(gone.id)
        await (await et.conversations.get("revoked")).update(metadata={})
        await (await et.conversations.get("replaced")).update(metadata={"share": {"sha256": "after"}})
    restored = (await asyncio.to_thread(kept, "restore", backup, "--force", "--json")).json
    assert restored["revoked_again"] == {"keys": 1, "links": 2}
    async with everthread.open(kept.url, worker=False) as et:
        assert {key.id for key in await et.store.api_keys.list("ann") if key.revoked_at is None} == {good.id}
        for id in ("revoked", "replaced"):
            assert (await et.conversations.get(id)).metadata == {"mine": id}
        assert "share" in (await et.conversations.get("shared")).metadata


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"owner": "local"}', '{"owner": "x", "erased_at": "soon"}'])
def test_a_list_that_is_none_is_refused_by_line(file: Kept, tmp_path: Path, line: str) -> None:
    (tmp_path / "erasures.jsonl").write_text(line)
    ran = file("restore", file.backup("b"), "--force", "--erasures", str(tmp_path / "erasures.jsonl"))
    assert ran.code == 2
    assert "line 1" in ran.err


def test_a_file_that_is_no_backup_changes_nothing(kept: Kept) -> None:
    strange = kept.folder / "strange"
    strange.write_bytes(os.urandom(20_000))
    assert kept("restore", str(strange), "--force").code in (1, 5)
    assert kept.texts() == ["hello", SECRET]
    assert kept("verify").code == 0
    assert kept("restore", str(kept.folder / "gone"), "--force").code == 3


def test_another_programs_database_is_no_backup(file: Kept) -> None:
    strange = file.folder / "strange.db"
    with closing(sqlite3.connect(strange)) as connection:
        connection.execute("CREATE TABLE recipes (text)")
        connection.commit()
    ran = file("restore", str(strange), "--force", "--json")
    assert (ran.code, ran.error["code"]) == (5, "store_damaged")
    assert file.texts() == ["hello", SECRET]


def test_a_backup_of_a_later_everthread_is_refused(file: Kept) -> None:
    backup = file.backup("b")
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("UPDATE schema_version SET version = 9999")
        connection.commit()
    assert file("restore", backup, "--force").code == 1
    assert file.texts() == ["hello", SECRET]


def test_a_backup_that_does_not_verify_changes_nothing(file: Kept) -> None:
    backup = file.backup("b")
    file("append", "c", input=[user("newer")])
    with closing(sqlite3.connect(backup)) as connection:
        connection.execute("UPDATE entries SET raw = (SELECT raw FROM entries WHERE id = 'm2') WHERE id = 'm1'")
        connection.commit()
    ran = file("restore", backup, "--force", "--json")
    assert (ran.code, ran.json["restored"]) == (5, False)
    assert file.texts() == ["hello", SECRET, "newer"]


def test_a_backup_that_does_not_verify_changes_nothing_on_postgresql(
    quick: Quick, postgres_server: Server, tmp_path: Path
) -> None:
    with postgres_server.database() as url:
        kept = Kept(quick, url, tmp_path, postgres_server.programs)
        kept("append", "c", input=[user("hello")])
        name = url.partition("@/")[2].partition("?")[0]
        postgres_server.run_sql("UPDATE entries SET role = 'nobody'", name)
        damaged = kept.backup("damaged")
        postgres_server.run_sql("UPDATE entries SET role = 'user'", name)
        kept("append", "c", input=[user("newer")])
        assert kept("restore", damaged, "--force").code == 5
        assert kept.texts() == ["hello", "newer"]
        assert kept("doctor").code == 0


def test_a_restore_that_was_cut_off_on_postgresql_is_told_and_taken_up(
    quick: Quick, postgres_server: Server, tmp_path: Path
) -> None:
    with postgres_server.database() as url:
        kept = Kept(quick, url, tmp_path, postgres_server.programs)
        kept("append", "c", input=[user("hello", id="m1"), user(SECRET, id="m2")])
        backup = kept.backup("b")
        kept("erase", "message", "c", "m2", "--yes")
        name = url.partition("@/")[2].partition("?")[0]
        tables = postgres_server.run_sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", name).split()
        moves = "; ".join(f"ALTER TABLE {table} SET SCHEMA everthread_replacing" for table in tables)
        postgres_server.run_sql(f"CREATE SCHEMA everthread_replacing; {moves}", name)
        assert "a restore was cut off" in kept("doctor").out
        assert kept("restore", backup).code == 4
        assert kept("restore", backup, "--force").code == 0
        assert kept.texts() == ["hello"]


def test_a_database_that_somebody_has_open_is_not_replaced(file: Kept) -> None:
    backup = file.backup("b")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, file.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        ran = file("restore", backup, "--force", "--json")
        assert (ran.code, ran.error["code"], ran.error["retryable"]) == (1, "store_busy", True)
        holder.communicate("")
    assert file("restore", backup, "--force").code == 0


HOLD = """
import asyncio, sys, everthread
async def hold():
    async with everthread.open(sys.argv[1]) as et:
        print("open", flush=True)
        sys.stdin.read()
asyncio.run(hold())
"""


def test_the_old_database_is_kept_when_asked(kept: Kept) -> None:
    backup = kept.backup("b")
    kept("append", "c", input=[user("newer")])
    assert kept("restore", backup, "--force", "--json").json["kept"] is None
    kept("append", "c", input=[user("newest")])
    aside = kept("restore", backup, "--force", "--keep-old", "--json").json["kept"]
    assert aside
    if kept.url.startswith("sqlite"):
        old = kept("show", "c", "--json", "--database", f"sqlite:///{aside}").lines
        assert [message["text"] for message in old] == ["hello", SECRET, "newest"]


def test_the_file_behind_a_link_is_replaced(file: Kept, tmp_path: Path) -> None:
    backup = file.backup("b")
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "et.db")
    file("append", "c", input=[user("newer")])
    assert file("restore", backup, "--force", "--database", f"sqlite:///{link}").code == 0
    assert link.is_symlink()
    assert file.texts() == ["hello", SECRET]


def test_a_log_left_by_a_crash_is_not_played_into_the_new_file(
    file: Kept, forkserver: ForkServer, tmp_path: Path
) -> None:
    backup = file.backup("b")
    dead = forkserver.run_program("-c", DIE, file.url, folder=tmp_path, env=os.environ, needs=())
    assert dead.code == 9, dead.err
    assert (tmp_path / "et.db-wal").stat().st_size > 0
    assert file("restore", backup, "--force").code == 0
    assert file.texts() == ["hello", SECRET]
    assert file("verify").code == 0


DIE = """
import asyncio, os, sys, everthread
async def die():
    async with everthread.open(sys.argv[1]) as et:
        await (await et.conversations.get("c")).append([{"role": "user", "content": "before the crash"}])
        os._exit(9)
asyncio.run(die())
"""


KILL = """
import os, sys
from everthread.adapters.stores import restore
from everthread.cli.commands import run
place, when, *arguments = sys.argv[1:]
real = getattr(restore, place)
def deadly(*given, **named):
    if when == "before":
        os._exit(9)
    real(*given, **named)
    os._exit(9)
setattr(restore, place, deadly)
run(arguments)
"""
PLACES = [(place, when) for place in ("_copy", "_erase_again", "_take_place") for when in ("before", "after")]


@pytest.mark.parametrize(("place", "when"), PLACES)
def test_killed_anywhere_the_old_or_the_new_database_stands_whole(
    file: Kept, forkserver: ForkServer, tmp_path: Path, place: str, when: str
) -> None:
    backup = file.backup("b")
    file("erase", "message", "c", "m2", "--yes")
    file("append", "c", input=[user("newer")])
    arguments = ["restore", backup, "--force", "--database", file.url]
    killed = forkserver.run_program(
        "-c", KILL, place, when, *arguments, folder=tmp_path, env=os.environ, needs=["everthread.cli.commands"]
    )
    assert killed.code == 9, killed.err
    is_new = (place, when) == ("_take_place", "after")
    assert file.texts() == (["hello"] if is_new else ["hello", "newer"])
    assert file("verify").code == 0
    assert file("restore", backup, "--force").code == 0
    assert file.texts() == ["hello"]
    assert not unfinished(tmp_path / "et.db").exists()


def test_a_backup_is_for_its_owner_only_and_never_overwrites(kept: Kept) -> None:
    backup = kept.backup("b")
    assert Path(backup).stat().st_mode & 0o777 == 0o600
    before = Path(backup).read_bytes()
    assert kept("backup", backup).code == 4
    assert Path(backup).read_bytes() == before
    assert [file.name for file in kept.folder.iterdir()] == ["b"]


def test_a_backup_that_cannot_be_written_leaves_nothing(kept: Kept) -> None:
    assert kept("backup", str(kept.folder / "no" / "folder")).code == 3
    assert list(kept.folder.iterdir()) == []


async def test_a_backup_is_whole_while_others_write(file: Kept) -> None:
    async with everthread.open(file.url) as et:
        conversation = await et.conversations.get("c")
        for number in range(20):
            await conversation.append([user(f"{number}")])
            if number == 10:
                await et.backup(file.folder / "busy.db")
    async with everthread.open(f"sqlite:///{file.folder / 'busy.db'}") as copy:
        assert (await copy.verify()).messages == 13


def test_a_backup_made_under_writes_is_restored_whole_and_erased_again(kept: Kept) -> None:
    stop = threading.Event()

    async def write() -> None:
        async with everthread.open(kept.url, worker=False, embedder=None) as et:
            conversation = await et.conversations.get("c")
            number = 0
            while not stop.is_set():
                await conversation.append([user(f"q{number}", id=f"q{number}"), user(f"a{number}", id=f"a{number}")])
                number += 1

    writer = threading.Thread(target=lambda: asyncio.run(write()))
    writer.start()
    try:
        while not any(text.startswith("a") for text in kept.texts()):
            assert writer.is_alive()
        backup = kept.backup("busy")
    finally:
        stop.set()
        writer.join()
    since = len(kept.texts())
    assert kept("erase", "message", "c", "m2", "--yes").code == 0
    assert kept("erase", "message", "c", "q0", "--yes").code == 0
    assert kept("restore", backup, "--force").code == 0
    assert kept("verify").code == 0
    texts = kept.texts()
    assert SECRET not in texts
    assert "q0" not in texts
    assert "a0" in texts
    pairs = [text[1:] for text in texts if text[0] in "qa" and text[1:].isdigit() and text not in ("a0",)]
    assert all(pairs.count(number) == 2 for number in pairs), "each append is there whole or not at all"
    assert len(texts) <= since


@pytest.fixture(autouse=True)
def no_open_engines() -> Iterator[None]:
    """A database left open by one command would hold up the restore of the next."""
    yield
    from everthread.adapters.stores.sqlite.engine import Engine  # noqa: PLC0415

    assert Engine._engines == {}
