"""The tags in which a program wraps what it puts among a user's messages. Pure.

Coding agents write `<command-name>/init</command-name>` or `<system-reminder>…</system-reminder>` where the user
speaks. Nobody said `name`: so the names of such tags are no words of the message where it is recalled. Told from markup
that somebody pastes and asks for again by this: a tag has no attributes and is closed, and it has a name of several
words (`command-name`, `environment_context`), which HTML and most XML have not, or stands at the very beginning.
"""

from __future__ import annotations

import re

from everthread.text.words import tokenize

WRAPPED_ROLES = frozenset({"user", "system", "developer"})
"""Where programs put such text; the tags that an assistant or a tool writes are what it says."""
_FENCE = "```"
_TAG = re.compile(r"(?<!`)(?:(?<!\w)<|<(/))([A-Za-z][A-Za-z0-9]{0,40}(?:[-_][A-Za-z0-9]{1,40}){0,8})>")


def blank_tags(text: str) -> str:
    """The text with a space for each character of such a tag, so that every other one stands where it stood."""
    if "</" not in text:
        return text
    tags = list(_TAG.finditer(text))
    closed = {tag[2] for tag in tags if not tag[1]} & {tag[2] for tag in tags if tag[1]}
    start = len(text) - len(text.lstrip())
    wraps = {tag[2] for tag in tags if tag[2] in closed and (tag.start() == start or not tag[2].isalnum())}
    parts: list[str] = []
    at = fences = 0
    for tag in (tag for tag in tags if tag[2] in wraps):
        before = text[at : tag.start()]
        fences += before.count(_FENCE)
        parts += before, tag[0] if fences % 2 else " " * len(tag[0])  # in a fence it is code
        at = tag.end()
    return "".join([*parts, text[at:]])


def words_of_tags(text: str) -> frozenset[str]:
    """The tokens that a text has in such tags only."""
    blank = blank_tags(text)
    return frozenset() if blank == text else frozenset(tokenize(text)).difference(tokenize(blank))
