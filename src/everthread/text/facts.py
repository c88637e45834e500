"""The facts of a text, found by plain rules in English and Chinese.

A fact is a piece of the text itself (a number with its unit, a date, a name, a path, a URL, an id, a quoted string …)
with a normal form by which two spellings of it compare as one.

The order of `RULES` is their precedence: what an earlier rule has claimed no later one reports again, so
a date inside a URL is part of the URL. Every repetition is bounded, so a hostile text costs linear time.
Quantities and names have modules of their own: English names depend on the place in the line, Chinese ones on what
stands around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter
from typing import NamedTuple

from everthread.core.recent import forget_on_erase
from everthread.text.fact_rule import FILE_TYPES, SIGNS, UPPER, FactKind, FactRule, Match, fact_rule, needs_met
from everthread.text.fact_rules_names import NOT_NAMES, PEOPLE, PLACES, find_names
from everthread.text.fact_rules_quantities import DATES, MONEY, MONTH, NUMBERS, TIMES
from everthread.text.normal_forms import normalise

_URL_END = r"\s<>\"'`（）()\[\]{}，。；、！？"
_HAN = r"[\u4e00-\u9fff]"
_NUMBERED_LABELS = "Step|Option|Example|Phase|Task|Part|Day|Week|Method|Item|Table|Figure|Section|Chapter"


def _address(match: Match) -> str:
    return normalise(match["fact"]).removeprefix("https://").removeprefix("http://").rstrip("/")


def _is_path(match: Match) -> bool:
    """`and/or` and `he/she/they` are words; a path has a root, a mark no word has, or a known first folder."""
    text = match[0]
    rooted = text.startswith(("/", "~", "./", "../")) and not text.startswith("//")
    marked = bool(re.search(r"[._\d-]|/$", text)) and bool(re.match(r"[\w.@+-]*[a-z_.]{2}", text.split("/")[0]))
    return rooted or marked or bool(re.match(r"(?:src|app|apps|tests?|docs?|lib|bin|etc|pkg|cmd|api|web)/", text))


def _is_mixed(match: Match) -> bool:
    return bool(re.search(r"\d", match[0])) and bool(re.search(r"[A-Za-z]", match[0]))


def _is_versioned(match: Match) -> bool:
    """Python 3.11, Postgres 14; not Add 20."""
    return match[0].split(" ")[0].lower() not in NOT_NAMES


def _has_word(match: Match) -> bool:
    return bool(re.search(r"\w", match["fact"]))


_ADDRESSES: tuple[FactRule, ...] = (
    fact_rule(
        "url",
        "scheme",
        rf"(?P<fact>(?:https?|ftp|wss?|file)://[^{_URL_END}]{{3,500}}?)(?=[.,;:!?]*(?:[{_URL_END}]|$))",
        normal=_address,
        in_code=True,
    ),
    fact_rule(
        "email", "at", r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}\b", in_code=True
    ),
    fact_rule("handle", "at", rf"(?<![\w@./])@(?:[A-Za-z0-9_][\w-]{{1,38}}(?![\w-])|{_HAN}{{2,3}}(?!{_HAN}))"),
    fact_rule("path", "drive", r"(?<![\w\\])[A-Za-z]:\\[\w .\\-]{1,200}\w", in_code=True),
    fact_rule(
        "path",
        "slash",
        r"(?<![A-Za-z0-9_./:<-])(?:~|\.{1,2})?(?:/?[A-Za-z0-9_.@+-]{1,80})?"
        r"(?:/[A-Za-z0-9_.@+{}-]{0,79}[A-Za-z0-9_@+{}-]){1,20}/?",
        guard=_is_path,
        in_code=True,
    ),
    fact_rule(
        "file",
        "file type",
        rf"(?<![\w./-])[A-Za-z0-9_][\w-]{{0,60}}(?:\.[\w-]{{1,30}}){{0,2}}\.{FILE_TYPES}(?![\w/])",
        in_code=True,
    ),
    fact_rule(
        "file",
        "dot file",
        r"(?<![\w./])\.(?:env|gitignore|dockerignore|bashrc|zshrc|npmrc|editorconfig)(?:\.\w{1,20})?\b",
        in_code=True,
    ),
    fact_rule("id", "uuid", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", in_code=True),
    fact_rule("id", "decimal", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{2,5})?\b", in_code=True),
)

_MARKS: tuple[FactRule, ...] = (
    fact_rule(
        "version",
        "decimal",
        r"(?<![\w.])[vV]?\d{1,4}\.\d{1,4}\.\d{1,5}(?:\.\d{1,5})?(?:[-.+]?(?:rc|beta|alpha|dev|post|a|b)[.-]?\d{0,4})?"
        r"(?![\w]|\.\w)",
        in_code=True,
    ),
    fact_rule(
        "version", "version letter", r"\b[vV]\d{1,3}(?:\.\d{1,4}){0,2}(?:[-.]?(?:rc|beta|alpha|dev)\d{0,3})?\b(?!\.\d)"
    ),
    fact_rule(
        "error",
        "failure",
        r"\b(?:[A-Z][A-Za-z]{0,60}(?:Error|Exception|Warning|Fault)|ERR_[A-Z0-9_]{2,40}"
        r"|SIG(?:KILL|TERM|SEGV|INT|HUP|PIPE|ABRT)|E(?:NOENT|ACCES|PERM|EXIST|INVAL|CONNREFUSED|CONNRESET|TIMEDOUT"
        r"|PIPE|ADDRINUSE|MFILE|NOSPC|AGAIN|ISDIR|NOTDIR|BUSY|HOSTUNREACH))\b",
        in_code=True,
    ),
    fact_rule(
        "error",
        "code number",
        r"\b(?:HTTP|[Ss]tatus(?: code)?|[Ee]rror(?: code)?|[Ee]rrno|[Ee]xit(?: code| status)|code)"
        r"[ :=#]{1,3}-?\d{1,6}\b",
    ),
    fact_rule("error", "chinese code", r"(?:错误码|状态码|返回码|报错?)\s?[:：]?\s?\d{3,6}"),
    fact_rule("id", "number of code", r"\b[A-Z][A-Z0-9]{1,9}-\d{1,8}\b", in_code=True),
    # In brackets it is how a summary names a message, and no fact.
    fact_rule("id", "hash", r"(?<![\w#&\[])#\d{1,8}\b"),
    fact_rule(
        "id",
        "phone",
        r"(?<![\w.])(?:\+\d{1,3}[ -]?)?(?:\(\d{2,4}\) ?)?\d{2,4}[ -]\d{3,4}[ -]\d{3,4}(?![\w.-])",
    ),
    fact_rule("id", "hex", r"\b[0-9a-f]{7,40}\b", guard=_is_mixed),
    fact_rule("id", "upper code", r"\b[A-Z0-9]{5,24}\b", guard=_is_mixed),
    fact_rule("id", "underscore number", r"\b[A-Za-z][A-Za-z0-9]{0,30}(?:_[A-Za-z0-9]{1,30}){0,5}_\d{2,12}\b"),
)

_CODE: tuple[FactRule, ...] = (
    fact_rule("code", "backtick", r"(?<!`)`(?=\S)(?P<fact>[^`\n]{1,100})(?<=\S)`(?!`)", guard=_has_word),
    fact_rule(
        "code",
        "defines",
        r"^[ \t]{0,40}(?:export |public |async |pub |abstract ){0,3}"
        r"(?:def|class|function|interface|struct|func|fn|enum|trait)[ \t]+(?P<fact>[A-Za-z_]\w{1,60})",
        in_code=True,
    ),
    fact_rule("code", "call", r"(?<![\w.])[A-Za-z_][\w.]{1,60}\(\)"),
    # A key of a JSON object is no fact; its value is.
    fact_rule(
        "code",
        "underscore",
        r"(?<![A-Za-z0-9_./-])_{0,2}[A-Za-z][A-Za-z0-9]{0,40}(?:_[A-Za-z0-9]{1,40}){1,8}_{0,2}"
        r"(?![A-Za-z0-9_/])(?!\"\s{0,3}:)",
    ),
    fact_rule(
        "code",
        "camel case",
        r"(?<![A-Za-z0-9_./-])(?:[A-Z][a-z0-9]{1,30}|[a-z]{1,20})(?:[A-Z][a-z0-9]{0,30}){1,6}"
        r"(?![A-Za-z0-9_/])(?!\"\s{0,3}:)",
    ),
    fact_rule("code", "dashes", r"(?<![\w-])--[a-z][a-z0-9-]{1,40}(?:=[\w./-]{1,60})?"),
)

_NAMED: tuple[FactRule, ...] = (
    *PLACES,
    fact_rule(
        "version",
        "word and number",
        rf"(?<![\w.-])(?!(?:{_NUMBERED_LABELS}|{MONTH})\b)[A-Z][A-Za-z+#]{{1,20}} "
        r"(?:\d{2,3}|\d{1,3}(?:\.\d{1,3}){1,2})(?![\w.%]|,\d)",
        guard=_is_versioned,
    ),
)

_QUOTED: tuple[FactRule, ...] = (
    fact_rule("title", "title", r"《(?P<fact>[^《》\n]{1,60})》", guard=_has_word),
    fact_rule("title", "title", r"[「『](?P<fact>[^「」『』\n]{1,60})[」』]", guard=_has_word),
    fact_rule("quote", "curly quote", r"“(?P<fact>[^“”\n]{2,80})”", guard=_has_word),
    fact_rule(
        "quote",
        "double quote",
        r"(?<![\w\"])\"(?=\S)(?P<fact>[^\"\n]{2,80})(?<=\S)\"(?![\w\"])(?!\s{0,3}:)",
        guard=_has_word,
    ),
    fact_rule("quote", "single quote", r"(?<![\w'])'(?P<fact>[^'\n]{2,60})'(?![\w'])(?!\s{0,3}:)", guard=_has_word),
)

_IN_CHINESE: tuple[FactRule, ...] = (
    # In a Chinese line a Latin word is a product, a command or a name, whatever its case.
    fact_rule(
        "code",
        "chinese line",
        r"(?<![A-Za-z0-9_.@/#+-])[A-Za-z][A-Za-z0-9+#]{1,30}(?:[.-][A-Za-z0-9]{1,20}){0,2}(?![A-Za-z0-9_@/])",
    ),
)

RULES: tuple[FactRule, ...] = (
    *_ADDRESSES,
    *DATES,
    *TIMES,
    *MONEY,
    *_MARKS,
    *_CODE,
    *_NAMED,
    *NUMBERS,
    *_QUOTED,
    *PEOPLE,
    *_IN_CHINESE,
)


_FENCED = re.compile(r"(?ms)^[ \t]{0,8}(```+|~~~+).*?(?:^[ \t]{0,8}\1|\Z)")
_CACHED_LINES = 2_048
_CACHED_CHARACTERS = 1_000
"""While a summary is written its lines are looked at again and again: to choose, to list what is missing, to count."""


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


class _LineFact(NamedTuple):
    """One fact where it stands in its line."""

    start: int
    kind: FactKind
    text: str
    normal: str


def find_facts(text: str, *, seq: int = 0) -> list[Fact]:
    """The facts of one text, each where it stands first, in the order of the text."""
    first: dict[str, Fact] = {}
    for at, (start, kind, said, normal) in _facts_by_line(text):
        if normal not in first:
            first[normal] = Fact(kind=kind, text=said, normal=normal, seq=seq, start=at + start)
    return list(first.values())


def _facts_by_line(text: str) -> Iterator[tuple[int, _LineFact]]:
    """Line by line, with where the line begins: no fact spans two, and most lines show at once that they hold none."""
    code = _fenced(text)
    at = 0
    for line in text.split("\n"):
        in_code = bool(code) and code[at] == 1
        find = _cached_line if len(line) <= _CACHED_CHARACTERS else _facts_in_line
        for fact in find(line, in_code):
            yield at, fact
        at += len(line) + 1


def _fenced(text: str) -> bytearray:
    """Marks the characters inside fenced blocks; empty where there is none."""
    if "```" not in text and "~~~" not in text:
        return bytearray()
    marks = bytearray(len(text) + 1)
    for block in _FENCED.finditer(text):
        marks[block.start() : block.end()] = b"\1" * (block.end() - block.start())
    return marks


def _facts_in_line(line: str, in_code: bool) -> tuple[_LineFact, ...]:
    """In the order of the line; of two that begin at one place the earlier rule's first."""
    met = needs_met(line)
    to_try: list[int] = []
    for test, places in _signs_for(met, in_code):
        if test is None or test(line):
            to_try += places
    claimed = bytearray(len(line))
    found: list[_LineFact] = []
    for place in sorted(to_try):
        found += _facts_by_rule(RULES[place], line, claimed)
    if met & UPPER and not in_code:
        for start, end in find_names(line):
            if 1 not in claimed[start:end]:
                said = line[start:end]
                found.append(_LineFact(start, "name", said, normalise(said)))
    return tuple(sorted(found, key=itemgetter(0)))


_cached_line = lru_cache(maxsize=_CACHED_LINES)(_facts_in_line)
forget_on_erase(_cached_line.cache_clear)


@cache
def _signs_for(met: int, in_code: bool) -> list[tuple[Callable[[str], object] | None, list[int]]]:
    """The signs to look for in a line that has so much, each with the places of its rules."""
    places: dict[str, list[int]] = {}
    for place, rule in enumerate(RULES):
        if (rule.in_code or not in_code) and SIGNS[rule.sign].needs & ~met == 0:
            places.setdefault(rule.sign, []).append(place)
    return [(SIGNS[sign].test, some) for sign, some in places.items()]


def _facts_by_rule(rule: FactRule, line: str, claimed: bytearray) -> Iterator[_LineFact]:
    pattern = rule.pattern
    group = pattern.groupindex.get("fact", 0)
    for match in pattern.finditer(line):
        start, end = match.span(group)
        if 1 in claimed[start:end] or (rule.guard is not None and not rule.guard(match)):
            continue
        normal = rule.normal(match)
        if normal:
            claimed[start:end] = b"\1" * (end - start)
            yield _LineFact(start, rule.kind, match[group], normal)
