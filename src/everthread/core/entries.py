"""An entry of the log, and what the views read off it.

The first part of an `Entry` is written once and is covered by the hash chain. The last part (`newest_seq`,
`flags`, `updated_at`) is a projection of later entries, kept on the row so that reading history needs no
second look; it can be rebuilt from the log.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import NamedTuple

SEQ_BITS = 32
"""The bits of an entry's key that hold its seq."""
SEQ_MASK = (1 << SEQ_BITS) - 1
UNCOUNTED = -1
"""The tokens of an entry that its store has yet to count (see `Log.defers_token_count`); no reader ever sees it."""


class Kind(IntEnum):
    """What an entry is."""

    MESSAGE = 0
    SUMMARY = 1
    """A summary that some framework put into its own state: kept, never shown as history."""
    MARK = 2
    """Something that was said *about* a message: deleted, restored, pinned …"""


class Revision(IntEnum):
    """How an entry revises an earlier one."""

    REPLACE = 0
    """Same id, other content: same place in the order, successors stay."""
    STUB = 1
    """A framework's stand-in for a large content: history goes on showing the original."""
    EDIT = 2
    """A sibling with the same parent: a place of its own, at the start of a new branch."""


class Mark(IntEnum):
    """What a mark entry says about its target."""

    DELETED = 0
    RESTORED = 1
    PINNED = 2
    UNPINNED = 3
    REMOVED = 4
    """Removed by a framework from its own state; history goes on showing it."""
    QUARANTINED = 5
    """Taken out of every view, because it is not to be trusted."""
    RELEASED = 6
    RETURNED = 7
    """What had been removed is there again: its line is in the file of its program."""


class EntryOrigin(IntEnum):
    """Which door an entry came through. The door sets it, once; no caller, model or tool can."""

    UNKNOWN = 0
    """Written before origins were kept: it is judged by its role."""
    USER = 1
    """The user, or the program that everthread is part of."""
    MODEL = 2
    OWN_TOOL = 3
    OUTSIDE_TOOL = 4
    """A tool of an MCP server, which others run."""
    IMPORT = 5
    """A history of another program."""
    SUBAGENT = 6


class Flag(IntFlag):
    """What is true of an entry now (a projection of later marks, but for SECRET, seen at ingest)."""

    NONE = 0
    DELETED = 1
    PINNED = 2
    ERASED = 4
    SECRET = 8
    QUARANTINED = 16
    REMOVED = 32
    """Its framework took it out of its own state. It is shown all the same."""


HIDDEN_FLAGS = Flag.DELETED | Flag.ERASED | Flag.QUARANTINED
"""An entry with one of these is not shown."""


class Entry(NamedTuple):
    """One row of the log, in the order of the columns read.

    A named tuple rather than a dataclass: 100,000 of them are made in one read, and this is six times cheaper.
    """

    seq: int
    id: str
    kind: int
    role: str
    revises: int | None
    """The seq of the *place* (first revision) this entry revises, or of a mark's target."""
    change_kind: int | None
    """What it does to the entry in `revises`: a `Revision`, or for a mark the `Mark`. Tables and archives say `how`."""
    revision: int
    parent_seq: int | None
    branch: int
    depth: int
    """The number of messages on its path up to and including it; 0 for what has no place in the order."""
    created_at: int
    tokens: int
    salt: bytes | None
    chain: bytes
    raw: bytes | None
    """None once erased."""
    commitment: bytes | None
    """Kept only when raw and salt are gone; before that it follows from them."""
    newest_seq: int | None
    flags: int
    updated_at: int | None
    origin: int = 0
    """An `EntryOrigin`."""
    chain_version: int = 1
    """Which fields its link of the chain covers (core/chain.py)."""

    @property
    def is_place(self) -> bool:
        """Whether this entry has a position of its own in the order of messages."""
        return self.kind == Kind.MESSAGE and self.change_kind in (None, Revision.EDIT)

    @property
    def place_seq(self) -> int:
        """The seq of a message's place: its own, or that of the message it replaces or stands in for."""
        takes_place = self.change_kind in (Revision.REPLACE, Revision.STUB)
        return self.revises if takes_place and self.revises is not None else self.seq

    @property
    def is_frameworks(self) -> bool:
        """Whether it tells what a framework did to its own list: a summary, or the mark of what it removed."""
        return self.kind == Kind.SUMMARY or (self.kind == Kind.MARK and self.change_kind == Mark.REMOVED)

    @property
    def is_erased(self) -> bool:
        return bool(self.flags & Flag.ERASED)


def entry_key(conversation: int, seq: int) -> int:
    """Return the key of an entry in its database: the conversation's number, then the seq. So a conversation's entries
    are adjacent and rise with their seq, and keys of different conversations are far apart."""
    return conversation << SEQ_BITS | seq


def seq_of(entry_key: int) -> int:
    """Return the seq that an entry's key ends with."""
    return entry_key & SEQ_MASK
