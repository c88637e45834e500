"""The facts of a conversation that a summary should not lose: ranked by what they are worth, and checked against it.

`text/facts.py` finds them; here is what a summary makes of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from everthread.compaction.sources import Source, both_ends, is_user
from everthread.text.fact_rule import FactKind
from everthread.text.facts import Fact, find_facts
from everthread.text.language import readable
from everthread.text.normal_forms import normalise, vaguer_dates
from everthread.text.terms import terms

# The mark by which a line of a summary names its source: `[#12]`, `[#5–#9]`, `[#12, 2024-05-03]`. No fact.
SOURCE_TAG = re.compile(r"\[#\d+(?:(?:–|, )#\d+)*(?:, \d{4}-\d\d-\d\d)?\]")

_PLAIN_WORD = re.compile(r"[a-z][a-z'’]*")
_VAGUE_COUNT = re.compile("[一二两][个位次种条件份下天]")
_BARE = re.compile(r"-?[\d.,]+")
_BARE_NUMBER_WEIGHT = 0.5
# How much a fact of a kind is worth to who goes on with the work: what can be acted on before wording.
_KIND_WEIGHTS: dict[FactKind, float] = {
    "code": 0.6, "date": 1.0, "email": 1.0, "error": 1.0, "file": 0.9, "handle": 0.9, "id": 0.9, "money": 1.0,
    "name": 0.8, "number": 0.9, "path": 1.0, "quote": 0.5, "time": 0.9, "title": 0.9, "url": 1.0, "version": 0.9,
}  # fmt: skip


def facts_of_sources(sources: Sequence[Source]) -> list[Fact]:
    """The facts of every message and of the arguments of its calls; one said twice stands there twice."""
    found: list[Fact] = []
    for source in sources:
        found += find_facts(both_ends(readable(source.text)), seq=source.seq)
        for call in source.calls:
            found += find_facts(both_ends(readable(call.arguments)), seq=source.seq)
    return found


def texts_by_seq(sources: Iterable[Source]) -> dict[int, str]:
    """What was said at each seq, the arguments of calls with it."""
    said: dict[int, str] = {}
    for source in sources:
        parts = (said.get(source.seq, ""), source.text, *(call.arguments for call in source.calls))
        said[source.seq] = "\n".join(filter(None, parts))
    return said


def rank_facts(facts: Iterable[Fact], sources: Sequence[Source]) -> list[Fact]:
    """Each distinct fact once, the most worth keeping first: said by a user, rare, recent.

    A fact said several times is given where a user said it last, else where anyone did.
    """
    users = {source.seq for source in sources if is_user(source)}
    mentions: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        if is_askable(fact):
            mentions[fact.normal].append(fact)
    seqs = [source.seq for source in sources] or [0]
    order: list[tuple[float, int, str, Fact]] = []
    for normal, said in mentions.items():
        best = max(said, key=lambda fact: (fact.seq in users, fact.seq))
        order.append((-_worth(said, users, min(seqs), max(seqs)), best.seq, normal, best))
    return [fact for *_, fact in sorted(order, key=lambda entry: entry[:3])]


def is_askable(fact: Fact) -> bool:
    """Whether somebody would ask for it. A lone lower-case word, in quotes or in a Chinese line, and "one of them" are
    wording, and no facts."""
    if fact.kind == "number":
        return not _VAGUE_COUNT.fullmatch(fact.text)
    if fact.kind not in ("quote", "code", "name", "title"):
        return True
    if fact.kind in ("quote", "code") and _PLAIN_WORD.fullmatch(fact.text):
        return False
    return bool(terms(fact.text)) or not fact.text.isascii()


def split_kept(summary: str, facts: Iterable[Fact]) -> tuple[list[Fact], list[Fact]]:
    """Which distinct facts a summary still holds, in whatever spelling, and which are missing."""
    said = SOURCE_TAG.sub("", summary)
    held = {form for fact in find_facts(said) for form in vaguer_dates(fact.normal)}
    plain = normalise(said)
    split: tuple[list[Fact], list[Fact]] = ([], [])
    for fact in {fact.normal: fact for fact in facts}.values():
        split[0 if fact.normal in held or _occurs_in(normalise(fact.text), plain) else 1].append(fact)
    return split


def fact_weight(fact: Fact) -> float:
    """What a fact of this kind is worth, at most 1; a number without a unit says little by itself."""
    return _BARE_NUMBER_WEIGHT if _BARE.fullmatch(fact.text) else _KIND_WEIGHTS[fact.kind]


def _worth(said: list[Fact], users: set[int], first_seq: int, last_seq: int) -> float:
    """Whether a user said it outweighs all else."""
    by_user = any(fact.seq in users for fact in said)
    rarity = 1.0 / len({fact.seq for fact in said})
    recency = (max(fact.seq for fact in said) - first_seq) / (last_seq - first_seq + 1)
    return 2.0 * by_user + fact_weight(said[0]) + 0.5 * rarity + 0.5 * recency


def _occurs_in(normal: str, plain: str) -> bool:
    """Whether it stands there as itself: 15 is not kept by a summary that says 150."""
    at = plain.find(normal) if normal else -1
    while at >= 0:
        before, after = plain[at - 1 : at], plain[at + len(normal) : at + len(normal) + 1]
        if not (_are_one_word(before, normal[0]) or _are_one_word(normal[-1], after)):
            return True
        at = plain.find(normal, at + 1)
    return False


def _are_one_word(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word; Chinese is written without spaces."""
    return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()
