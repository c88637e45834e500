"""Reading the stored events of a turn. Once its answer is in the log, the pieces of its text are stored as lengths only
(`without_texts`), and are read from the log again, byte for byte.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256

from everthread.core import payloads
from everthread.core.entries import Entry
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.core.turns import StoredEvent
from everthread.history.payload_json import payload_of

_PAGE = 2_000
_DIGESTS = "@texts"
"""In the body of a turn's last event: the digest of each text that was left out, by message id. A message may be
replaced later, so of its revisions the one with this digest is the one that was streamed."""
_END_KINDS = ("done", "failed")


async def read_events(store: Store, ref: Ref, turn_id: str, after: int = 0) -> AsyncIterator[Sequence[StoredEvent]]:
    """All events of a turn that are stored, after a number, in pages."""
    while page := await store.turns.events(ref, turn_id, after=after, limit=_PAGE):
        digests = page[-1].body.get(_DIGESTS) if page[-1].kind in _END_KINDS else None
        yield page if digests is None else _with_texts(page, await _find_texts(store, ref, digests))
        after = page[-1].number


def without_texts(events: Sequence[StoredEvent], texts: Mapping[str, str]) -> Sequence[StoredEvent]:
    """The same events with only the length of each piece of these texts (by message id), where the pieces make up the
    text exactly."""
    pieces: dict[str, list[str]] = {id: [] for id in texts}
    for event in events:
        if event.kind == "token" and event.body["message_id"] in pieces:
            pieces[event.body["message_id"]].append(event.body["text"])
    known = {id: text for id, text in texts.items() if text and text == "".join(pieces[id])}
    if not known or events[-1].kind not in _END_KINDS:
        return events
    short, starts = [], dict.fromkeys(known, 0)
    for event in events[:-1]:
        if event.kind == "token" and (id := event.body["message_id"]) in known:
            length = len(event.body["text"])
            event = event._replace(body={"message_id": id, "start": starts[id], "length": length})
            starts[id] += length
        short.append(event)
    last = dict(events[-1].body)
    if last.get("answer_id") in known and last["text"] == known[last["answer_id"]]:
        del last["text"]
    last[_DIGESTS] = {id: _digest(text) for id, text in known.items()}
    return [*short, events[-1]._replace(body=last)]


def _with_texts(events: Sequence[StoredEvent], texts: Mapping[str, str]) -> Sequence[StoredEvent]:
    whole = []
    for event in events[:-1]:
        if "length" in event.body and event.kind == "token":
            id, start = event.body["message_id"], event.body["start"]
            piece = texts.get(id, "")[start : start + event.body["length"]]
            event = event._replace(body={"text": piece, "message_id": id})
        whole.append(event)
    last = {name: value for name, value in events[-1].body.items() if name != _DIGESTS}
    last.setdefault("text", texts.get(last.get("answer_id") or "", ""))
    return [*whole, events[-1]._replace(body=last)]


async def _find_texts(store: Store, ref: Ref, digests: Mapping[str, str]) -> Mapping[str, str]:
    texts: dict[str, str] = {}
    for entry in await store.log.find(ref, ids=list(digests)):
        text = _text(entry)
        if _digest(text) == digests[entry.id]:
            texts[entry.id] = text
    return texts


def _text(entry: Entry) -> str:
    return payloads.text(payload_of(entry)) if entry.raw is not None else ""


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
