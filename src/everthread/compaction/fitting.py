"""Making text fit a number of tokens by the caller's own counter, whatever that counter does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everthread.compaction.facts import Fact
from everthread.compaction.sections import Line, mention_lines, render
from everthread.compaction.sources import TokenCounter
from everthread.text.language import Language
from everthread.text.sentences import split_sentences


def longest_that_fits(size: int, fits: Callable[[int], bool]) -> int:
    """The largest n up to `size` for which `fits(n)`, found by doubling and halving; 0 if none does."""
    low, high = 0, 1
    while high <= size and fits(high):
        low, high = high, high * 2
    high = min(high, size + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def cut_to_fit(text: str, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if count_tokens(text) <= max_tokens:
        return text
    size = longest_that_fits(len(text), lambda size: count_tokens(f"{text[:size].rstrip()}…") <= max_tokens)
    return f"{text[:size].rstrip()}…" if size else ""


def cut_at_sentence(text: str, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The text up to the last line that fits, of the line after it the sentences that do."""
    if count_tokens(text) <= max_tokens:
        return text
    lines = text.splitlines()
    whole = longest_that_fits(len(lines), lambda size: count_tokens("\n".join(lines[:size])) <= max_tokens)
    head = "\n".join(lines[:whole])
    sentences = [piece.text for piece in split_sentences(lines[whole])] if whole < len(lines) else []
    more = longest_that_fits(
        len(sentences), lambda size: count_tokens("\n".join([head, " ".join(sentences[:size])])) <= max_tokens
    )
    return "\n".join(part for part in (head, " ".join(sentences[:more])) if part).strip()


def joined_within(prose: str, listed: str, max_tokens: int, count_tokens: TokenCounter) -> str:
    """The prose with its list, without it where both do not fit, empty where nothing does."""
    whole = "\n".join(part for part in (prose, listed) if part)
    return next((text for text in (whole, prose) if text and count_tokens(text) <= max_tokens), "")


def lines_that_fit(
    best_first: Sequence[Line], language: Language, max_tokens: int, count_tokens: TokenCounter
) -> list[Line]:
    """The lines whose summary fits, leaving out from the end."""
    fitting = longest_that_fits(
        len(best_first), lambda size: count_tokens(render(best_first[:size], language)) <= max_tokens
    )
    return list(best_first[:fitting])


def mentions(ranked: Sequence[Fact], language: Language, max_tokens: int, count_tokens: TokenCounter) -> str:
    """A list of as many of the facts, best first, as fits; empty when none does."""
    fitting = longest_that_fits(
        len(ranked), lambda size: count_tokens(render(mention_lines(ranked[:size]), language)) <= max_tokens
    )
    return render(mention_lines(ranked[:fitting]), language)
