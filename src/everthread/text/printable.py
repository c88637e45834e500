"""Text as a terminal displays it: messages may hold anything, and what a terminal would obey is escaped."""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Escape sequences, NUL, marks that change the direction of text, lone surrogates."""


def printable(text: str) -> str:
    """The text with control characters escaped; newlines and tabs stay."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same, on a single line."""
    return " ".join(printable(text).split("\n")).replace("\t", " ")
