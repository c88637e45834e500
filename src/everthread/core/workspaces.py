"""Workspaces: the folder that a conversation's tools and uploads live in, and the port that keeps such folders.

A path inside one is a list of plain names: `check_path` refuses whatever could mean a place elsewhere, on this system
or on the one the folder is copied to. That is the first wall; the adapter, which follows no link, is the second.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from everthread.core.errors import Invalid
from everthread.core.nouns import Ref

MAX_PATH_CHARACTERS = 1024
MAX_NAME_BYTES = 200
"""Below the 255 of most file systems: an unfinished file has a longer name."""
MAX_DEPTH = 32
UPLOADS = "uploads"
"""The folder inside a workspace that uploads are put into."""
IDLE_DAYS = 7

_DEVICES = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$|clock\$)(?:\..*)?", re.IGNORECASE)
_FORBIDDEN = frozenset('<>:"|?*\\')
"""Characters that Windows forbids in a file name, and the backslash, its path separator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much a workspace may hold."""

    max_files: int = 1_000
    max_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file in a workspace.

    ```python
    workspace = await et.workspaces.open(conv)
    print([(file.path, file.size_bytes) for file in workspace.files()])
    workspace.close()
    ```
    """

    path: str
    size_bytes: int
    modified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that was uploaded into a workspace.

    ```python
    workspace = await et.workspaces.open(conv)
    upload = workspace.upload("notes.txt", b"two seats by the window")
    print(upload.path, upload.mime, upload.sha256)
    workspace.close()
    ```
    """

    name: str
    """As it was called."""
    path: str
    """Where in the workspace it is."""
    size_bytes: int
    sha256: str
    mime: str
    uploaded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceInfo:
    """The size and last use of a workspace, read without opening it.

    ```python
    report = await et.workspaces.clean(idle_days=30, dry_run=True)
    print([(found.ref.id, found.files, found.used_at) for found in report.removed])
    ```
    """

    ref: Ref
    path: Path
    files: int
    size_bytes: int
    used_at: datetime
    """When somebody last opened it or wrote into it."""
    in_use: bool
    off_record: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanReport:
    """Which workspaces a clean-up removed, or would remove, and how many it left.

    ```python
    report = await et.workspaces.clean(idle_days=30, dry_run=True)
    print(len(report.removed), "idle,", report.in_use, "in use,", report.size_bytes, "bytes")
    ```
    """

    removed: tuple[WorkspaceInfo, ...]
    in_use: int
    recent: int
    dry_run: bool

    @property
    def size_bytes(self) -> int:
        """How many bytes the removed workspaces had."""
        return sum(one.size_bytes for one in self.removed)


class Workspace(Protocol):
    """An open workspace. Its methods block, so call them from threads; while it is open no clean-up removes it.

    ```python
    workspace = await et.workspaces.open(conv)
    workspace.write("notes/plan.md", b"# Plan")
    print(workspace.read("notes/plan.md"))
    workspace.close()
    ```
    """

    path: Path
    """The folder, for programs that need one."""
    notice: str | None
    """A note for the user of the workspace, such as that its files were cleaned up or had vanished."""

    def is_there(self) -> bool:
        """Whether the folder still exists."""

    def read(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Return the bytes of a file, or a part of them. Raises NotFound, or Invalid for what is not a plain file."""

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""

    def write(self, path: str, body: bytes) -> FileInfo:
        """Write a whole file, creating folders as needed. Raises Conflict when it would exceed the quota."""

    def files(self, folder: str = "") -> Sequence[FileInfo]:
        """List the files in a folder and below it, by name."""

    def upload(self, name: str, body: bytes, *, mime: str | None = None) -> Upload:
        """Store an uploaded file. Raises Invalid when its bytes are not what its name or `mime` claims."""

    def uploads(self) -> Sequence[Upload]:
        """List the uploads, oldest first."""

    def close(self) -> None:
        """Release the workspace."""


class Workspaces(Protocol):
    """A store of workspaces. Its methods block: call them from threads."""

    root: Path
    idle_days: float
    """After how many a clean-up removes one, unless it says otherwise."""

    def open(self, ref: Ref, *, expected: bool = False, off_record: bool = False) -> Workspace:
        """Open the workspace of a conversation, creating it if needed. `expected` says that it should exist already, so
        that a vanished one is noted."""

    def path(self, ref: Ref) -> Path:
        """The folder that a conversation's files are in, whether it exists or not."""

    def uploads(self, ref: Ref) -> Sequence[Upload]:
        """List the uploads of a conversation, oldest first, without opening its workspace."""

    def everything(self) -> Iterator[WorkspaceInfo]:
        """Iterate over all workspaces."""

    def remove(self, ref: Ref) -> bool:
        """Remove the files of an unused workspace and leave a note of that. Returns False when it is in use."""

    def erase(self, owner: str, conversation: str | None) -> int:
        """Destroy a conversation's workspace or, with None, all of an owner's, in use or not. Returns the number of
        files removed."""

    def used_before(self, erasures: Iterable[tuple[str, str | None, datetime]]) -> Iterator[Ref]:
        """Iterate over the workspaces of these conversations and, with None, over those of an owner that were last used
        before then."""

    def close(self) -> None:
        """Destroy the workspaces of off-record conversations."""


def files_url(conversation_id: str) -> str:
    """What the address of a conversation's files begins with, for whoever asks a service for them."""
    return f"/api/v1/conversations/{quote(conversation_id, safe='')}/files"


def check_path(path: object) -> tuple[str, ...]:
    """Split a path inside a workspace into its names (none for the top folder). Raises Invalid when it could lead out
    of the workspace."""
    if not isinstance(path, str):
        raise Invalid(f"must be a text such as notes/plan.md, not {type(path).__name__}", field="path")
    if len(path) > MAX_PATH_CHARACTERS:
        raise Invalid(f"must have at most {MAX_PATH_CHARACTERS} characters, this has {len(path)}", field="path")
    if path.startswith(("/", "\\", "~")) or path[1:2] == ":":
        raise Invalid("must be relative to the workspace, such as notes/plan.md", field="path")
    names = tuple(check_name(name, "path") for name in path.split("/") if name not in ("", "."))
    if len(names) > MAX_DEPTH:
        raise Invalid(f"must not be deeper than {MAX_DEPTH} folders", field="path")
    return names


def check_name(name: str, field: str = "name") -> str:
    """One name of a file or folder that any system takes for just that."""
    name = unicodedata.normalize("NFC", name)
    if name in ("", ".", ".."):
        raise Invalid("must not leave the workspace: '..' is not allowed", field=field)
    if "/" in name or not _FORBIDDEN.isdisjoint(name):
        raise Invalid(f'must not have any of / \\ < > : " | ? * in a name: {name!r}', field=field)
    if any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in name):
        raise Invalid(f"must not hold control characters: {name!r}", field=field)
    if name[-1] in ". " or name[0] == " " or _DEVICES.fullmatch(name):
        raise Invalid(f"not a portable file name: {name!r}", field=field)
    if len(name.encode()) > MAX_NAME_BYTES:
        raise Invalid(f"has a path component of more than {MAX_NAME_BYTES} bytes: {name[:40]!r}…", field=field)
    return name
