"""What parsers say of a wrong value, in the words of our own errors: for every door at which somebody writes one."""

from __future__ import annotations

import re
from json import JSONDecodeError

_WORDS = (
    (re.compile(r"Input should be a valid integer\b[^;]*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number\b[^;]*"), "must be a number"),
    (re.compile(r"Input should be a valid boolean\b[^;]*"), "must be true or false"),
    (re.compile(r"Input should be a valid string"), "must be text"),
    (re.compile(r"Input should be a valid list"), "must be a list"),
    (re.compile(r"Input should be a valid dictionary(?: or object to extract fields from)?"), "must be an object"),
    (re.compile(r"Input should be"), "must be"),
    (re.compile(r"Field required"), "is missing"),
    (re.compile(r"Extra inputs are not permitted"), "is not known here"),
    (re.compile(r"String should have"), "must have"),
    (re.compile(r"Value error, "), ""),
)


def plain_words(message: str) -> str:
    """A message of pydantic without its names for types."""
    for pattern, words in _WORDS:
        message = pattern.sub(words, message)
    return message


def not_json(problem: Exception) -> str:
    """Why a text is not JSON, without the parser's own words."""
    if isinstance(problem, JSONDecodeError):
        return f"not JSON from character {problem.pos + 1} on"
    if isinstance(problem, UnicodeDecodeError):
        return "not text in UTF-8"
    if isinstance(problem, RecursionError):
        return "nested too deeply to be read"
    return f"not JSON: {problem}"
