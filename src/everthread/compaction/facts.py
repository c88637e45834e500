"""The facts of a conversation: what a summary must not lose, found by plain rules, ranked, checked.

A fact is a piece of the text itself (a number with its unit, a date, a name, a path, a URL, an id, a
quoted string …) with a normal form by which two spellings of it compare as one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from everthread.compaction.sources import Source, both_ends, is_user
from everthread.text.fact_rule import SIGNS, FactKind, Rule
from everthread.text.fact_rules import RULES, RULES_IN_CODE
from everthread.text.language import readable
from everthread.text.names import find_names
from everthread.text.normal_forms import dates_within, normalise

# The mark by which a line of a summary names its source: `[#12]`, `[#5–#9]`, `[#12, 2024-05-03]`. No fact.
TAG = re.compile(r"\[#\d+(?:(?:–|, )#\d+)*(?:, \d{4}-\d\d-\d\d)?\]")
_FENCED = re.compile(r"(?ms)^[ \t]{0,8}(```+|~~~+).*?(?:^[ \t]{0,8}\1|\Z)")

_BARE = re.compile(r"-?[\d.,]+")
_BARE_NUMBER_WEIGHT = 0.5
# How much a fact of a kind is worth to who goes on with the work: what can be acted on before wording.
_KIND_WEIGHTS: dict[FactKind, float] = {
    "code": 0.6, "date": 1.0, "email": 1.0, "error": 1.0, "file": 0.9, "handle": 0.9, "id": 0.9, "money": 1.0,
    "name": 0.8, "number": 0.9, "path": 1.0, "quote": 0.5, "time": 0.9, "title": 0.9, "url": 1.0, "version": 0.9,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One fact where it was said."""

    kind: FactKind
    text: str
    """As it stands in the message."""
    normal: str
    """Its one spelling for comparing."""
    seq: int = 0
    start: int = 0
    """Where in its text it begins."""


def find_facts(text: str, *, seq: int = 0) -> list[Fact]:
    """The facts of one text, each where it stands first, in the order of the text."""
    first: dict[str, Fact] = {}
    for fact in sorted(_located(text, seq), key=lambda fact: fact.start):
        first.setdefault(fact.normal, fact)
    return list(first.values())


def facts_of(sources: Sequence[Source]) -> list[Fact]:
    """The facts of every message and of the arguments of its calls; one said twice stands there twice."""
    found: list[Fact] = []
    for source in sources:
        found += find_facts(both_ends(readable(source.text)), seq=source.seq)
        for call in source.calls:
            found += find_facts(both_ends(readable(call.arguments)), seq=source.seq)
    return found


def rank_facts(facts: Iterable[Fact], sources: Sequence[Source]) -> list[Fact]:
    """Each distinct fact once, the most worth keeping first: said by a user, rare, recent.

    A fact said several times is given where a user said it last, else where anyone did.
    """
    users = {source.seq for source in sources if is_user(source)}
    mentions: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        mentions[fact.normal].append(fact)
    seqs = [source.seq for source in sources] or [0]
    order: list[tuple[float, int, str, Fact]] = []
    for normal, said in mentions.items():
        best = max(said, key=lambda fact: (fact.seq in users, fact.seq))
        order.append((-_worth(said, users, min(seqs), max(seqs)), best.seq, normal, best))
    return [fact for *_, fact in sorted(order, key=lambda entry: entry[:3])]


def kept(summary: str, facts: Iterable[Fact]) -> tuple[list[Fact], list[Fact]]:
    """Which distinct facts a summary still holds, in whatever spelling, and which are missing."""
    said = TAG.sub("", summary)
    held = {form for fact in find_facts(said) for form in dates_within(fact.normal)}
    plain = normalise(said)
    split: tuple[list[Fact], list[Fact]] = ([], [])
    for fact in {fact.normal: fact for fact in facts}.values():
        split[0 if fact.normal in held or _stands_in(normalise(fact.text), plain) else 1].append(fact)
    return split


def weight(fact: Fact) -> float:
    """What a fact of this kind is worth, at most 1; a number without a unit says little by itself."""
    return _BARE_NUMBER_WEIGHT if _BARE.fullmatch(fact.text) else _KIND_WEIGHTS[fact.kind]


def _worth(said: list[Fact], users: set[int], first_seq: int, last_seq: int) -> float:
    """Whether a user said it outweighs all else."""
    by_user = any(fact.seq in users for fact in said)
    rarity = 1.0 / len({fact.seq for fact in said})
    recency = (max(fact.seq for fact in said) - first_seq) / (last_seq - first_seq + 1)
    return 2.0 * by_user + weight(said[0]) + 0.5 * rarity + 0.5 * recency


def _located(text: str, seq: int) -> Iterator[Fact]:
    """Line by line: no fact spans two, and most lines show at once that they hold none."""
    code = _fenced(text)
    at = 0
    for line in text.split("\n"):
        yield from _in_line(line, seq, at, in_code=bool(code) and code[at] == 1)
        at += len(line) + 1


def _fenced(text: str) -> bytearray:
    """Marks the characters inside fenced blocks; empty where there is none."""
    if "```" not in text and "~~~" not in text:
        return bytearray()
    marks = bytearray(len(text) + 1)
    for block in _FENCED.finditer(text):
        marks[block.start() : block.end()] = b"\1" * (block.end() - block.start())
    return marks


def _in_line(line: str, seq: int, at: int, *, in_code: bool) -> Iterator[Fact]:
    present = {name for name, sign in SIGNS.items() if sign(line)}
    claimed = bytearray(len(line))
    for rule in RULES_IN_CODE if in_code else RULES:
        if rule.sign in present:
            yield from _by_rule(rule, line, seq, at, claimed)
    for start, end in find_names(line) if "upper" in present and not in_code else ():
        if 1 not in claimed[start:end]:
            said = line[start:end]
            yield Fact(kind="name", text=said, normal=normalise(said), seq=seq, start=at + start)


def _by_rule(rule: Rule, line: str, seq: int, at: int, claimed: bytearray) -> Iterator[Fact]:
    pattern = rule.pattern
    group = pattern.groupindex.get("fact", 0)
    for match in pattern.finditer(line):
        start, end = match.span(group)
        if 1 in claimed[start:end] or (rule.guard is not None and not rule.guard(match)):
            continue
        normal = rule.normal(match)
        if normal:
            claimed[start:end] = b"\1" * (end - start)
            yield Fact(kind=rule.kind, text=match[group], normal=normal, seq=seq, start=at + start)


def _stands_in(normal: str, plain: str) -> bool:
    """Whether it stands there as itself: 15 is not kept by a summary that says 150."""
    at = plain.find(normal) if normal else -1
    while at >= 0:
        before, after = plain[at - 1 : at], plain[at + len(normal) : at + len(normal) + 1]
        if not (_joined(before, normal[0]) or _joined(normal[-1], after)):
            return True
        at = plain.find(normal, at + 1)
    return False


def _joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word; Chinese is written without spaces."""
    return left.isascii() and right.isascii() and left.isalnum() and right.isalnum()
