"""What a lane looks like from outside, and how it must look after each of its steps.

The expected states come from the store in memory, worked through the same script without any crash. Salts, times
and ids that the log made up are left out: chance decides them. All else must be equal, to the byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import everthread
from everthread import Everthread, NotFound
from everthread.core.entries import Entry
from everthread.core.log import BranchRow
from everthread.core.nouns import ConversationInfo, Ref
from everthread.history.search_query import parse_query
from tests.crash.script import Lane, script
from tests.crash.verbs import Answer, do

_ID, _RAW = Entry._fields.index("id"), Entry._fields.index("raw")

State = Mapping[str, Any]
"""The conversations of a lane, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A lane without crashes: the state before its first step and after each, and each answer."""

    lane: Lane
    states: Sequence[State]
    answers: Sequence[Answer]


@cache
def expected(seed: int, erases: int) -> Sequence[Expected]:
    """How every lane of a script is to go."""
    return asyncio.run(_without_crash(script(seed, erases)))


async def _without_crash(lanes: Sequence[Lane]) -> Sequence[Expected]:
    found = []
    async with everthread.open("memory://", worker=False) as et:
        for lane in lanes:
            states, answers = [await state_of(et, lane)], []
            for step in lane.steps:
                answers.append(await do(et, lane, step, again=False))
                states.append(await state_of(et, lane))
            found.append(Expected(lane=lane, states=states, answers=answers))
    return found


async def state_of(et: Everthread, lane: Lane) -> State:
    """The conversations of a lane as they are now."""
    state: dict[str, Any] = {}
    for info in await et.store.maintenance.heads():
        name = _name(info, lane)
        if name is None or (name != info.id and info.entry_count == 0):  # a copy that a crash left empty
            continue
        assert name not in state, f"{name} was made twice"
        state[name] = await _conversation(et, info, lane)
    return state


def _name(info: ConversationInfo, lane: Lane) -> str | None:
    if info.id == lane.name or info.id.startswith(f"{lane.name}-"):
        return info.id
    return info.title if info.title is not None and info.title.endswith(f" of {lane.name}") else None


async def _conversation(et: Everthread, info: ConversationInfo, lane: Lane) -> Mapping[str, Any]:
    ref = Ref(info.owner, info.id)
    entries = await et.store.log.scan(ref, after=0, limit=info.entry_count + 1)
    try:
        branches, active = await et.store.log.branches(ref)
    except NotFound:
        return {"erased": True, "entries": [_entry(entry) for entry in entries]}
    seqs = [] if info.deleted_at else await _seqs_with(et, lane.word, ref)
    return {
        "row": (info.parent_id, info.title, info.metadata, info.is_active, info.off_record),
        "is_deleted": info.deleted_at is not None,
        "entries": [_entry(entry) for entry in entries],
        "branches": [_branch(row) for row in branches],
        "active": active,
        "found": seqs,
    }


async def _seqs_with(et: Everthread, word: str, ref: Ref) -> list[int]:
    """Where a word is found, by the index alone: how hits are ranked and cut to snippets no crash changes."""
    found = await et.store.search.matches(ref.owner, ref.id, parse_query(word), cap=1000, any_word=False)
    return sorted(entry.seq if entry.is_place else entry.revises or entry.seq for _, entry, *_ in found.found)


def _entry(entry: Entry) -> tuple[Any, ...]:
    id = entry.id if entry.id.startswith(("m", "child")) else "made"
    known = entry._replace(id=id, created_at=0, updated_at=None, salt=None, chain=b"", commitment=None)
    return (*known, entry.updated_at is not None, entry.salt is not None, entry.commitment is not None)


def _branch(row: BranchRow) -> tuple[Any, ...]:
    return tuple(row._replace(created_at=0))


def erased_words(states: Mapping[str, State], lanes: Sequence[Lane]) -> set[str]:
    """The words of erased messages that no other message holds: a copy has entries of its own."""
    entries = [entry for state in states.values() for row in state.values() for entry in row["entries"]]
    kept = b"\0".join(entry[_RAW] or b"" for entry in entries)
    return {
        word
        for lane in lanes
        for entry in states[lane.name].get(lane.name, {"entries": ()})["entries"]
        if entry[_RAW] is None
        for word in lane.own_words.get(entry[_ID], ())
        if word.encode() not in kept
    }
