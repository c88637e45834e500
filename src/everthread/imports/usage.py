"""What agents' sessions cost: the tokens that their transcripts report, and money where they name it.

Claude Code and others write several lines for an answer, each with the tokens so far, and copy lines into the files of
sessions that go on from older ones; Codex writes running totals, again and again. Each answer counts once, wherever it
stands. Agents whose lines are kept are read from these; of others the messages have what was reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from everthread.core.entries import Kind
from everthread.core.errors import NotFound
from everthread.core.imports import imported_from
from everthread.core.nouns import MAX_PAGE, ConversationInfo, Ref
from everthread.core.ports import ListPosition
from everthread.imports.session import BrokenEntry, dict_at, parse_line
from everthread.instance import Everthread

TOKENS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
"""What is counted: input is what was neither read from a cache nor written to one."""
_PAGE = 500
_INPUT = ("input_tokens", "inputTokens", "inputOther", "input", "promptTokenCount", "prompt_tokens")
_OUTPUT = ("output_tokens", "outputTokens", "output", "candidatesTokenCount", "completion_tokens")
_READ_BESIDE = ("cache_read_input_tokens", "cacheReadTokens", "cacheRead", "inputCacheRead")
_READ_WITHIN = ("cached_input_tokens", "cachedInputTokens", "cachedContentTokenCount", "cached_tokens", "cached")
"""Names of tokens read from a cache that the input has beside it, and of those that are counted in it as well."""
_WRITTEN = (
    "cache_creation_input_tokens", "cache_write_input_tokens", "cacheWriteTokens", "cacheWrite", "inputCacheCreation",
)  # fmt: skip
_THOUGHTS = ("thoughtsTokenCount", "thoughts")
"""What Google counts beside the output."""


class Answer(NamedTuple):
    """One answer of a model, as far as one line or message tells."""

    keys: tuple[object, ...]
    """What it is known by, wherever it is copied to: one of them is enough."""
    model: str | None
    tokens: Counter[str]
    cost: float = 0.0


@dataclass(slots=True, kw_only=True)
class Spent:
    """What the answers of one model in one conversation took."""

    conversation: ConversationInfo
    model: str | None
    answers: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0
    """In dollars, as far as the agent says."""


async def spent_by_agents(et: Everthread, owner: str, conversation: str | None = None) -> AsyncIterator[Spent]:
    """What the sessions of agents took, the oldest first: all of an owner, or one with its subagents."""
    counted: set[object] = set()
    for info in await _sessions(et, owner, conversation):
        try:
            answers = [answer async for answer in _answers(et, info)]
        except NotFound:  # erased meanwhile
            continue
        of_models: dict[str | None, Spent] = {}
        for answer in _each_once(answers):
            is_copy = not counted.isdisjoint(answer.keys)
            counted.update(answer.keys)
            if is_copy or not (answer.tokens or answer.cost):
                continue
            spent = of_models.setdefault(answer.model, Spent(conversation=info, model=answer.model))
            spent.answers += 1
            spent.tokens.update(answer.tokens)
            spent.cost += answer.cost
        for spent in of_models.values():
            yield spent


async def _sessions(et: Everthread, owner: str, conversation: str | None) -> list[ConversationInfo]:
    """Conversations that came from agents, the oldest first, so that what was copied counts where it was said."""
    found: list[ConversationInfo] = []
    position: ListPosition | None = None
    while True:
        page, position = await et.store.conversations.list(
            owner, limit=MAX_PAGE, position=position, include_deleted=True, parent_id=None
        )
        found += [info for info in page if imported_from(info) is not None]
        if position is None:
            break
    if conversation is not None:
        above = {info.id: info.parent_id for info in found}
        found = [info for info in found if conversation in _with_those_above(info.id, above)]
    return sorted(found, key=lambda info: (info.created_at, info.id))


def _with_those_above(id: str, above: Mapping[str, str | None]) -> Iterator[str]:
    at: str | None = id
    while at is not None:
        yield at
        at = above.get(at)


async def _answers(et: Everthread, info: ConversationInfo) -> AsyncIterator[Answer]:
    ref = Ref(info.owner, info.id)
    read = _OF_LINES.get(str(info.metadata["agent"]))
    is_told = False
    if read is not None:
        for answer in read(info, [value async for value in _values(et, ref)]):
            is_told = True
            yield answer
    if not is_told:
        async for answer in _of_messages(et, ref):
            is_told = True
            yield answer
    if not is_told:
        tokens = {"input_tokens": info.metadata.get("tokens_in"), "output_tokens": info.metadata.get("tokens_out")}
        model = _name(info.metadata.get("model"))
        yield Answer(((info.id,),), model, tokens_in(tokens), _number(info.metadata.get("cost")))


def _each_once(answers: Iterable[Answer]) -> Iterable[Answer]:
    """An answer that is told several times, as it was in the end."""
    found: dict[object, Answer] = {}
    for answer in answers:
        before = found.get(answer.keys[0], answer)
        tokens, cost = before.tokens | answer.tokens, max(before.cost, answer.cost)
        found[answer.keys[0]] = answer._replace(tokens=tokens, cost=cost)
    return found.values()


# -- lines -----------------------------------------------------------------------------------------------------

_SIGNS = (b'"usage', b"token_count", b"turn_context")
"""One of these is in each line that says something of tokens."""


async def _values(et: Everthread, ref: Ref) -> AsyncIterator[dict[str, Any]]:
    """What the lines of a session say that can have to do with tokens."""
    after = 0
    while page := await et.store.imports.lines(ref, after=after, limit=_PAGE):
        for kept in page:
            for line in kept.line.split(b"\n") if any(sign in kept.line for sign in _SIGNS) else ():
                if any(sign in line for sign in _SIGNS) and (value := _parsed(line)) is not None:
                    yield _without_texts(value)
        after = page[-1].seq


def _without_texts(value: dict[str, Any]) -> dict[str, Any]:
    """What of a line can have to do with tokens: a session has lines of gigabytes."""
    inner = {name: _without(value[name], "content") for name in ("message", "payload") if name in value}
    return {**_without(value, "toolUseResult", "attachment", "event"), **inner}


def _without(value: Any, *names: str) -> Any:
    return {name: one for name, one in value.items() if name not in names} if isinstance(value, dict) else value


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        return parse_line(line)
    except BrokenEntry:
        return None


def _claude_answers(_info: ConversationInfo, values: Iterable[dict[str, Any]]) -> Iterator[Answer]:
    for value in values:
        message = dict_at(value, "message")
        if value.get("type") == "assistant" and isinstance(message.get("usage"), dict):
            key = ("claude-code", str(message.get("id") or value.get("uuid")))
            yield Answer(
                (key,), _name(message.get("model")), tokens_in(message["usage"]), _number(value.get("costUSD"))
            )


def _codex_answers(info: ConversationInfo, values: Iterable[dict[str, Any]]) -> Iterator[Answer]:
    """Each total is another answer, which took what it has more than the one before. A fork repeats those of its
    origin."""
    files = {info.metadata.get("session"), info.metadata.get("forked_from")} - {None}
    model, before = None, None
    for value in values:
        payload = dict_at(value, "payload")
        if value.get("type") == "turn_context":
            model = _name(payload.get("model")) or model
        if payload.get("type") != "token_count":
            continue
        told = dict_at(payload, "info")
        last, total = tokens_in(told.get("last_token_usage")), tokens_in(told.get("total_token_usage"))
        at = value.get("timestamp")
        sums = tuple(total[name] for name in TOKENS)
        keys = [("codex", at, sums), *(("codex", file, sums) for file in sorted(map(str, files)))]
        if not total:
            keys = [("codex", at, tuple(last[name] for name in TOKENS))]
        is_next = before is not None and all(total[name] >= before[name] for name in TOKENS)
        spent = total - before if total and before is not None and is_next else last or total
        before = total or before
        yield Answer(tuple(keys[::-1]), model, spent)


def _qwen_answers(_info: ConversationInfo, values: Iterable[dict[str, Any]]) -> Iterator[Answer]:
    for value in values:
        if value.get("type") == "assistant" and isinstance(value.get("usageMetadata"), dict):
            key = ("qwen-code", str(value.get("uuid") or value.get("timestamp")))
            yield Answer((key,), _name(value.get("model")), tokens_in(value["usageMetadata"]))


def _kimi_answers(info: ConversationInfo, values: Iterable[dict[str, Any]]) -> Iterator[Answer]:
    for value in values:
        if value.get("type") == "usage.record" and value.get("usageScope") != "session":
            key = ("kimi", info.id, value.get("time"), str(value.get("usage")))
            yield Answer((key,), _name(value.get("model")), tokens_in(value.get("usage")))


_OF_LINES: Mapping[str, Callable[[ConversationInfo, Iterable[dict[str, Any]]], Iterator[Answer]]] = {
    "claude-code": _claude_answers, "codex": _codex_answers, "qwen-code": _qwen_answers, "kimi": _kimi_answers,
}  # fmt: skip


# -- messages --------------------------------------------------------------------------------------------------


async def _of_messages(et: Everthread, ref: Ref) -> AsyncIterator[Answer]:
    """What the messages of a conversation say, on all branches, each in its newest revision."""
    places: dict[int, Answer] = {}
    after = 0
    while entries := await et.store.log.scan(ref, after=after, limit=_PAGE, with_tokens=False):
        for entry in entries:
            raw = entry.raw if entry.kind == Kind.MESSAGE else None
            payload = _parsed(raw) if raw is not None and b'"usage"' in raw else None
            usage = dict_at(payload or {}, "usage")
            if payload is not None and usage:
                cost = usage.get("cost", payload.get("cost"))
                cost = cost.get("total") if isinstance(cost, dict) else cost
                place = (ref.id, entry.place_seq)
                places[entry.place_seq] = Answer((place,), _name(payload.get("model")), tokens_in(usage), _number(cost))
        after = entries[-1].seq
    for answer in places.values():
        yield answer


def tokens_in(usage: object) -> Counter[str]:
    """The tokens of a usage in any of the usual spellings."""
    if not isinstance(usage, dict):
        return Counter()
    cache = dict_at(usage, "cache")
    within = _first(usage, _READ_WITHIN) or _first(dict_at(usage, "prompt_tokens_details"), _READ_WITHIN)
    beside = _first(usage, _READ_BESIDE) or _count(cache.get("read"))
    written = _first(usage, _WRITTEN) or _count(cache.get("write"))
    counts = {
        "input_tokens": max(_first(usage, _INPUT) - within, 0),
        "cache_read_tokens": within or beside,
        "cache_write_tokens": written,
        "output_tokens": _first(usage, _OUTPUT) + _first(usage, _THOUGHTS),
    }
    return Counter({name: count for name, count in counts.items() if count})


def _first(usage: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((count for name in names if (count := _count(usage.get(name)))), 0)


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
