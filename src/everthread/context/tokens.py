"""Count the tokens of a text once, as it enters the log; budget and window only add the stored counts.

The vocabulary is OpenAI's `o200k_base`, which comes inside rs-bpe: no download, no network. For other models
the count is an estimate. Counting takes time in proportion to the length whatever the text (10 MB: 0.1 to
1.1 s, an ordinary message of 450 bytes: 9 µs), and any number of threads may count at once.
"""

from __future__ import annotations

from functools import cache

from rs_bpe import openai

_PIECE_CHARS = 262_144
"""Longer texts are counted in pieces, because rs-bpe holds the interpreter while it counts.

A cut may split one token in two, so that 10 MB are counted as at most some 80 tokens too many.
"""


def count_tokens(text: str) -> int:
    """Count the tokens of any text; a lone surrogate counts as the replacement character."""
    if len(text) <= _PIECE_CHARS:
        return _count(text)
    pieces = range(0, len(text), _PIECE_CHARS)
    return sum(_count(text[start : start + _PIECE_CHARS]) for start in pieces)


def _count(text: str) -> int:
    try:
        count: int = _vocabulary().count(text)
    except UnicodeEncodeError:
        return _count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return count


@cache
def _vocabulary() -> openai.Tokenizer:
    """Load the vocabulary at the first count (70 ms); rs-bpe itself keeps one for all threads."""
    return openai.o200k_base()
