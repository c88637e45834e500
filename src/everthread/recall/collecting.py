"""Questions whose answer lies in many messages (which, how many, all, in what order, summarise): a short quote of each
of them instead of a few passages. Where they are more than the hits that were asked for, those nearest each other are
one hit. Pure.

A hit has up to four messages, so that ten hits show forty; `limit` is still the number of hits, and within it the
tokens decide how many messages there are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_QUOTED = 4
"""So many messages make one hit at most."""
_QUOTE_CHARACTERS = 200
_WIDE_QUOTE_CHARACTERS = 80
"""Of Chinese; both are about fifty tokens."""
_ELLIPSIS = "…"
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")
_ASKS_FOR_SEVERAL = re.compile(
    r"""\b(?:how\ many|how\ much\b.*\b(?:altogether|in\ total|so\ far|in\ all|overall)|list|every|everything
    |summari[sz]e|summary|overview|recap|in\ (?:which|what)\ order|the\ order\ in\ which|in\ order|walk\ me\ through
    |timeline|so\ far
    |all\ (?:of\ )?(?:the|my|our|his|her|their|these|those)
    |which\ (?:\w+\ )?(?!(?:does|this|hers|yours)\b)\w{3,}(?<![isu])s\b
    |what\ (?:are|were)\ (?:all|the)|what\ (?:different|various)
    |what\ (?:\w+\ )?\w{3,}s\ (?:did|do|have|has|were|are))\b
    |哪些|哪几|一共|总共|所有|全部|都有什么|按(?:时间)?顺序|先后|依次|总结|概括|汇总|列出|列一下|多少次|几次|每次""",
    re.IGNORECASE | re.VERBOSE,
)


def asks_for_several(question: str) -> bool:
    """Whether a question asks for many things at once."""
    return _ASKS_FOR_SEVERAL.search(question) is not None


def shorten(passage: str, words: Sequence[str]) -> str:
    """The sentence of a passage that has most of these words, cut to some fifty tokens."""
    words = [word.lower() for word in words]
    limit = _QUOTE_CHARACTERS if passage.isascii() or not _is_wide(passage) else _WIDE_QUOTE_CHARACTERS
    if len(passage) <= limit:
        return passage
    sentences = [one.strip() for one in _SENTENCE_END.split(passage) if one.strip()] or [passage]
    folded = [one.lower() for one in sentences]
    best = max(range(len(sentences)), key=lambda at: (sum(word in folded[at] for word in words), -at))
    last = best + 1
    while last < len(sentences) and sum(map(len, sentences[best : last + 1])) + last - best <= limit:
        last += 1
    quote = " ".join(sentences[best:last])
    if len(quote) <= limit:
        return quote
    found = [at for word in words if (at := quote.lower().find(word)) >= 0]
    start = max(0, min(min(found, default=0) - limit // 4, len(quote) - limit))
    begins = _ELLIPSIS if start else ""
    return f"{begins}{quote[start : start + limit].strip()}{_ELLIPSIS if start + limit < len(quote) else ''}"


def _is_wide(text: str) -> bool:
    return 3 * sum("\u3000" <= one <= "\u9fff" for one in text[:300]) > len(text[:300])


def group(places: Sequence[int], limit: int) -> list[list[int]]:
    """Messages by their places in one conversation, in order, as at most `limit` groups of `MAX_QUOTED`: where they are
    more, those nearest each other are together. There must be no more than fit."""
    ordered = sorted(places)
    group_of = list(range(len(ordered)))
    sizes = dict.fromkeys(group_of, 1)
    for at in sorted(range(1, len(ordered)), key=lambda at: (ordered[at] - ordered[at - 1], at)):
        if len(sizes) <= limit:
            break
        before, after = group_of[at - 1], group_of[at]
        if sizes[before] + sizes[after] <= MAX_QUOTED:
            sizes[before] += sizes.pop(after)
            group_of = [before if one == after else one for one in group_of]
    if len(sizes) > limit:  # what is left is too large to be joined in pairs
        group_of = [at // MAX_QUOTED for at in range(len(ordered))]
    return [[ordered[at] for at, one in enumerate(group_of) if one == number] for number in dict.fromkeys(group_of)]
