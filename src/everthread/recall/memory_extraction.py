"""Read a conversation for what is worth remembering: what its user said since it was last read. Acting.

By plain rules always; by a model, where there is one, for messages in which the rules found nothing. How far it was
read is noted with what was found, in one transaction, so that reading twice remembers once. Subagents are told things
by other programs, not by the user: theirs are not read, nor is what is off the record.

A model may fail, hang, or write anything. A line of its answer is taken only when it names a message that the model was
shown, is of a known kind, says little more than that message does, and speaks of no secret. So the worst that a hostile
model can do is to remember nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from everthread.context.message_format import is_user_turn
from everthread.context.tokens import count_tokens
from everthread.core import payloads
from everthread.core.background import run_in_background
from everthread.core.cancellation import cancel_count
from everthread.core.embeddings import Embedder
from everthread.core.entries import HIDDEN_FLAGS, Entry, Kind, Revision
from everthread.core.errors import ModelError
from everthread.core.ids import new_id
from everthread.core.memories import ALWAYS_SHOWN, Memory, MemoryKind, MemoryScope, Origin
from everthread.core.notes import NoteKind, NoteQuery
from everthread.core.nouns import Message, Ref
from everthread.core.ports import Store
from everthread.core.trust import Trust, trust_of
from everthread.recall.embedding import embed_texts
from everthread.recall.memory_intents import NewMemory, ReadMark, Remember, read_until
from everthread.recall.memory_rules import (
    MAX_READ_CHARACTERS,
    SECRET,
    extract_by_rules,
    may_hold_memories,
)
from everthread.recall.memory_wording import ExtractedMemory
from everthread.text.secrets import find_secrets
from everthread.text.words import fold, split_runs_and_words, stem

_PAGE = 200
_MAX_MODEL_CHARACTERS = 24_000
"""What a model is shown at once; of more, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOptions:
    """Who reads, and how."""

    redact: Callable[[str], str] = str
    """Takes secrets out before anybody reads."""
    model: Extractor | None = None
    timeout_seconds: float = 30.0
    """How long a model may take."""
    embedder: Embedder | None = None
    """Makes the vectors by which memories are found by meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionOutcome:
    """What came of reading."""

    memories: Sequence[Memory] = ()
    model_failed: bool = False
    model_asked: bool = False


async def extract_memories(store: Store, ref: Ref, options: ExtractionOptions) -> ExtractionOutcome:
    """Read on from where it was left; gives what was remembered."""
    info = await store.conversations.get(ref)
    if info.off_record or info.parent_id is not None:
        return ExtractionOutcome()
    until = await memories_read_until(store, ref)
    memories: list[Memory] = []
    model_asked = model_failed = False
    while entries := await store.log.scan(ref, after=until, limit=_PAGE, with_tokens=False):
        texts, by_rules = await run_in_background(_read_by_rules, entries, options.redact)
        by_model: Mapping[int, Sequence[ExtractedMemory]] = {}
        if options.model is not None and not model_failed and (unread := _choose_for_model(texts, by_rules)):
            model_asked = True
            try:
                by_model = await extract_by_model(options.model, unread, options.timeout_seconds)
            except ModelError:
                model_failed = True
        new = [*_as_new_memories(ref, by_rules, "rules"), *_as_new_memories(ref, by_model, "model")]
        trusts = {entry.place_seq: trust_of(entry.origin, entry.role) for entry in entries}
        new.sort(key=lambda one: one.seq or 0)  # what is said later counts, whoever found it
        new = [replace(one, trust=trusts.get(one.seq or 0, Trust.USER)) for one in new]
        vectors = await embed_texts(options.embedder, [one.text for one in new])
        new = [replace(one, vector=vector) for one, vector in zip(new, vectors, strict=True)]
        until = entries[-1].seq
        read_mark = ReadMark(conversation=ref.id, until=until)
        memories += await store.notes.change(ref.owner, Remember(owner=ref.owner, memories=new, read_mark=read_mark))
    return ExtractionOutcome(memories=memories, model_failed=model_failed, model_asked=model_asked)


def _read_by_rules(
    entries: Sequence[Entry], redact: Callable[[str], str]
) -> tuple[dict[int, str], dict[int, list[ExtractedMemory]]]:
    """What users said, without secrets, and what the rules find in it, by seq."""
    texts = {seq: redact(text) for seq, text in _user_texts(entries)}
    return texts, {seq: extract_by_rules(text) for seq, text in texts.items()}


async def memories_read_until(store: Store, ref: Ref) -> int:
    """The seq up to which a conversation was read; 0 if it never was."""
    mark = NoteQuery(kind=NoteKind.MARK, keys=[ReadMark(conversation=ref.id, until=0).key])
    marks = await store.notes.list(ref.owner, mark)
    return read_until(marks[0] if marks else None)


def _user_texts(entries: Sequence[Entry]) -> Iterator[tuple[int, str]]:
    """What a person said, each message in its newest revision, by the seq that history shows it under."""
    for entry in entries:
        if entry.kind != Kind.MESSAGE or entry.role != "user" or not entry.raw:
            continue
        if entry.newest_seq is not None or entry.change_kind == Revision.STUB or entry.flags & HIDDEN_FLAGS:
            continue
        payload = Message(entry).payload
        if is_user_turn(payload):
            yield entry.place_seq, payloads.text(payload)[:MAX_READ_CHARACTERS]


def _choose_for_model(texts: Mapping[int, str], by_rules: Mapping[int, Sequence[ExtractedMemory]]) -> dict[int, str]:
    """Messages that may hold memories and in which the rules found none, the newest as far as they go."""
    chosen: dict[int, str] = {}
    left = _MAX_MODEL_CHARACTERS
    for seq in sorted(texts, reverse=True):
        if by_rules[seq] or not may_hold_memories(texts[seq]):
            continue
        left -= len(texts[seq])
        if left < 0:
            break
        chosen[seq] = texts[seq]
    return dict(sorted(chosen.items()))


def _as_new_memories(ref: Ref, found: Mapping[int, Sequence[ExtractedMemory]], origin: Origin) -> list[NewMemory]:
    return [
        NewMemory(
            id=new_id(),
            text=memory.text,
            kind=memory.kind,
            scope=MemoryScope.USER,
            tokens=count_tokens(memory.text),
            conversation=ref.id,
            seq=seq,
            subject=memory.subject,
            origin=origin,
            confidence=memory.confidence,
            is_pinned=memory.is_pinned,
            ends=memory.ends,
            is_retraction=memory.is_retraction,
        )
        for seq, memories in found.items()
        for memory in memories
    ]


# -- by a model ----------------------------------------------------------------------------------------------------

MAX_TOKENS = 600
_MAX_LINES = 20
_MAX_LINE_CHARACTERS = 300
_MIN_GROUNDED = 0.6
"""Which share of a line's own words its message must have."""
_LINE = re.compile(r"\s*+(?:[-*]\s*+)?\[#(\d{1,10})\]\s*+(\w+)\s*+\|([^|\n]{0,60})\|\s*+([^\n<>]{3,}+)\s*+$")
_OWN_WORDS = frozenset(
    map(
        stem,
        "user is are was be has have the a an to of in on at for and or not no with that who wants want likes like "
        "prefers prefer dislikes called name named lives works says said told asks asked their them they his her he "
        "she its it always never should does do about using use as by from".split(),
    )
)
_OWN_CHARACTERS = frozenset("用户的是了在希望被称为叫名字喜欢不住来自对和与有要请以后他她说过想")


@runtime_checkable
class Extractor(Protocol):
    """A model that reads what people said, and writes down what is worth remembering."""

    async def extract(self, text: str, *, max_tokens: int) -> str:
        """A line for each: `[#seq] kind | subject | text`. ModelError when it fails."""


async def extract_by_model(
    model: Extractor, texts: Mapping[int, str], timeout_seconds: float
) -> Mapping[int, list[ExtractedMemory]]:
    """What a model finds in these messages, by their seqs. ModelError when it fails or takes too long."""
    transcript = "\n".join(f"[#{seq}] user: {text}" for seq, text in texts.items())
    try:
        async with asyncio.timeout(timeout_seconds):
            answer = await _ask(model, transcript)
    except TimeoutError as problem:
        raise ModelError(f"the model that extracts memories did not answer within {timeout_seconds:g} s") from problem
    found: dict[int, list[ExtractedMemory]] = {}
    for seq, memory in _parse_answer(answer, texts):
        found.setdefault(seq, []).append(memory)
    return found


async def _ask(model: Extractor, transcript: str) -> object:
    """It is somebody else's code: whatever it raises is a ModelError here."""
    before = cancel_count()
    try:
        return await model.extract(transcript, max_tokens=MAX_TOKENS)
    except ModelError:
        raise
    except asyncio.CancelledError as problem:
        if cancel_count() > before:  # by the time limit, or by whoever waits for us
            raise
        raise ModelError("the model that extracts memories was cancelled inside itself") from problem
    except Exception as problem:  # the edge of the port: no error of a model may stop a job
        raise ModelError(f"the model that extracts memories raised {type(problem).__name__}") from problem


def _parse_answer(answer: object, texts: Mapping[int, str]) -> Iterator[tuple[int, ExtractedMemory]]:
    lines = answer.splitlines()[: 4 * _MAX_LINES] if isinstance(answer, str) else []
    for match in [match for line in lines if (match := _LINE.match(line))][:_MAX_LINES]:
        seq, kind, subject, text = int(match[1]), match[2].lower(), match[3].strip(), match[4].strip()
        if seq not in texts or kind not in set(MemoryKind) or len(text) > _MAX_LINE_CHARACTERS:
            continue
        if _is_grounded(text, texts[seq]):
            has_subject = subject not in ("", "-", "none", "null")
            yield (
                seq,
                ExtractedMemory(
                    text=text,
                    kind=MemoryKind(kind),
                    subject=subject if has_subject else None,
                    confidence=0.7,
                    is_pinned=MemoryKind(kind) in ALWAYS_SHOWN,
                ),
            )


def _is_grounded(text: str, source: str) -> bool:
    """Whether it says what the message says: numbers all of them, other words for the most part."""
    if SECRET.search(text) or find_secrets(text):
        return False
    own, there = _words(text), _words(source)
    if any(word.isdigit() and word not in there for word in own):
        return False
    return bool(own) and len(own & there) >= _MIN_GROUNDED * len(own)


def _words(text: str) -> set[str]:
    parts = split_runs_and_words(fold(text))
    words = {stem(word) for _, word in parts if word} - _OWN_WORDS
    return words | {char for run, _ in parts for char in run} - _OWN_CHARACTERS
