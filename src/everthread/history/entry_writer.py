"""The writer of log entries that intents use: it gives each the next seq and its link of the hash chain."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from everthread.core import chain
from everthread.core.entries import Entry, Flag, Kind, Revision
from everthread.core.errors import Erased
from everthread.core.log import BranchRow, IntentInputs, Touch
from everthread.core.nouns import Receipt
from everthread.history.ingest import Prepared, says_the_same
from everthread.history.stubs import is_stub


class EntryWriter:
    """Writes entries one after the other: gives each the next seq and links the chain."""

    def __init__(self, seen: IntentInputs, now: int, salts: int) -> None:
        self._seq = seen.head.entry_count
        self._now = now
        self._salts = os.urandom(chain.SALT_BYTES * salts)
        self.chain = seen.head.chain
        self.written: list[Entry] = []
        self.texts: list[str | None] = []
        """The searchable text of each new entry; None if it is still to be read from the entry."""

    def write(
        self,
        *,
        id: str,
        kind: Kind,
        role: str,
        raw: bytes,
        tokens: int = 0,
        revises: int | None = None,
        change_kind: int | None = None,
        revision: int = 1,
        parent_seq: int | None = None,
        branch: int = 0,
        depth: int = 0,
        flags: int = 0,
        created_at: int | None = None,
        text: str | None = None,
        origin: int = 0,
    ) -> int:
        self._seq += 1
        start = len(self.written) * chain.SALT_BYTES
        salt = self._salts[start : start + chain.SALT_BYTES]
        at = self._now if created_at is None else created_at
        flags, origin = int(flags), int(origin)
        self.chain = chain.link(
            self.chain,
            seq=self._seq,
            id=id,
            kind=int(kind),
            revises=revises,
            change_kind=change_kind,
            parent_seq=parent_seq,
            role=role,
            created_at=at,
            commitment=chain.commit(salt, raw),
            revision=revision,
            origin=origin,
            flags=flags,
        )
        entry = Entry(
            self._seq, id, int(kind), role, revises, change_kind, revision, parent_seq, branch, depth, at, tokens, salt,
            self.chain, raw, None, None, flags, None, origin, chain.VERSION,
        )  # fmt: skip
        self.written.append(entry)
        self.texts.append(text)
        return self._seq


def add(message: Prepared, writer: EntryWriter, branch: BranchRow) -> tuple[BranchRow, Receipt]:
    """Write a new message at the end of the branch. A framework's summary is stored without a place in the order."""
    is_message = message.kind is Kind.MESSAGE
    depth = branch.leaf_depth + 1 if is_message else 0
    seq = writer.write(
        id=message.id,
        kind=message.kind,
        role=message.role,
        raw=message.raw,
        tokens=message.tokens,
        parent_seq=(branch.leaf_seq or None) if is_message else None,
        branch=branch.number,
        depth=depth,
        flags=message.flags,
        text=message.text,
        origin=message.origin,
    )
    receipt = Receipt(message.id, seq, 1, True)
    if not is_message:
        return branch, receipt
    return BranchRow(branch.number, branch.parent, branch.fork_seq, seq, depth, branch.created_at), receipt


def revise(
    message: Prepared, known: Entry, writer: EntryWriter, touches: list[Touch], now: int, stubs: Iterable[Entry] = ()
) -> Receipt:
    """Write a message whose id is already in the log: nothing for the same content, a revision for other content.

    `stubs` are those that the log has of it already.
    """
    if known.raw is None:
        raise Erased(f"message {message.id!r} was erased; a message with its id cannot be written again")
    if says_the_same(message, known):
        return Receipt(message.id, known.seq, known.revision, False)
    if same := next((one for one in stubs if says_the_same(message, one)), None):
        return Receipt(message.id, same.seq, same.revision, False)
    place = known.place_seq
    stands_in = is_stub(message.payload, json.loads(known.raw))
    seq = writer.write(
        id=message.id,
        kind=Kind(known.kind),
        role=message.role,
        raw=message.raw,
        tokens=message.tokens,
        revises=place,
        change_kind=Revision.STUB if stands_in else Revision.REPLACE,
        revision=known.revision + 1,
        parent_seq=known.parent_seq,
        branch=known.branch,
        depth=known.depth,
        flags=message.flags | known.flags & (Flag.DELETED | Flag.PINNED | Flag.QUARANTINED),
        text=message.text,
        origin=message.origin,
    )
    if not stands_in:  # history keeps showing what a stub stands for
        touches.append(Touch(place, now, newest_seq=seq))
    return Receipt(message.id, seq, known.revision + 1, True)
