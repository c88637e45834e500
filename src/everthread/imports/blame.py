"""`everthread blame`: which sessions touched a file or named a symbol, told by their tool calls, newest first."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Any

from everthread.core.nouns import MAX_PAGE, Message
from everthread.instance import Everthread


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTouch:
    """One tool call that named a file."""

    conversation_id: str
    title: str | None
    agent: str | None
    seq: int
    tool: str
    said_at: datetime
    argument: str
    """What of its arguments named the file."""


async def blame(et: Everthread, owner: str, name: str, *, limit: int) -> tuple[list[FileTouch], bool]:
    """The tool calls that named a file (by its path, or the end of one) or a symbol, newest first; and whether there
    may be more than were looked at."""
    name = _as_named(name)
    hits = await et.search(PurePath(name).name or name, owner=owner, limit=MAX_PAGE)
    found: list[FileTouch] = []
    for id in dict.fromkeys(hit.conversation_id for hit in hits):
        conversation = await et.conversations.get(id, owner)
        for seq in [hit.seq for hit in hits if hit.conversation_id == id]:
            message = await conversation.message_at(seq)
            for tool, argument in _named_in(message, name):
                found.append(
                    FileTouch(
                        conversation_id=id,
                        title=conversation.title,
                        agent=conversation.info.metadata.get("agent"),
                        seq=seq,
                        tool=tool,
                        said_at=message.said_at or message.created_at,
                        argument=argument,
                    )
                )
    found.sort(key=lambda touch: (touch.said_at, touch.seq), reverse=True)
    return found[:limit], hits.truncated


def _named_in(message: Message, name: str) -> Iterator[tuple[str, str]]:
    """Each call of a message that names it, with the argument that does; a path before a longer text."""
    calls: Any = message.payload.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        tool = call.get("name") or (function.get("name") if isinstance(function, dict) else None)
        given = call.get("args") or (function.get("arguments") if isinstance(function, dict) else None)
        matching = sorted((text for text in _strings(given) if _names(text, name)), key=len)
        if matching:
            yield str(tool), matching[0]


def _as_named(name: str) -> str:
    """A path as an agent would write it: without `./`, and nothing that another folder would have."""
    return name if "/" not in name or "://" in name else posixpath.normpath(name)


def _names(text: str, name: str) -> bool:
    """Whether a text is this path or the end of it, or has the name in it as a whole: `t.py` is not in `cart.py`."""
    if name.endswith(f"/{text}"):
        return True
    is_file = "." in name or "/" in name
    before, after = (r"(?<![\w.-])", r"(?![\w-]|\.\w)") if is_file else (r"(?<!\w)", r"(?!\w)")  # `self.login.x`
    return re.search(f"{before}{re.escape(name)}{after}", text) is not None


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
