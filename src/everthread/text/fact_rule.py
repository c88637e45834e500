"""What a rule for telling facts is, and the signs by which most lines show that a rule need not be tried.

There are seventy rules, and a pattern that matches nothing still has to look at every character. So a rule names a sign
that every one of its facts has: on an ordinary line of prose a handful of patterns are tried.
"""

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


DIGIT, UPPER, WIDE = 1, 2, 4
"""What a line must have for a sign to be looked for at all: a digit, a capital letter, a character that is not ASCII.
Three plain questions, asked once for each line. Numbers, because a flag makes an object of every answer."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What every fact of a rule has in it, found sooner than by the rule's own pattern."""

    needs: int
    """Of `DIGIT`, `UPPER` and `WIDE`."""
    test: Callable[[str], object] | None = None
    """None where what it needs says it all."""


def _holds(*marks: str, needs: int = 0) -> Sign:
    if len(marks) == 1:
        return Sign(needs, _finder(marks[0]))
    return Sign(needs, re.compile("|".join(map(re.escape, marks))).search)


def _finder(mark: str) -> Callable[[str], object]:
    return lambda line: mark in line


def _matches(pattern: str, needs: int = 0) -> Sign:
    return Sign(needs, re.compile(pattern).search)


FILE_TYPES = (
    r"(?:py|pyi|ipynb|js|jsx|mjs|ts|tsx|vue|json|jsonl|md|mdx|rst|txt|csv|tsv|ya?ml|toml|ini|cfg|conf|env|lock|html?"
    r"|css|scss|sql|db|sqlite3?|sh|bash|ps1|bat|go|rs|rb|java|kt|swift|c|cc|cpp|h|hpp|cs|php|lua|r|xml|svg|log|diff"
    r"|patch|pdf|docx?|xlsx?|pptx?|png|jpe?g|gif|webp|mp[34]|wav|mov|zip|tar|gz|tgz|whl|exe|pem|key)"
)
_CHINESE_NUMBER = re.compile("[一二两三四五六七八九十百千]").search
_OPENING_QUOTE = re.compile(r"(?<!\w)'\w").search
_counted_thing = re.compile(
    " (?:year|month|week|day|hour|minute|second|night|kid|child|son|daughter|dog|cat|people|time|percent|dollar|mile"
    "|kilomet|bag|passenger|ticket|book|page|chapter|session|room|sibling|friend)"
).search
_NUMBER_WORD = re.compile(f"(?:{'|'.join(forms.NUMBER_WORDS)}) [a-z]").search

SIGNS: dict[str, Sign] = {
    "am or pm": _matches(r"\d ?[aApP]\.?[mM]", DIGIT),
    "at": _holds("@"),
    "backtick": _holds("`"),
    "call": _holds("()"),
    "camel case": _matches("[a-z0-9][A-Z]", UPPER),
    "chinese": _matches(r"[\u4e00-\u9fff]", WIDE),
    "chinese amount": _matches("[万亿]", DIGIT | WIDE),
    "chinese code": _matches("[码报]", DIGIT | WIDE),
    "chinese day": _matches("[日号]", DIGIT | WIDE),
    "chinese hour": _holds("点", needs=WIDE),
    "chinese line": Sign(WIDE, lambda line: language_of_text(line) == "zh"),
    "chinese money": Sign(WIDE, lambda line: _CHINESE_NUMBER(line) and ("块" in line or "元" in line)),
    "chinese month": _holds("月", needs=WIDE),
    "chinese number": Sign(WIDE, _CHINESE_NUMBER),
    "chinese percent": _holds("百分之", needs=WIDE),
    "chinese year": _holds("年", needs=WIDE),
    "clock": _matches(r"\d[:：]\d", DIGIT),
    "code number": _holds("HTTP", "tatus", "rror", "rrno", "xit ", "code", needs=DIGIT),
    "counter": Sign(DIGIT, lambda line: "%" in line or not line.isascii()),
    "counted": Sign(0, lambda line: _counted_thing(line) and _NUMBER_WORD(line.lower())),
    "curly quote": _holds("“", needs=WIDE),
    "currency": _matches(r"[$€£¥￥]\s?\d", DIGIT),
    "currency word": _matches(
        "块|元|人民币|美金|港币|USD|CNY|RMB|EUR|GBP|dollar|euro|yuan|bucks|pounds", DIGIT
    ),
    "dashed digits": _matches(r"\d-\d", DIGIT),
    "dashes": _holds("--"),
    "decimal": _matches(r"\d\.\d", DIGIT),
    "defines": Sign(
        0,
        re.compile(
            r"[ \t]{0,40}(?:export |public |async |pub |abstract ){0,3}"
            "(?:def|class|function|interface|struct|func|fn|enum|trait)[ \t]"
        ).match,
    ),
    "digit": Sign(DIGIT),
    "dot file": _matches(r"\.(?:env|git|docker|bash|zsh|npm|editor)"),
    "double quote": _holds('"'),
    "drive": _holds(":\\"),
    "failure": _matches(r"Error|Exception|Warning|Fault|ERR_|SIG|E[A-Z]{3}", UPPER),
    "file type": _matches(rf"\.{FILE_TYPES}(?![\w/])"),
    "hash": _holds("#", needs=DIGIT),
    "hex": _matches("[0-9a-f]{7}", DIGIT),
    "list comma": _holds("、", needs=WIDE),
    "month": _matches("Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec", DIGIT | UPPER),
    "number and unit": _matches(r"\d[kKM]?[ -]?[A-Za-zµ]", DIGIT),
    "number of code": _matches(r"[A-Z0-9]-\d", DIGIT | UPPER),
    "ordinal": _matches(r"\d(?:st|nd|rd|th)", DIGIT),
    "phone": _matches(r"\d[ -]\d{3,4}[ -]\d", DIGIT),
    "scheme": _holds("://"),
    "single quote": Sign(0, lambda line: "'" in line and _OPENING_QUOTE(line)),
    "slash": _holds("/"),
    "small month": _matches("jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", DIGIT),
    "slashed digits": _matches(r"\d/\d", DIGIT),
    "slashed or dotted digits": _matches(r"\d[/.]\d", DIGIT),
    "title": _matches("[「『《]", WIDE),
    "underscore": _holds("_"),
    "underscore number": _matches(r"_\d", DIGIT),
    "upper code": _matches("[A-Z0-9]{5}", DIGIT | UPPER),
    "uuid": _matches("[0-9a-fA-F]-[0-9a-fA-F]{4}-", DIGIT),
    "version letter": _matches(r"[vV]\d", DIGIT),
    "word and number": _matches(r"[A-Z][A-Za-z+#]{1,20} \d", DIGIT | UPPER),
}  # fmt: skip

_has_digit = re.compile(r"\d").search
_has_upper = re.compile("[A-Z]").search


def needs_met(line: str) -> int:
    """What of it a line has."""
    digit = DIGIT if _has_digit(line) else 0
    upper = UPPER if _has_upper(line) else 0
    return digit | upper | (0 if line.isascii() else WIDE)
