"""The proof: one hash chain over a conversation's log, linear by seq, whatever the branches.

    commitment = sha256(salt, raw)
    chain      = sha256(chain before; seq, id, kind, revises, parent_seq, role, created_at, commitment)

Since version 2 a link also covers the number of the revision, the origin, and whether a secret was seen. Entries
written before keep their link and are verified by version 1.

The salt is destroyed with the payload on erase, so that the commitment of a short text cannot be guessed
from what stays; the chain still verifies.

What a conversation's own row says (title, metadata, deleted or not) is no part of its log. A chain of its own commits
to it at each change, so that an append costs nothing more:

    commitment = sha256(salt, settings as JSON)
    chain      = sha256(chain before; number, changed_at, commitment)
"""

from __future__ import annotations

import json
import os
from hashlib import sha256
from typing import Any, NamedTuple

from everthread.core.clock import to_micros
from everthread.core.entries import Entry, Flag
from everthread.core.nouns import ConversationInfo

SALT_BYTES = 16
VERSION = 2
"""The version that new entries are linked by."""
_SECRET = int(Flag.SECRET)


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
    revision: int = 1,
    origin: int = 0,
    flags: int = 0,
    version: int = VERSION,
) -> bytes:
    """The chain after this entry. No field can hold a NUL, so a NUL between them makes the bytes unambiguous."""
    fields = f"{seq}\x00{id}\x00{kind}\x00{revises}\x00{change_kind}\x00{parent_seq}\x00{role}\x00{created_at}\x00"
    if version >= 2:
        fields += f"{version}\x00{revision}\x00{origin}\x00{flags & _SECRET}\x00"
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
        revision=entry.revision,
        origin=entry.origin,
        flags=entry.flags,
        version=entry.chain_version,
    )


class SettingsChange(NamedTuple):
    """One link of the chain over what a conversation's row says of it."""

    number: int
    changed_at: int
    salt: bytes | None
    """None once a later change, or an erase, has taken its place."""
    commitment: bytes
    chain: bytes


def settings_genesis(owner: str, conversation: str) -> bytes:
    """The chain before the first change."""
    return sha256(f"everthread settings\x00{owner}\x00{conversation}".encode()).digest()


def commit_to_settings(salt: bytes, info: ConversationInfo) -> bytes:
    """The commitment to what a conversation's row says of it."""
    return sha256(salt + json.dumps(settings_of(info), sort_keys=True).encode()).digest()


def settings_of(info: ConversationInfo) -> dict[str, Any]:
    """What a conversation's row says of it, beside its log."""
    return {
        "parent_id": info.parent_id,
        "title": info.title,
        "metadata": info.metadata,
        "is_active": info.is_active,
        "off_record": info.off_record,
        "created_at": to_micros(info.created_at),
        "deleted_at": None if info.deleted_at is None else to_micros(info.deleted_at),
    }


def link_settings(before: bytes, number: int, changed_at: int, commitment: bytes) -> bytes:
    """The chain after this change."""
    return sha256(before + f"{number}\x00{changed_at}\x00".encode() + commitment).digest()


def next_change(before: SettingsChange | None, info: ConversationInfo, now: int) -> SettingsChange:
    """The link for what the row says now."""
    salt = os.urandom(SALT_BYTES)
    number = 1 if before is None else before.number + 1
    commitment = commit_to_settings(salt, info)
    link_before = settings_genesis(info.owner, info.id) if before is None else before.chain
    return SettingsChange(number, now, salt, commitment, link_settings(link_before, number, now, commitment))
