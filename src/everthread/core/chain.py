"""The proof: one hash chain over a conversation's log, linear by seq, whatever the branches.

    commitment = sha256(salt, raw)
    chain      = sha256(chain before; seq, id, kind, revises, parent_seq, role, created_at, commitment)

The salt is destroyed with the payload on erase, so that the commitment of a short text cannot be guessed
from what stays; the chain still verifies.
"""

from __future__ import annotations

from hashlib import sha256

from everthread.core.entries import Entry

SALT_BYTES = 16


def genesis(owner: str, conversation: str) -> bytes:
    """The chain before the first entry; it ties the chain to its conversation."""
    return sha256(f"everthread\x00{owner}\x00{conversation}".encode()).digest()


def commit(salt: bytes, raw: bytes) -> bytes:
    """The commitment to a payload."""
    return sha256(salt + raw).digest()


def commitment_of(entry: Entry) -> bytes | None:
    """What the entry is committed to; None when payload and stored commitment are both missing."""
    if isinstance(entry.raw, bytes) and isinstance(entry.salt, bytes):  # a damaged column may hold anything
        return commit(entry.salt, entry.raw)
    return entry.commitment if isinstance(entry.commitment, bytes) else None


def link(
    before: bytes,
    *,
    seq: int,
    id: str,
    kind: int,
    revises: int | None,
    change_kind: int | None,
    parent_seq: int | None,
    role: str,
    created_at: int,
    commitment: bytes,
) -> bytes:
    """The chain after this entry. No field can hold a NUL, so a NUL between them makes the bytes unambiguous."""
    fields = f"{seq}\x00{id}\x00{kind}\x00{revises}\x00{change_kind}\x00{parent_seq}\x00{role}\x00{created_at}\x00"
    return sha256(before + fields.encode() + commitment).digest()


def relink(before: bytes, entry: Entry, commitment: bytes) -> bytes:
    """The chain after a stored entry, computed anew from its columns."""
    return link(
        before,
        seq=entry.seq,
        id=entry.id,
        kind=entry.kind,
        revises=entry.revises,
        change_kind=entry.change_kind,
        parent_seq=entry.parent_seq,
        role=entry.role,
        created_at=entry.created_at,
        commitment=commitment,
    )
