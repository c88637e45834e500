"""Large payloads beside the database, from the shell: named when they are missing, swept, and restored with it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Quick
from tests.cli.shell import Ran, user

BIG = "the ledger of zirconium " * 4_000

Command = Callable[..., Ran]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def run(quick: Quick, folder: Path) -> Command:
    """The command line on a conversation with one message that is a file."""

    def command(*arguments: str, input: list[object] | None = None) -> Ran:
        return quick(*arguments, input=input or b"", env={"EVERTHREAD_BLOBS": f"file://{folder}"})

    assert command("append", "c", input=[user("small", id="m1"), user(BIG, id="m2")]).code == 0
    return command


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def blobs_checked(run: Command) -> tuple[int, str]:
    ran = run("doctor", "--json")
    (found,) = [line for line in ran.lines if line["name"] == "blobs"]
    return ran.code, found["state"]


def test_doctor_and_verify_name_a_missing_blob(run: Command, folder: Path) -> None:
    assert blobs_checked(run) == (0, "ok")
    (file,) = files(folder)
    file.unlink()
    assert blobs_checked(run) == (5, "damaged")
    ran = run("verify")
    assert ran.code == 5
    assert file.name in ran.out


def test_a_sweep_deletes_what_a_crash_left(run: Command, folder: Path) -> None:
    (used,) = files(folder)
    left = used.with_name("f" * 64)
    left.write_bytes(b"left")
    assert blobs_checked(run) == (0, "warn")
    assert run("sweep", "--json").lines == []
    os.utime(left, (1, 1))
    assert [line["bytes"] for line in run("sweep", "--dry-run", "--json").lines] == [4]
    assert run("sweep").out.startswith("1 blob deleted")
    assert files(folder) == [used]
    assert blobs_checked(run) == (0, "ok")


def test_a_backup_is_restored_with_its_blobs_or_not_at_all(run: Command, folder: Path, tmp_path: Path) -> None:
    backup = str(tmp_path / "backup.db")
    assert run("backup", backup).code == 0
    copied = tmp_path / "copied"
    shutil.copytree(folder, copied)
    run("append", "c", input=[user("later")])
    shutil.rmtree(folder)
    assert run("restore", backup, "--force").code == 5
    assert run("stats", "--json").json["messages"] == 3
    shutil.copytree(copied, folder)
    assert run("restore", backup, "--force").code == 0
    assert [line["text"] for line in run("show", "c", "--json").lines] == ["small", BIG]


def test_what_was_erased_stays_erased_after_a_restore_with_its_blobs(
    run: Command, folder: Path, tmp_path: Path
) -> None:
    backup = str(tmp_path / "backup.db")
    run("search", "zirconium")
    assert run("backup", backup).code == 0
    assert run("erase", "message", "c", "m2", "--yes").code == 0
    assert files(folder) == []
    assert run("restore", backup, "--force").code == 0
    assert run("search", "zirconium", "--json").json["hits"] == []
    assert len(run("search", "small", "--json").json["hits"]) == 1
    assert blobs_checked(run) == (0, "ok")
