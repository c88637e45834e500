"""Evidence that a third party can check without us: prove."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import typer

from everthread import prove as proof
from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.options import ConversationArgument
from everthread.core.chain import settings_of
from everthread.core.clock import system_clock, to_micros
from everthread.core.entries import Entry, Flag
from everthread.core.errors import Conflict, Invalid, MissingExtra
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.history.archive import entry_of
from everthread.imports.find import find_conversation

_PAGE = 500
NEEDS_EXTRA = "signing needs an extra: pip install 'everthread[sign]'"
KeyOption = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="Sign with this Ed25519 key (`openssl genpkey -algorithm ed25519`)."),
]


@command(app)
async def prove(
    cli: Invocation,
    conversation: ConversationArgument,
    key: KeyOption = None,
) -> None:
    """Print a bundle that proves a conversation to others: `python -m everthread.prove BUNDLE` checks it without us."""
    pem = None if key is None else read_key(key)
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        async for value in bundle(et.store, Ref(found.owner, found.id), pem):
            cli.out.document(value)


def read_key(file: Path) -> bytes:
    """A private key, as the file has it."""
    try:
        return file.read_bytes()
    except OSError as problem:
        raise Invalid(
            f"{file} cannot be read: {problem.strerror}; `openssl genpkey -algorithm ed25519 -out {file}` makes a key",
            field="key",
        ) from problem


def signed(head: dict[str, Any], pem: bytes) -> dict[str, Any]:
    """A head with its signature."""
    try:
        return proof.sign(head, pem, to_micros(system_clock()))
    except ImportError as problem:
        raise MissingExtra(NEEDS_EXTRA) from problem
    except (ValueError, TypeError) as problem:
        raise Invalid(f"must be an unencrypted Ed25519 private key: {problem}", field="key") from problem


async def bundle(store: Store, ref: Ref, pem: bytes | None) -> AsyncIterator[dict[str, Any]]:
    """The values of a bundle, one a line."""
    info = await store.conversations.get(ref)
    changes: list[Any] = []
    while page := await store.conversations.changes(ref, after=len(changes), limit=_PAGE):
        changes += page
    newest = changes[-1] if changes else None
    head = {
        "owner": info.owner,
        "conversation_id": info.id,
        "count": info.entry_count,
        "chain": info.chain.hex(),
        "changes": len(changes),
        "changes_chain": "" if newest is None else newest.chain.hex(),
    }
    salt = None if newest is None or newest.salt is None else newest.salt.hex()
    first = {"head": head, "settings": settings_of(info) if changes else None, "settings_salt": salt}
    yield {"everthread": "proof", "version": proof.VERSION, **first}
    after = 0
    while after < info.entry_count and (entries := await store.log.scan(ref, after=after, limit=_PAGE)):
        for entry in entries:
            if entry.seq <= info.entry_count:
                yield {"entry": _proved(entry)}
        after = entries[-1].seq
    for change in changes:
        body = {"number": change.number, "changed_at": change.changed_at, "commitment": change.commitment.hex()}
        yield {"change": body}
    now = await store.conversations.get(ref)
    if settings_of(now) != settings_of(info):
        raise Conflict(f"conversation {ref.id!r} was changed while it was read; prove it again")
    if pem is not None:
        yield {"signed": signed(head, pem)}


def _proved(entry: Entry) -> dict[str, Any]:
    """An entry without what follows from the others: nothing would prove it."""
    told = entry_of(entry) | {"flags": entry.flags & Flag.SECRET}
    return {name: value for name, value in told.items() if name not in proof.DERIVED_FIELDS}
