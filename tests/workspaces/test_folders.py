"""Workspaces on a real disk: nothing leaves them, nothing exceeds them, nothing in use is cleaned."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from everthread import Conflict, Invalid, NotFound
from everthread.core.nouns import Ref
from everthread.core.workspaces import Quota
from everthread.workspaces import FolderWorkspaces, TemporaryWorkspaces
from everthread.workspaces.folders import FolderWorkspace

HERE = Ref("local", "trip")
SECRET = b"what nobody in a workspace may read"


@pytest.fixture
def place(tmp_path: Path) -> FolderWorkspaces:
    return FolderWorkspaces(tmp_path / "root", quota=Quota(max_files=5, max_bytes=1_000))


@pytest.fixture
def workspace(place: FolderWorkspaces) -> Iterator[FolderWorkspace]:
    with place.open(HERE) as opened:
        yield opened


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the workspaces, with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


def test_what_is_written_is_read_again(workspace: FolderWorkspace) -> None:
    written = workspace.write("notes/计划.md", b"one\ntwo\n")
    assert (written.path, written.size_bytes) == ("notes/计划.md", 8)
    assert workspace.read("notes/计划.md") == b"one\ntwo\n"
    assert workspace.read("notes/计划.md", offset=4, limit=3) == b"two"
    assert workspace.write("notes/计划.md", b"three").size_bytes == 5
    assert [file.path for file in workspace.files()] == ["notes/计划.md"]
    assert workspace.files("notes") == workspace.files()


def test_what_is_not_there_is_not_found(workspace: FolderWorkspace) -> None:
    for path in ("gone.md", "no/such/folder.md"):
        with pytest.raises(NotFound):
            workspace.read(path)
    with pytest.raises(NotFound):
        workspace.files("nowhere")


def test_a_folder_is_not_read_nor_written_over(workspace: FolderWorkspace) -> None:
    workspace.write("notes/a", b"a")
    with pytest.raises(Invalid, match="folder"):
        workspace.read("notes")
    with pytest.raises(Conflict):
        workspace.write("notes", b"x")
    with pytest.raises(Invalid):
        workspace.write("notes/a/b", b"x")
    for top in ("", "."):
        with pytest.raises(Invalid):
            workspace.write(top, b"x")


def test_two_conversations_and_two_owners_share_nothing(place: FolderWorkspaces) -> None:
    refs = [HERE, Ref("local", "trip2"), Ref("other", "trip"), Ref("local", "TRIP"), Ref("local", "../trip")]
    for at, ref in enumerate(refs):
        with place.open(ref) as opened:
            assert opened.files() == []
            opened.write("mine", bytes([at]))
    for at, ref in enumerate(refs):
        with place.open(ref) as opened:
            assert opened.read("mine") == bytes([at])
    assert {info.ref for info in place.everything()} == set(refs)
    assert all(info.path.is_relative_to(place.root) and ".." not in info.path.parts for info in place.everything())


# --- nothing leaves ---------------------------------------------------------------------------------


def test_i26_a_link_to_a_file_outside_is_neither_read_nor_written_through(
    workspace: FolderWorkspace, outside: Path
) -> None:
    (workspace.path / "link").symlink_to(outside / "secret")
    with pytest.raises(Invalid, match="link"):
        workspace.read("link")
    with pytest.raises(Invalid, match="link"):
        workspace.size("link")
    assert workspace.files() == []
    workspace.write("link", b"mine")
    assert (outside / "secret").read_bytes() == SECRET
    assert workspace.read("link") == b"mine"


def test_i26_a_link_to_a_folder_outside_is_not_walked(workspace: FolderWorkspace, outside: Path) -> None:
    (workspace.path / "door").symlink_to(outside, target_is_directory=True)
    for act in (
        lambda: workspace.read("door/secret"),
        lambda: workspace.write("door/mine", b"x"),
        lambda: workspace.files("door"),
    ):
        with pytest.raises(Invalid, match="link"):
            act()
    assert workspace.files() == []
    assert sorted(os.listdir(outside)) == ["secret"]


def test_i26_a_second_name_of_a_file_outside_is_not_read(workspace: FolderWorkspace, outside: Path) -> None:
    os.link(outside / "secret", workspace.path / "hard")
    with pytest.raises(Invalid, match="other names"):
        workspace.read("hard")
    workspace.write("hard", b"mine")
    assert (outside / "secret").read_bytes() == SECRET


def test_i26_a_pipe_does_not_hang_and_a_device_is_no_file(workspace: FolderWorkspace) -> None:
    os.mkfifo(workspace.path / "pipe")
    with pytest.raises(Invalid, match="regular file"):
        workspace.read("pipe")


def test_i26_an_upload_folder_that_is_a_link_takes_no_upload(workspace: FolderWorkspace, outside: Path) -> None:
    (workspace.path / "uploads").symlink_to(outside, target_is_directory=True)
    with pytest.raises(Invalid):
        workspace.upload("a.txt", b"text")
    assert sorted(os.listdir(outside)) == ["secret"]


def test_i26_a_workspace_that_is_itself_replaced_by_a_link_is_not_opened(
    place: FolderWorkspaces, outside: Path
) -> None:
    with place.open(HERE) as opened:
        path = opened.path
    path.rmdir()
    path.symlink_to(outside, target_is_directory=True)
    with pytest.raises(OSError, match=r"directory|link"):
        place.open(HERE)


def test_i26_a_folder_swapped_for_a_link_again_and_again_never_leads_out(
    workspace: FolderWorkspace, outside: Path
) -> None:
    """The race that a check before an open loses: whoever swaps is as fast as they can be."""
    workspace.write("swap/secret", b"inside")
    swap, aside = workspace.path / "swap", workspace.path / "aside"
    done = threading.Event()

    def swapping() -> None:
        while not done.is_set():
            swap.rename(aside)
            swap.symlink_to(outside, target_is_directory=True)
            swap.unlink()
            aside.rename(swap)

    swapper = threading.Thread(target=swapping)
    swapper.start()
    seen: set[bytes | None] = set()
    try:
        for _ in range(2_000):
            try:
                seen.add(workspace.read("swap/secret"))
            except (Invalid, NotFound):
                seen.add(None)
    finally:
        done.set()
        swapper.join()
    assert None in seen, "nothing was in the way: no race was run"
    assert seen <= {b"inside", None}


# --- quotas -----------------------------------------------------------------------------------------


def test_a_file_over_the_quota_is_not_written(workspace: FolderWorkspace) -> None:
    workspace.write("big", b"x" * 900)
    with pytest.raises(Conflict, match="1,000 bytes"):
        workspace.write("more", b"x" * 101)
    workspace.write("big", b"y" * 1_000)
    assert [(file.path, file.size_bytes) for file in workspace.files()] == [("big", 1_000)]


def test_there_are_only_so_many_files(workspace: FolderWorkspace) -> None:
    for at in range(5):
        workspace.write(f"f{at}", b"")
    with pytest.raises(Conflict, match="5 files"):
        workspace.upload("f.txt", b"t")
    workspace.write("f0", b"again")
    assert len(workspace.files()) == 5
    assert workspace.uploads() == []


def test_writers_at_once_do_not_break_the_quota_together(place: FolderWorkspaces) -> None:
    refused = []

    def write(at: int) -> None:
        with place.open(HERE) as opened:
            try:
                opened.write(f"f{at}", b"x" * 300)
            except Conflict:
                refused.append(at)

    writers = [threading.Thread(target=write, args=(at,)) for at in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with place.open(HERE) as opened:
        assert sum(file.size_bytes for file in opened.files()) == 900
    assert len(refused) == 5


# --- uploads ----------------------------------------------------------------------------------------


def test_an_upload_is_kept_with_its_hash_and_type(workspace: FolderWorkspace) -> None:
    upload = workspace.upload("report.csv", b"a,b\n1,2\n", mime="text/csv; charset=utf-8")
    assert (upload.name, upload.path, upload.size_bytes, upload.mime) == (
        "report.csv", "uploads/report.csv", 8, "text/csv"
    )  # fmt: skip
    assert upload.sha256 == sha256(b"a,b\n1,2\n").hexdigest()
    assert workspace.read(upload.path) == b"a,b\n1,2\n"
    assert workspace.uploads() == [upload]


def test_the_same_upload_again_is_one_and_another_by_its_name_is_two(workspace: FolderWorkspace) -> None:
    first = workspace.upload("a.txt", b"one")
    assert workspace.upload("a.txt", b"one") == first
    second = workspace.upload("a.txt", b"two")
    assert (second.name, second.path) == ("a.txt", "uploads/a-2.txt")
    assert [one.path for one in workspace.uploads()] == ["uploads/a.txt", "uploads/a-2.txt"]


@pytest.mark.parametrize("name", ["", "..", "a/b.txt", "/a.txt", "NUL", "a\x00.txt", "C:a.txt"])
def test_i26_an_upload_is_named_by_a_plain_name(workspace: FolderWorkspace, name: str) -> None:
    with pytest.raises(Invalid):
        workspace.upload(name, b"text")
    assert workspace.files() == []


# --- idle, gone, erased -----------------------------------------------------------------------------


def test_one_that_is_open_is_in_use_and_not_removed(place: FolderWorkspaces) -> None:
    with place.open(HERE) as opened:
        opened.write("a", b"a")
        assert [info.in_use for info in place.everything()] == [True]
        assert place.remove(HERE) is False
        assert opened.read("a") == b"a"
    assert [info.in_use for info in place.everything()] == [False]
    assert place.remove(HERE) is True
    assert list(place.everything()) == []


def test_one_that_another_process_has_open_is_in_use_until_it_dies(place: FolderWorkspaces) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from everthread.workspaces import FolderWorkspaces; from everthread.core.nouns import Ref\n"
        f"held = FolderWorkspaces(Path({str(place.root)!r})).open(Ref('local', 'trip'))\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert place.remove(HERE) is False
        other.kill()
        other.wait()
    assert place.remove(HERE) is True


def test_its_last_use_is_known_without_opening_it(place: FolderWorkspaces) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    place.open(HERE).close()
    (info,) = place.everything()
    assert before < info.used_at < datetime.now(UTC) + timedelta(seconds=1)
    (looked_again,) = place.everything()
    assert looked_again.used_at == info.used_at


def test_after_a_clean_up_the_next_to_open_it_is_told_which_uploads_are_gone(place: FolderWorkspaces) -> None:
    with place.open(HERE) as opened:
        opened.upload("passport.txt", b"text")
    place.remove(HERE)
    with place.open(HERE) as opened:
        assert opened.notice is not None
        assert "cleaned" in opened.notice
        assert "passport.txt" in opened.notice
        assert (opened.files(), opened.uploads()) == ([], [])
    with place.open(HERE) as opened:
        assert opened.notice is None


def test_one_that_vanished_is_made_anew_with_a_notice(place: FolderWorkspaces) -> None:
    with place.open(HERE) as opened:
        opened.upload("passport.txt", b"text")
        (opened.path / "uploads" / "passport.txt").unlink()
        (opened.path / "uploads").rmdir()
        opened.path.rmdir()
        assert not opened.is_there()
        with pytest.raises(NotFound, match="gone"):
            opened.write("a", b"a")
    with place.open(HERE) as opened:
        assert opened.notice is not None
        assert "was missing and has been created again" in opened.notice
        assert "passport.txt" in opened.notice
        opened.write("a", b"a")


def test_one_that_was_expected_and_is_not_there_is_told_of(place: FolderWorkspaces) -> None:
    with place.open(HERE) as opened:
        assert opened.notice is None
    with place.open(Ref("local", "other"), expected=True) as opened:
        assert opened.notice is not None


def test_erase_takes_what_is_in_use_and_what_is_locked_away(place: FolderWorkspaces) -> None:
    with place.open(HERE) as opened:
        opened.write("deep/er/a", SECRET)
        os.chmod(opened.path / "deep", 0o000)
        assert place.erase("local", "trip") >= 0
        assert not opened.is_there()
    assert [path for path in place.root.rglob("*") if path.is_file()] == []


def test_erase_of_an_owner_takes_all_of_theirs_and_no_other(place: FolderWorkspaces) -> None:
    for ref in (HERE, Ref("local", "b"), Ref("other", "trip")):
        with place.open(ref) as opened:
            opened.write("a", b"a")
    assert place.erase("local", None) == 2
    assert [info.ref for info in place.everything()] == [Ref("other", "trip")]
    assert place.erase("nobody", None) == 0


def test_what_is_off_the_record_goes_when_it_is_closed(place: FolderWorkspaces) -> None:
    with place.open(HERE, off_record=True) as opened:
        opened.write("a", b"a")
    place.open(Ref("local", "b")).close()
    place.close()
    assert [info.ref for info in place.everything()] == [Ref("local", "b")]


def test_those_of_a_database_in_memory_go_with_it() -> None:
    place = TemporaryWorkspaces()
    with place.open(HERE) as opened:
        opened.write("a", b"a")
    assert place.root.is_dir()
    place.close()
    assert not place.root.exists()


def test_files_are_for_this_user_only(workspace: FolderWorkspace) -> None:
    workspace.write("notes/a", b"a")
    for path in (workspace.path, workspace.path / "notes", workspace.path / "notes/a"):
        assert path.stat().st_mode & 0o077 == 0
