"""Counting tokens, of a text and of a whole message. A text of the log is counted once, as it enters it or when it is
first read; budget and window only add the stored counts.

The vocabulary is OpenAI's `o200k_base`, which comes inside rs-bpe: no download, no network. For other models
the count is an estimate. Counting takes time in proportion to the length whatever the text (10 MB: 0.1 to
1.1 s, an ordinary message of 450 bytes: 9 µs), and any number of threads may count at once.

The encoding first splits a text into words, runs of signs and the like, and no token reaches over such a split. So
the tokens of an ordinary text are those of its words, most of which were counted before: a third of the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from rs_bpe import openai

from everthread.context.message_format import (
    CALL_ID_KEYS,
    FILE_BLOCKS,
    IMAGE_BLOCKS,
    Block,
    Message,
    as_json,
    as_text,
    blocks_of,
    calls_of,
    content_of,
    results_of,
)
from everthread.core import payloads
from everthread.core.payloads import block_type
from everthread.core.text_memo import TextMemo

_ORDINARY_CHARS = 16_384
"""Texts of ASCII up to this length are counted by their words."""
_WORD_CHARS = 32
"""Words up to this length are remembered …"""
_MOST_WORDS = 32_768
"""… this many of them, and as many of their parts, some 4 MB each."""
_parts = re.compile(
    r" [a-z]++(?!')"  # nearly every word: tried first, it saves a third of the time
    r"|[^\r\na-zA-Z0-9]?(?:[A-Z]*[a-z]+|[A-Z]+)(?:'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL]))?"
    r"|[0-9]{1,3}| ?[^\sa-zA-Z0-9]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    re.ASCII,
).findall
"""How `o200k_base` splits ASCII."""

_LINE_ENDS = re.compile(r"(?<=\n)(?=[^\s/])")
"""Where a text beyond ASCII is split first: no token reaches over a line's end to what is no white space. A summary is
counted again and again while it is made, and its lines stay what they were."""
_PIECE_CHARS = 262_144
"""Longer texts are counted in pieces, because rs-bpe holds the interpreter while it counts.

A cut may split one token in two, so that 10 MB are counted as at most some 80 tokens too many.
"""


def count_tokens(text: str) -> int:
    """Count the tokens of any text; a lone surrogate counts as the replacement character."""
    return _counted(text)


def _count_whole(text: str) -> int:
    if len(text) <= _ORDINARY_CHARS and text.isascii():
        first, *others = text.split(" ")
        try:
            return _count_of_part(first) + sum(map(_count_of_word, others))
        except KeyError:
            return sum(map(_count_of_part, _parts(text)))
    if len(text) <= _ORDINARY_CHARS and len(lines := _LINE_ENDS.split(text)) > 1:
        return sum(map(_counted, lines))
    if len(text) <= _PIECE_CHARS:
        return _count(text)
    pieces = range(0, len(text), _PIECE_CHARS)
    return sum(_count(text[start : start + _PIECE_CHARS]) for start in pieces)


_counted = TextMemo(_count_whole, min_chars=96, max_chars=100_000_000, capacity=16_384)
"""A message of 500 characters takes 30 µs to count and 1.5 to look up; some 6 MB at most."""


def _count(text: str) -> int:
    try:
        count: int = _vocabulary().count(text)
    except UnicodeEncodeError:
        return _count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return count


class _Counts(dict[str, int]):
    """What was counted lately."""

    def keep(self, text: str, count: int) -> int:
        if len(text) <= _WORD_CHARS:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[text] = count
        return count


class _Parts(_Counts):
    """Parts as the encoding splits them, or whatever stands before the first space."""

    def __missing__(self, part: str) -> int:
        return self.keep(part, _count(part))


class _Words(_Counts):
    """Words with the signs that stand by them, each after one space, before which the encoding always splits."""

    def __missing__(self, word: str) -> int:
        if not word or word[0].isspace():  # a space among others may belong to those before it
            raise KeyError(word)
        return self.keep(word, _count(f" {word}"))


_count_of_part = _Parts().__getitem__
_count_of_word = _Words().__getitem__


@cache
def _vocabulary() -> openai.Tokenizer:
    """Load the vocabulary at the first count (70 ms); rs-bpe itself keeps one for all threads."""
    return openai.o200k_base()


TokenCounter = Callable[[str], int]

MESSAGE_TOKENS = 4
"""Around every message: its role and its delimiters."""
CALL_TOKENS = 10
"""Around every call: its id and its wrapping."""
ANSWER_TOKENS = 6
"""Around every result: the id it answers."""
IMAGE_TOKENS = 1_600
"""One image of any size: Anthropic scales down to about 1,600 tokens, OpenAI's high detail stays below."""
LOW_DETAIL_TOKENS = 85
"""One image that OpenAI is asked to look at with `detail: low`."""
BASE64_CHARS_PER_TOKEN = 40
"""A page of a PDF (about 100 kB as base64) costs some 2,000 to 3,000 tokens."""


# --- counting a message ----------------------------------------------------------------------


def message_tokens(message: Message, count: TokenCounter = count_tokens) -> int:
    """What a whole message counts to: content, calls, results, reasoning, images by a fixed estimate."""
    total = MESSAGE_TOKENS + len(results_of(message)) * ANSWER_TOKENS
    total += _content_tokens(content_of(message), count)
    for call in calls_of(message):
        total += CALL_TOKENS + count(call.name) + count(as_text(call.arguments))
    fields = payloads.fields(message)
    for key in ("name", "refusal", "reasoning_content"):
        value = fields.get(key)
        total += count(value) if isinstance(value, str) else 0
    return total


def _content_tokens(content: object, count: TokenCounter) -> int:
    if isinstance(content, str):
        return count(content)
    if isinstance(content, list):
        return sum(block_tokens(block, count) for block in content)
    return 0 if content is None else count(as_json(content))


def block_tokens(block: object, count: TokenCounter = count_tokens) -> int:
    """What one content block counts to. A call block counts with the calls, so that it counts once."""
    if not isinstance(block, Mapping):
        return count(as_text(block))
    kind = block_type(block)
    if kind in CALL_ID_KEYS:
        return 0
    if kind == "tool_result":
        return _content_tokens(block.get("content"), count)
    if kind in IMAGE_BLOCKS:
        return _image_tokens(block)
    if kind in FILE_BLOCKS:
        return _file_tokens(block, count)
    for key in ("text", "thinking", "reasoning"):
        if isinstance(block.get(key), str):
            return count(block[key])
    return count(as_json(block))


def has_media(message: Message) -> bool:
    """Whether it holds an image or a file, whose tokens can only be estimated."""
    return any(
        block_type(block) in IMAGE_BLOCKS | FILE_BLOCKS or (block.get("type") == "tool_result" and has_media(block))
        for block in blocks_of(message)
    )


def _image_tokens(block: Block) -> int:
    source = block.get("image_url")
    detail = source.get("detail") if isinstance(source, Mapping) else block.get("detail")
    return LOW_DETAIL_TOKENS if detail == "low" else IMAGE_TOKENS


def _file_tokens(block: Block, count: TokenCounter) -> int:
    source: Any = block.get("source")
    if isinstance(source, Mapping) and source.get("type") == "text":
        return _content_tokens(source.get("data"), count)
    return max(IMAGE_TOKENS, payload_chars(block) // BASE64_CHARS_PER_TOKEN)


def payload_chars(value: object) -> int:
    """The length of all texts in a block, most of which is its base64 payload."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(payload_chars(item) for item in value.values())
    return sum(payload_chars(item) for item in value) if isinstance(value, list) else 0
