"""Everything that was said in a thread: the log, and what only a checkpoint has, each message once and in order.

The log is the truth. A checkpoint may know more when the archive was begun late or was off for a while: what only it
has is put where its list has it, and the answer says that there are gaps. Summaries are told by their marker and left
out. The answer has the shape of LangGraph's `/threads/{id}/state`, so that a page can show it as it shows a state.

Checkpointers are known here by their verbs alone (`aget_tuple`, or `get_tuple` in a thread).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypedDict

import orjson

from everthread.core import payloads
from everthread.core.entries import Kind
from everthread.core.errors import Invalid
from everthread.core.nouns import Message, Ref
from everthread.core.ports import Log, PathQuery, Store
from everthread.history.made_ids import made_id

CHANNEL = "messages"
REMOVE_ALL = "__remove_all__"
BEGAN_LATE = "archive_began_at"
"""The key of a conversation's metadata that names the checkpoint at which its archive began, if that was not the
first."""
_PAGE = 500

Payload = dict[str, Any]
Source = Literal["archive", "merged", "checkpoint"]


class Gap(TypedDict):
    """A position in a thread's history where something may be missing.

    ```python
    history = await et.full_history("trip")
    for gap in history["gaps"]:
        print(gap["reason"], "after", gap["after"])
    ```
    """

    reason: Literal["not_archived", "archive_began_late", "summarised_unseen", "no_messages"]
    """`no_messages`: a graph ran and the log has none of it, as where its messages are in a channel of another name."""
    after: str | None
    """The id of the message before the gap; None at the beginning."""


class FullHistory(TypedDict):
    """Everything that was said in a thread, as plain JSON in the format of LangGraph's `/threads/{id}/state`.

    ```python
    history = await et.full_history("trip")
    print(len(history["values"]["messages"]), history["source"], history["complete"])
    ```
    """

    values: dict[str, Any]
    next: list[str]
    tasks: list[Any]
    checkpoint: dict[str, Any] | None
    parent_checkpoint: dict[str, Any] | None
    metadata: dict[str, Any]
    created_at: str | None
    source: Source
    """Where the messages come from: the log, the log and the checkpoint, or only the checkpoint."""
    archived_count: int
    checkpoint_count: int
    merged_count: int
    complete: bool
    """Whether it is certain that nothing is missing."""
    gaps: list[Gap]
    next_cursor: str | None


class CheckpointReader(Protocol):
    """What `Everthread.full_history` needs of a checkpointer; every LangGraph saver has it.

    ```py
    history = await et.full_history("trip", saver=checkpointer)
    ```
    """

    def get_tuple(self, config: Any) -> Any:
        """Return the checkpoint that this config names, or None."""

    async def aget_tuple(self, config: Any) -> Any:
        """The same for asyncio; a saver without it raises NotImplementedError, and `get_tuple` runs in a thread."""


# -- the checkpoint --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The part of a thread that a checkpointer has."""

    messages: Sequence[Payload] = ()
    config: Mapping[str, Any] | None = None
    parent: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    created_at: str | None = None


async def snapshot(saver: CheckpointReader, thread_id: str, owner: str) -> Snapshot | None:
    """The newest checkpoint of a thread, with the messages that wait to be applied to it."""
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", "everthread_owner": owner}}
    if hasattr(saver, "without_types"):  # ours: the messages are enough, whatever else is in the state
        saver = saver.without_types()
    found = await _call(saver, "get_tuple", config)
    if found is None:
        return None
    listed = found.checkpoint["channel_values"].get(CHANNEL)
    if listed is None and CHANNEL in found.checkpoint["channel_versions"]:
        listed = await _rebuilt(saver, found.config)
    waiting = [value for _, channel, value in found.pending_writes or () if channel == CHANNEL]
    return Snapshot(
        messages=_with_ids(replayed(listed or [], waiting), thread_id),
        config=found.config["configurable"],
        parent=None if found.parent_config is None else found.parent_config["configurable"],
        metadata=found.metadata,
        created_at=found.checkpoint.get("ts"),
    )


def _with_ids(messages: Sequence[Payload], thread_id: str) -> list[Payload]:
    """The message under its id; one without an id gets the one that captures give it."""
    return [
        payload if payloads.message_id(payload) else {**payload, "id": made_id([thread_id], index, payload)}
        for index, payload in enumerate(messages)
    ]


async def _call(saver: Any, verb: str, *given: Any, **named: Any) -> Any:
    """The checkpoint by the async method, or by the blocking one in a thread."""
    try:
        return await getattr(saver, f"a{verb}")(*given, **named)
    except NotImplementedError:
        return await asyncio.to_thread(getattr(saver, verb), *given, **named)


async def _rebuilt(saver: Any, config: Mapping[str, Any]) -> list[Any]:
    """The list of a delta channel, rebuilt because no checkpoint has all of it."""
    history = (await _call(saver, "get_delta_channel_history", config=config, channels=[CHANNEL]))[CHANNEL]
    seed = _inside(history.get("seed"))
    return list(replayed(seed or [], [value for _, _, value in history["writes"]]))


def replayed(listed: Iterable[Any], writes: Iterable[Any]) -> Sequence[Payload]:
    """A list of messages after some writes, as LangGraph's reducers apply them; without chunks, by id."""
    kept: dict[str, Payload] = {}
    for number, message in enumerate(_flat(_inside(listed))):
        _apply(kept, message, f"listed-{number}")
    for index, write in enumerate(writes):
        value = _inside(write)
        if value is not write:  # an `Overwrite`
            kept.clear()
        for number, message in enumerate(_flat(value)):
            _apply(kept, message, f"written-{index}-{number}")
    return list(kept.values())


def _apply(kept: dict[str, Payload], message: Payload, spare: str) -> None:
    id = payloads.message_id(message)
    if message.get("type") != "remove":
        kept[str(id or spare)] = message
    elif id == REMOVE_ALL:
        kept.clear()
    else:
        kept.pop(str(id), None)


def _inside(value: Any) -> Any:
    """The value inside LangGraph's `Overwrite` or a snapshot of a delta channel."""
    return value.value if hasattr(value, "value") and not hasattr(value, "content") else value


def _flat(value: Any) -> list[Payload]:
    return [_payload(item) for item in (value if isinstance(value, list | tuple) else [value]) if _is_message(item)]


def _is_message(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, Mapping) else getattr(item, "type", None)
    return isinstance(item, Mapping) or (isinstance(kind, str) and not kind.endswith("Chunk"))


def _payload(message: Any) -> Payload:
    return _as_json(message if isinstance(message, Mapping) else message.model_dump(warnings=False))


def _as_json(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which what JSON does not know is text."""
    plain: dict[str, Any] = orjson.loads(orjson.dumps(dict(fields), default=str, option=orjson.OPT_NON_STR_KEYS))
    return plain


# -- merging ---------------------------------------------------------------------------------------------------------


class HistoryPosition(NamedTuple):
    """Where a message stands: after the message of the log with this seq, and among others there."""

    seq: int
    number: int
    """0 for the message of the log itself."""


class Only(NamedTuple):
    """A message that only the checkpoint has."""

    position: HistoryPosition
    payload: Payload


def only_in(listed: Sequence[Payload], seqs: Mapping[str, int]) -> list[Only]:
    """The messages of a list that the log does not have, each after the message that precedes it in the list."""
    found: list[Only] = []
    seq = number = 0
    for payload in listed:
        id = payloads.message_id(payload)
        if isinstance(id, str) and id in seqs:
            seq, number = max(seq, seqs[id]), 0
        elif not payloads.is_summary(payload):
            number += 1
            found.append(Only(HistoryPosition(seq, number), payload))
    return found


def in_order_of_calls(messages: Sequence[Payload]) -> list[Payload]:
    """Results of calls that were made together, in the order of the calls: a log has them as they came in."""
    ordered: list[Payload] = []
    results: list[Payload] = []
    calls: dict[object, int] = {}
    for payload in messages:
        if payloads.role(payload) == "tool":
            results.append(payload)
            continue
        ordered += _sorted(results, calls)
        results, calls = [], _calls(payload)
        ordered.append(payload)
    return ordered + _sorted(results, calls)


def _calls(payload: Payload) -> dict[object, int]:
    made = payloads.fields(payload).get("tool_calls")
    calls = made if isinstance(made, list) else []
    return {call.get("id"): number for number, call in enumerate(calls) if isinstance(call, Mapping)}


def _sorted(results: Sequence[Payload], calls: Mapping[object, int]) -> list[Payload]:
    return sorted(results, key=lambda one: calls.get(payloads.fields(one).get("tool_call_id"), len(calls)))


# -- reading ---------------------------------------------------------------------------------------------------------


async def read(
    store: Store,
    ref: Ref,
    *,
    found: Snapshot | None,
    metadata: Mapping[str, Any] | None,
    limit: int | None,
    cursor: str | None,
) -> FullHistory:
    """The history of a thread; `metadata` is that of its conversation, None when it has none."""
    listed = found.messages if found is not None else ()
    seqs = await _seqs(store.log, ref, listed) if metadata is not None else {}
    only = only_in(listed, seqs)
    branch, count = await _branch(store, ref) if metadata is not None else (None, 0)
    at = None if found is None else found.created_at
    page, rest = await _page(store.log, ref, branch, only, limit, _position(cursor), at)
    gaps = await _gaps(store.log, ref, listed, seqs, metadata)
    if not count and not gaps and (found is not None or await _is_checkpointed(store, ref)):
        gaps = [{"reason": "no_messages", "after": None}]
    if limit is None and cursor is None:
        count = len(page) - len(only)
    return {
        "values": {CHANNEL: in_order_of_calls([payload for _, payload in page])},
        "next": [],
        "tasks": [],
        "checkpoint": None if found is None or found.config is None else dict(found.config),
        "parent_checkpoint": None if found is None or found.parent is None else dict(found.parent),
        "metadata": {} if found is None else _as_json(found.metadata),
        "created_at": None if found is None else found.created_at,
        "source": _source(count, only),
        "archived_count": count,
        "checkpoint_count": len(listed),
        "merged_count": count + len(only),
        "complete": not gaps,
        "gaps": gaps,
        "next_cursor": rest,
    }


def _source(count: int, only: Sequence[Only]) -> Source:
    if not only:
        return "archive"
    return "merged" if count else "checkpoint"


async def _branch(store: Store, ref: Ref) -> tuple[str, int]:
    """The active branch by its name, so that pages stay on it, and how many messages it has."""
    rows, active = await store.log.branches(ref)
    row = next(row for row in rows if row.number == active)
    return row.id, row.leaf_depth


async def _seqs(log: Log, ref: Ref, listed: Sequence[Payload]) -> dict[str, int]:
    """The seqs of a list's messages in the log, including deleted and erased ones, which must not come back."""
    ids = [id for payload in listed if isinstance(id := payloads.message_id(payload), str)]
    seqs: dict[str, int] = {}
    for start in range(0, len(ids), _PAGE):
        for entry in await log.find(ref, ids=ids[start : start + _PAGE]):
            if entry.is_place or entry.kind == Kind.SUMMARY:
                seqs[entry.id] = entry.seq
    return seqs


async def _gaps(
    log: Log, ref: Ref, listed: Sequence[Payload], seqs: Mapping[str, int], metadata: Mapping[str, Any] | None
) -> list[Gap]:
    if metadata is None:
        return [{"reason": "not_archived", "after": None}]
    gaps: list[Gap] = []
    if BEGAN_LATE in metadata or await _begins_with_a_summary(log, ref):
        gaps.append({"reason": "archive_began_late", "after": None})
    before: str | None = None
    for payload in listed:
        id = payloads.message_id(payload)
        if payloads.is_summary(payload) and id not in seqs:
            gaps.append({"reason": "summarised_unseen", "after": before})
        before = id if isinstance(id, str) else before
    return gaps


async def _is_checkpointed(store: Store, ref: Ref) -> bool:
    """Whether a graph has run here: where it keeps its messages in a channel of another name, none were logged."""
    return await store.checkpoints.get(ref, "", None) is not None


async def _begins_with_a_summary(log: Log, ref: Ref) -> bool:
    return any(entry.kind == Kind.SUMMARY for entry in await log.scan(ref, after=0, limit=1, with_tokens=False))


# -- pages -----------------------------------------------------------------------------------------------------------

Item = tuple[HistoryPosition, Payload]


async def _page(
    log: Log,
    ref: Ref,
    branch: str | None,
    only: Sequence[Only],
    limit: int | None,
    after: HistoryPosition,
    at: str | None,
) -> tuple[list[Item], str | None]:
    """The messages behind a position, and the cursor of the next page. It ends between units: results of calls that
    were made together are not parted, so it may be longer than the limit by a few. What only the checkpoint has was
    said at its time, `at`, or before.
    """
    extra = [(one.position, {"created_at": at, **one.payload}) for one in only if one.position > after]
    logged = [] if branch is None else await _logged(log, ref, branch, limit, after)
    items = sorted([*logged, *extra], key=lambda item: item[0])
    if limit is None or len(items) <= limit:
        return items, None
    end = limit
    while end < len(items) and payloads.role(items[end][1]) == "tool":
        end += 1
    is_last = end >= len(items)
    return items[:end], None if is_last else f"{items[end - 1][0].seq}.{items[end - 1][0].number}"


async def _logged(log: Log, ref: Ref, branch: str, limit: int | None, after: HistoryPosition) -> list[Item]:
    """The log's messages behind a position: all, or enough for a page that ends between units."""
    items: list[Item] = []
    seq = after.seq
    while True:
        pairs = await log.path(ref, PathQuery(branch=branch, after=seq, limit=_PAGE))
        items += [(HistoryPosition(place.seq, 0), _shown(Message(newest, place))) for place, newest in pairs]
        if len(pairs) < _PAGE:
            return items
        if limit is not None and any(payloads.role(one) != "tool" for _, one in items[limit:]):
            return items
        seq = pairs[-1][0].seq


def _shown(message: Message) -> Payload:
    """The message as it came, with the id that the log knows it by, and the time at which it was said."""
    payload = message.payload
    if "lc" in payload:
        return {**payload, "created_at": message.created_at.isoformat()}
    named = payload if payloads.message_id(payload) else {**payload, "id": message.id}
    return named if named.get("created_at") else {**named, "created_at": message.created_at.isoformat()}


def _position(cursor: object) -> HistoryPosition:
    if cursor is None:
        return HistoryPosition(0, 0)
    found = re.fullmatch(r"(\d{1,15})\.(\d{1,9})", cursor) if isinstance(cursor, str) else None
    if found is None:
        raise Invalid("is not one that full_history() gave; begin without a cursor", field="cursor")
    return HistoryPosition(int(found[1]), int(found[2]))
