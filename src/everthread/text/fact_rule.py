"""What a rule for telling facts is, and the signs by which most lines show that a rule need not be tried."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from everthread.text import normal_forms as forms
from everthread.text.language import language_of_text

FactKind = Literal[
    "code", "date", "email", "error", "file", "handle", "id", "money", "name", "number",
    "path", "quote", "time", "title", "url", "version",
]  # fmt: skip

Match = re.Match[str]
Sign = Callable[[str], object]


def _said(match: Match) -> str:
    return forms.normalise(match[match.re.groupindex.get("fact", 0)])


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRule:
    """One way of telling a fact: the whole match, or its group `fact` where what stands around it is no part of it."""

    kind: FactKind
    sign: str
    """The key in `SIGNS` of what a line must hold for this rule to be tried at all."""
    written: str
    """Its pattern, as text."""
    normal: Callable[[Match], str] = _said
    guard: Callable[[Match], bool] | None = None
    in_code: bool = False
    """Whether it also applies inside a fenced block, whose names and strings are not facts one by one."""

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.written)


@cache
def _compiled(written: str) -> re.Pattern[str]:
    """At first use: there are seventy, and most programs that import them compact nothing."""
    return re.compile(written)


def fact_rule(
    kind: FactKind,
    sign: str,
    pattern: str,
    *,
    normal: Callable[[Match], str] = _said,
    guard: Callable[[Match], bool] | None = None,
    in_code: bool = False,
) -> FactRule:
    """A rule from its pattern as text."""
    return FactRule(kind=kind, sign=sign, written=pattern, normal=normal, guard=guard, in_code=in_code)


def _holds(*marks: str) -> Sign:
    return re.compile("|".join(map(re.escape, marks))).search


SIGNS: dict[str, Sign] = {
    "at": _holds("@"),
    "backtick": _holds("`"),
    "call": _holds("()"),
    "chinese": re.compile(r"[\u4e00-\u9fff]").search,
    "chinese line": lambda line: language_of_text(line) == "zh",
    "chinese number": re.compile(r"[一二两三四五六七八九十百千]").search,
    "code number": _holds("HTTP", "tatus", "rror", "rrno", "xit ", "code"),
    "counted": _holds(
        "year", "month", "week", "day", "hour", "minute", "second", "night", "kid", "child", "son", "daughter", "dog",
        "cat", "people", "time", "percent", "dollar", "mile", "kilomet", "bag", "passenger", "ticket", "book", "page",
        "chapter", "session", "room", "sibling", "friend",
    ),
    "curly quote": _holds("“"),
    "currency": re.compile(r"[$€£¥￥]").search,
    "dashes": _holds("--"),
    "defines": _holds("def ", "class ", "function ", "interface ", "struct ", "func ", "fn ", "enum ", "trait "),
    "digit": re.compile(r"\d").search,
    "dot": re.compile(r"\.\w").search,
    "double quote": _holds('"'),
    "failure": re.compile(r"Error|Exception|Warning|Fault|ERR_|SIG|\bE[A-Z]{3}").search,
    "list comma": _holds("、"),
    "scheme": _holds("://"),
    "single quote": re.compile(r"(?<!\w)'\w").search,
    "slash": _holds("/", "\\"),
    "title": _holds("「", "『", "《"),
    "underscore": _holds("_"),
    "upper": re.compile(r"[A-Z]").search,
}  # fmt: skip
