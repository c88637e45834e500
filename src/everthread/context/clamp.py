"""Long messages shown short: an excerpt, and a reference to where the whole is.

A tool's output is read once and carried along for ever; an image costs as much on its tenth turn as on its first.
So the view holds head and tail of what is long, how big it was, and how to open it again. The log keeps the whole.

A clamped message is within the tokens it was given, is the same for the same input, and stays what it was: a call's
arguments stay a JSON object, reasoning stays whole or is left out, a text that is short enough stays as it is. Cuts
fall between characters as a reader sees them, never inside one. Messages are expected as `repair` returns them,
without a serializer's envelope.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from everthread.context.budget import check_range
from everthread.context.message_format import (
    CALL_ID_KEYS,
    IMAGE_BLOCKS,
    INVALID_ARGUMENTS,
    REASONING_BLOCKS,
    Block,
    Call,
    Fields,
    Message,
    as_json,
    as_text,
    calls_of,
    is_user_turn,
    map_strings,
    read_arguments,
    results_of,
    with_calls,
)
from everthread.context.tokens import TokenCounter, count_tokens, message_tokens, payload_chars
from everthread.core.errors import ContextOverflow
from everthread.core.payloads import block_type

ClampReason = Literal["long_result", "old", "over_budget"]
TextKind = Literal["text", "arguments"]
Rewrite = Callable[[str, TextKind], str]

SHOWN_BLOCKS = frozenset({"text", "refusal", "tool_result"}) | set(CALL_ID_KEYS) | REASONING_BLOCKS
"""Blocks of words. Everything else (images, files, what is not known) is shown by reference when room is short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampPolicy:
    """What counts as long in a view."""

    result_tokens: int = 4_000
    """A tool result above this is an excerpt from the start."""
    old_result_tokens: int = 400
    """A tool result above this becomes one when it is old, and so does any image."""
    media_bytes: int = 5_000_000
    """An image or file above this, as it is sent, is a reference from the start: providers refuse larger ones."""

    def __post_init__(self) -> None:
        check_range("media_bytes", self.media_bytes, 1_000, 1_000_000_000)
        check_range("result_tokens", self.result_tokens, 32, 10_000_000)
        check_range("old_result_tokens", self.old_result_tokens, 32, self.result_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clamp:
    """A message shown in part."""

    index: int
    tokens_before: int
    tokens_after: int
    reason: ClampReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Elision:
    """Messages with their long parts by reference, and which they are."""

    messages: tuple[Message, ...]
    clamps: tuple[Clamp, ...]


DEFAULT_POLICY = ClampPolicy()


def elide(
    messages: Sequence[Message],
    *,
    old_before: int = 0,
    seqs: Sequence[int | None] | None = None,
    policy: ClampPolicy = DEFAULT_POLICY,
    only: Iterable[int] | None = None,
) -> Elision:
    """The view's long tool results, and the images that are old or too large to be sent, by reference.

    `old_before` is the position where the recent messages begin. It should move as the window's start does, in
    jumps: what is elided anew each turn changes the beginning of every request. `only` are the positions of the
    messages that may have results, images or files, where that is known.
    """
    shown = list(messages)
    clamps: list[Clamp] = []
    for index in range(len(messages)) if only is None else only:
        message = messages[index]
        seq = seqs[index] if seqs is not None else None
        short = elide_message(message, is_old=index < old_before, seq=seq, policy=policy)
        if short is not message:
            shown[index] = short
            before, after = message_tokens(message), message_tokens(short)
            reason: ClampReason = "old" if index < old_before else "long_result"
            clamps.append(Clamp(index=index, tokens_before=before, tokens_after=after, reason=reason))
    return Elision(messages=tuple(shown), clamps=tuple(clamps))


def elide_message(
    message: Message,
    *,
    is_old: bool,
    seq: int | None = None,
    policy: ClampPolicy = DEFAULT_POLICY,
    count: TokenCounter = count_tokens,
) -> Message:
    """One message as the policy shows it; the very same object when it is short enough."""
    cap = policy.old_result_tokens if is_old else policy.result_tokens
    if isinstance(message.get("content"), list) and is_user_turn(message):
        short: Message = replace_media(message, seq=seq, above_bytes=0 if is_old else policy.media_bytes)
    elif results_of(message) and message_tokens(message, count) > cap:
        short = clamp_results(message, cap, seq=seq, count=count)
    else:
        return message
    return message if short == message else short


def clamp_results(
    message: Message, max_tokens: int, *, seq: int | None = None, count: TokenCounter = count_tokens
) -> Fields:
    """The results a message carries, each within the tokens; what the user says beside them stays whole."""
    light = replace_media(message, seq=seq)
    cut = _cutter(max_tokens, seq, count)
    content = light.get("content")
    if isinstance(content, list) and results_of(message)[0].block is not None:
        results = {answer.block for answer in results_of(message)}
        blocks = [_rewrite_block(block, cut) if at in results else block for at, block in enumerate(content)]
        return {**light, "content": blocks}
    return _rewrite_texts(light, cut)


def clamp_message(
    message: Message, max_tokens: int, *, seq: int | None = None, count: TokenCounter = count_tokens
) -> Fields:
    """The message within the tokens: images and files by reference, then all its texts shortened alike, then without
    its reasoning. Raises ContextOverflow when what cannot be shortened is more than that."""
    if message_tokens(message, count) <= max_tokens:
        return dict(message)
    light = replace_media(message, seq=seq)
    for draft in (light, _without_reasoning(light)):
        short = _shorten_texts(draft, max_tokens, seq, count)
        if short is not None:
            return short
    raise ContextOverflow(
        f"a message cannot be shown in {max_tokens:,} tokens, even with its texts left out; "
        "leave out the message, or give it more room"
    )


# --- images and files ------------------------------------------------------------------------


def replace_media(message: Message, *, seq: int | None = None, above_bytes: int = 0) -> Fields:
    """The message with a line of text in the place of each image and file (above a size)."""
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    return {**message, "content": [_media_by_reference(block, seq, above_bytes) for block in content]}


def _media_by_reference(block: Any, seq: int | None, above_bytes: int) -> Any:
    if not isinstance(block, Mapping):
        return block
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        return {**block, "content": [_media_by_reference(inner, seq, above_bytes) for inner in block["content"]]}
    if block_type(block) in SHOWN_BLOCKS or (above_bytes and payload_chars(block) <= above_bytes):
        return block
    return {"type": "text", "text": media_reference(block, seq)}


def media_reference(block: Block, seq: int | None = None) -> str:
    """What stands in the view for an image or a file."""
    kind = "image" if block_type(block) in IMAGE_BLOCKS else "file"
    opened = f"; history_open(seq={seq}) shows it" if seq is not None else ""
    return f"[{kind} not shown here, {payload_chars(block):,} bytes as text{opened}]"


def _without_reasoning(message: Fields) -> Fields:
    rest = {key: value for key, value in message.items() if key not in ("reasoning_content", "refusal")}
    content = rest.get("content")
    if isinstance(content, list):
        rest["content"] = [block for block in content if block_type(block) not in REASONING_BLOCKS] or ""
    return rest


# --- texts -----------------------------------------------------------------------------------


def _shorten_texts(message: Fields, max_tokens: int, seq: int | None, count: TokenCounter) -> Fields | None:
    """All texts cut to one length, about the greatest at which the message fits: short ones stay whole."""
    sizes = [count(text) for text in _texts(message)]
    cap = even_share(sizes, max_tokens - (message_tokens(message, count) - sum(sizes)))
    while cap >= 1:
        short = _rewrite_texts(message, _cutter(cap, seq, count))
        if message_tokens(short, count) <= max_tokens:
            return short
        cap = cap * 7 // 8
    return None


def even_share(sizes: Sequence[int], room: int) -> int:
    """The length up to which all may be shown so that together they fill the room."""
    left = room
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return max(1, share)
        left -= size
    return max(1, *sizes) if sizes else 1


def _cutter(cap: int, seq: int | None, count: TokenCounter) -> Rewrite:
    def cut(text: str, kind: TextKind) -> str:
        if count(text) <= cap:
            return text
        if kind == "arguments":
            return as_json(shorten_arguments(text, cap, seq=seq, count=count))
        return excerpt(text, cap, seq=seq, count=count) or SHORTEST

    return cut


def _texts(message: Message) -> list[str]:
    found: list[str] = []

    def collect(text: str, _: TextKind) -> str:
        found.append(text)
        return text

    _rewrite_texts(message, collect)
    return found


def _rewrite_texts(message: Message, rewrite: Rewrite) -> Fields:
    """The message with all its texts passed through: content, results, and the arguments of calls."""
    draft = dict(message)
    content = message.get("content")
    if isinstance(content, str) and content:
        draft["content"] = rewrite(content, "text")
    elif isinstance(content, list):
        draft["content"] = [_rewrite_block(block, rewrite) for block in content]
    calls = calls_of(message)
    if not calls:
        return draft
    sent: list[Call] = []
    for call in calls:
        text = as_text(call.arguments)
        short = rewrite(text, "arguments")
        sent.append(call if short is text else call._replace(arguments=short))
    return with_calls(draft, sent)


def _rewrite_block(block: Any, rewrite: Rewrite) -> Any:
    if not isinstance(block, Mapping) or block_type(block) in REASONING_BLOCKS:
        return block
    for key in ("text", "refusal"):
        if isinstance(block.get(key), str) and block[key]:
            return {**block, key: rewrite(block[key], "text")}
    content = block.get("content") if block.get("type") == "tool_result" else None
    if isinstance(content, list):
        return {**block, "content": [_rewrite_block(inner, rewrite) for inner in content]}
    return {**block, "content": rewrite(content, "text")} if isinstance(content, str) and content else block


HEAD_SHARE = 2 / 3
"""The head of an output says what it is, the tail how it ended; the head mostly says more."""
CHARS_PER_TOKEN = 16
"""Ordinary text has fewer: the search for the longest excerpt begins here."""
SHORTEST = "…"
SMALLEST_ARGUMENT_TOKENS = 8
"""Below this a shortened argument says nothing any more."""


def excerpt(text: str, max_tokens: int, *, seq: int | None = None, count: TokenCounter = count_tokens) -> str:
    """Head and tail of the text around a note of what is missing; the text itself when it fits."""
    if count(text) <= max_tokens:
        return text
    for note in (text_reference(text, seq), "[…]", SHORTEST):
        if count(note) <= max_tokens:
            return _longest_around(text, note, max_tokens, count)
    return ""


def text_reference(text: str, seq: int | None = None) -> str:
    """How much there is, and how to see it."""
    size = len(text.encode("utf-8", "surrogatepass"))
    opened = f"; history_open(seq={seq}) shows all of it" if seq is not None else ""
    return f"[… shown in part, {size:,} bytes in all{opened} …]"


def _longest_around(text: str, note: str, max_tokens: int, count: TokenCounter) -> str:
    """About the most characters that fit around the note, by halves. A longer text may count to less, so a little more
    might have fitted; what is returned has been counted."""
    low, high = 0, min(len(text) - 1, max_tokens * CHARS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        if count(_head_and_tail(text, note, middle)) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return _head_and_tail(text, note, low)


def _head_and_tail(text: str, note: str, kept: int) -> str:
    head = int(kept * HEAD_SHARE)
    start, end = safe_cut(text, head), safe_cut(text, len(text) - (kept - head), forward=True)
    return "\n".join(part for part in (text[:start], note, text[end:]) if part)


def safe_cut(text: str, index: int, *, forward: bool = False) -> int:
    """The nearest place at or before the index (or after it) that splits no surrogate pair and tears no accent or
    joined emoji from what it belongs to."""
    while 0 < index < len(text) and _belong_together(text[index - 1], text[index]):
        index += 1 if forward else -1
    return index


def _belong_together(before: str, after: str) -> bool:
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    return "\u200d" in (before, after) or after == "\ufe0f" or unicodedata.combining(after) != 0


def shorten_arguments(
    arguments: object, max_tokens: int, *, seq: int | None = None, count: TokenCounter = count_tokens
) -> Mapping[str, Any]:
    """A call's arguments as an object within the tokens: its long texts get shorter first; one that is long by its
    structure becomes an excerpt of itself; in no room at all it is empty."""
    whole = read_arguments(arguments)
    if whole is None:
        whole = {INVALID_ARGUMENTS: as_text(arguments)}
    cap = max_tokens
    while cap >= SMALLEST_ARGUMENT_TOKENS:
        shorter: Mapping[str, Any] = map_strings(whole, _Shorten(cap, seq, count))
        if count(as_json(shorter)) <= max_tokens:
            return shorter
        cap //= 2
    return _arguments_excerpt(as_json(whole), max_tokens, seq, count)


def _arguments_excerpt(text: str, max_tokens: int, seq: int | None, count: TokenCounter) -> Mapping[str, Any]:
    """JSON escapes what it quotes, so the excerpt is made smaller until the quoted one fits."""
    room = max_tokens
    while room > 0:
        elided = {"elided": excerpt(text, room, seq=seq, count=count)}
        if count(as_json(elided)) <= max_tokens:
            return elided
        room = room * 3 // 4
    return {}


class _Shorten:
    """`excerpt` with its bounds fixed, for every text inside a value."""

    def __init__(self, cap: int, seq: int | None, count: TokenCounter) -> None:
        self.cap, self.seq, self.count = cap, seq, count

    def __call__(self, text: str) -> str:
        return excerpt(text, self.cap, seq=self.seq, count=self.count)
