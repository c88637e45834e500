"""Compares the blob store with the log: which blobs are missing, damaged, or unused.

A blob is written before the commit that refers to it, so a crash in between leaves an unused one. It looks just like a
blob whose commit is still to come; only its age distinguishes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from everthread.core.blobs import BlobInfo, Blobs, is_sound
from everthread.core.ports import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobReport:
    """Which blobs are missing, damaged or unused.

    ```python
    report = await et.check_blobs()
    print(report.referred, "ok" if report.ok else [*report.missing, *report.damaged])
    ```
    """

    referred: int
    """How many blobs the log refers to."""
    missing: Sequence[str] = ()
    damaged: Sequence[str] = ()
    """Blobs whose content differs from what was written."""
    unused: Sequence[BlobInfo] = ()
    """Blobs without a reference: left by a crash, or about to be referred to."""

    @property
    def ok(self) -> bool:
        """Whether nothing is missing or damaged."""
        return not self.missing and not self.damaged


async def check(store: Store, blobs: Blobs) -> BlobReport:
    """Read every blob that is referred to, and look for others."""
    there = {one.name: one for one in await asyncio.to_thread(lambda: list(blobs.everything()))}
    referred = await store.maintenance.payload_blobs()
    bodies = {name: await asyncio.to_thread(_state, blobs, name) for name in sorted(referred)}
    return BlobReport(
        referred=len(referred),
        missing=[name for name, state in bodies.items() if state is None],
        damaged=[name for name, state in bodies.items() if state is False],
        unused=[one for name, one in there.items() if name not in referred],
    )


def _state(blobs: Blobs, name: str) -> bool | None:
    """Whether a blob is as it was written; None when it is not there."""
    body = blobs.get(name)
    return None if body is None else is_sound(name, body)


async def sweep(store: Store, blobs: Blobs, *, before: datetime, dry_run: bool = False) -> Sequence[BlobInfo]:
    """Delete the unused blobs written before this time, and return them; with `dry_run` only return them."""
    there = await asyncio.to_thread(lambda: list(blobs.everything()))
    referred = await store.maintenance.payload_blobs()
    old = [one for one in there if one.name not in referred and one.written_at < before]
    if old and not dry_run:
        await store.maintenance.delete_unused_blobs([one.name for one in old])
    return old
