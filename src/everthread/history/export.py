"""A conversation for people and other programs: Markdown, a page, JSON, a line for each message.

What is written follows from the log alone, so it is the same before and after a compaction, a restart, or an import of
the archive (`history/archive.py`, the only form that keeps everything).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from everthread.context.content_blocks import media_labels
from everthread.core import payloads
from everthread.core.errors import Invalid
from everthread.core.nouns import ConversationInfo, Message
from everthread.history.message_html import message_html

Format = Literal["md", "html", "json", "jsonl"]
MEDIA_TYPES: Mapping[str, str] = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "pdf": "application/pdf",
    "archive": "application/zstd",
}
SUFFIXES: Mapping[str, str] = {name: f".{name}" for name in MEDIA_TYPES} | {"archive": ".jsonl.zst"}
_LONGEST_LINE = 2_000
"""The length of a line beyond which no code is looked for in it."""
_NAMES = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}


class Block(NamedTuple):
    """A part of a message, as it is shown."""

    kind: Literal["text", "thinking", "call", "result"]
    text: str
    title: str = ""

    @property
    def heading(self) -> str:
        """The heading above the block; empty for the message's own text."""
        return {"text": "", "thinking": "Thinking", "call": f"Calls {self.title}", "result": "Result"}[self.kind]


class Parts(NamedTuple):
    """Which parts of a message to export besides its text."""

    thinking: bool = True
    tools: bool = True
    """Tool calls and their results."""

    @property
    def is_all(self) -> bool:
        return self.thinking and self.tools


ALL = Parts()
IN_PART = ("md", "html", "pdf")
"""The formats for people, which may leave parts out. A program would take a partial message for the whole one."""


async def export(
    info: ConversationInfo, messages: AsyncIterator[Message], format: Format, parts: Parts = ALL, *, preface: str = ""
) -> AsyncIterator[bytes]:
    """A conversation in one of the formats, piece by piece. The preface is HTML below the heading of a page."""
    if format not in get_args(Format):
        raise Invalid(f"must be one of {', '.join(get_args(Format))}, not {format!r}", field="format")
    check_parts(format, parts)
    if format == "html":
        written = _page(info, shown_of(messages, parts), preface)
    elif format == "md":
        written = _markdown(info, shown_of(messages, parts))
    else:
        written = {"json": _json, "jsonl": _lines}[format](info, messages)
    async for text in written:
        yield text.encode("utf-8", "replace")


def check_parts(format: str, parts: Parts) -> None:
    """Raise Invalid when parts are to be left out of a format that cannot."""
    if not parts.is_all and format not in IN_PART:
        left = "tools" if parts.thinking else "thinking"
        raise Invalid(f"{format} cannot leave parts out; {', '.join(IN_PART)} can", field=left)


Shown = tuple[Message, list[Block]]


async def shown_of(messages: AsyncIterator[Message], parts: Parts) -> AsyncIterator[Shown]:
    """Yield each message with the blocks to show; messages without any are skipped."""
    async for message in messages:
        every = blocks_of(message)
        blocks = [block for block in every if _is_shown(block, parts)]
        if blocks or not every:
            yield message, blocks


def _is_shown(block: Block, parts: Parts) -> bool:
    if block.kind == "thinking":
        return parts.thinking
    return parts.tools or block.kind == "text"


def blocks_of(message: Message) -> list[Block]:
    """Return the blocks of a message: its thinking, its text, and its tool calls."""
    payload = message.payload
    said = "\n".join(filter(None, (message.text, *media_labels(payloads.fields(payload)))))
    if message.role == "tool":
        return [Block("result", said, message.name or "")]
    thinking = [Block("thinking", text) for text in _thinking(payload)]
    text = [Block("text", said)] if said else []
    return [*thinking, *text, *_calls(payload)]


def _thinking(payload: Mapping[str, Any]) -> Iterator[str]:
    data = payload.get("data") if isinstance(payload.get("data"), dict) else payload
    own = data.get("reasoning_content") if isinstance(data, dict) else None
    if isinstance(own, str) and own:
        yield own
    content = data.get("content") if isinstance(data, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") in ("thinking", "reasoning"):
            text = block.get("thinking") or block.get("reasoning") or block.get("text")
            if isinstance(text, str) and text:
                yield text


def _calls(payload: Mapping[str, Any]) -> Iterator[Block]:
    data = payload.get("data") if isinstance(payload.get("data"), dict) else payload
    calls = data.get("tool_calls") if isinstance(data, dict) else None
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            function = call.get("function")
            inner = function if isinstance(function, dict) else call
            name, arguments = inner.get("name"), inner.get("arguments", inner.get("args", {}))
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            yield Block("call", text, str(name))


def heading(info: ConversationInfo) -> str:
    """The heading of an export: the conversation's title or id."""
    return info.title or info.id


def moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def said_at(message: Message) -> datetime:
    """When a message was said: of an imported one, long before it was written to the log."""
    return message.said_at or message.created_at


def speaker(message: Message) -> str:
    """The name shown for the message's speaker."""
    role = _NAMES.get(message.role, message.role)
    return f"{role} ({message.name})" if message.name else role


# -- Markdown --------------------------------------------------------------------------------------------------


async def _markdown(info: ConversationInfo, shown: AsyncIterator[Shown]) -> AsyncIterator[str]:
    yield f"# {_inert(_one_line(heading(info)))}\n"
    async for message, blocks in shown:
        yield f"\n## {message.seq}. {_inert(_one_line(speaker(message)))}, {moment(said_at(message))}\n"
        for block in blocks:
            yield f"\n{_as_markdown(block)}\n"


def _as_markdown(block: Block) -> str:
    if block.kind == "text":
        return "\n".join(_inert_lines(block.text.split("\n")))
    if block.kind == "thinking":
        return "\n".join(f"> {_inert(line)}" for line in block.text.split("\n"))
    fence = "`" * max(3, _longest_run(block.text) + 1)
    return f"{block.heading}:\n\n{fence}\n{block.text}\n{fence}"


_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


def _inert_lines(lines: Iterable[str]) -> Iterator[str]:
    """The text with its Markdown, but with tags as text and images as links, so that opening the file runs no script
    and loads no image from elsewhere. Code is as it was, where every reader of Markdown takes it for code: in a
    block with fences, and in a span that begins and ends on one line."""
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
            yield line
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
            yield line
        else:
            yield _inert_line(line)
    if fence:  # else it would swallow what follows
        yield fence


def _inert_line(line: str) -> str:
    if "`" not in line or "|" in line or "\\`" in line or len(line) > _LONGEST_LINE:  # a table's cell ends a span
        return _inert(line)
    parts, done = [], 0
    for span in _CODE_SPAN.finditer(line):
        parts += [_inert(line[done : span.start()]), span[0]]
        done = span.end()
    return "".join((*parts, _inert(line[done:])))


def _inert(text: str) -> str:
    return _TAG_START.sub("&lt;", text).replace("![", "&#33;[")


def _longest_run(text: str) -> int:
    """The length of the longest run of backticks: a fence must be longer, or the text would end it."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _one_line(text: str) -> str:
    return " ".join(text.split())


# -- a page ----------------------------------------------------------------------------------------------------

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 16px/1.6 Inter, system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif;
  max-width: 46rem; margin: 2.5rem auto; padding: 0 1.25rem; background: #fcfbf9; color: #1d1b18; }}
h1 {{ font-size: 1.5rem; line-height: 1.3; letter-spacing: -.01em; }}
article {{ margin: 1.6rem 0; }} article.user {{ background: #f3f0ea; border-radius: 14px; padding: .7rem 1rem; }}
h2 {{ font-size: .8rem; color: #6f685e; font-weight: 600; margin: 0; }}
p, pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0; }}
pre {{ background: #8881; padding: .6rem .8rem; border-radius: 10px; font-size: .85rem; }}
code {{ background: #8881; padding: .1em .3em; border-radius: 4px; font-size: .9em; }}
details, summary {{ color: #5f594f; font-size: .9rem; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #161513; color: #eeebe5; }}
  article.user {{ background: #22211e; }} h2 {{ color: #a39c90; }} details, summary {{ color: #b9b2a6; }} }}
@media print {{ body {{ background: none; color: #000; margin: 0; max-width: none; font-size: 10.5pt; }} }}
</style></head><body><h1>{title}</h1>
"""


async def _page(info: ConversationInfo, shown: AsyncIterator[Shown], preface: str = "") -> AsyncIterator[str]:
    yield _HEAD.format(title=html.escape(heading(info))) + preface
    async for message, blocks in shown:
        kind = message.role if message.role in _NAMES else "other"
        yield f'<article class="{kind}" id="m{message.seq}"><h2>{message.seq} · {html.escape(speaker(message))}'
        at = said_at(message)
        yield f' · <time datetime="{at.isoformat()}">{moment(at)}</time></h2>\n'
        for block in blocks:
            yield _as_html(block, is_markdown=message.role == "assistant")
        yield "</article>\n"
    yield "</body></html>\n"


def _as_html(block: Block, *, is_markdown: bool) -> str:
    readable = block.text.replace("\x00", "\ufffd")
    if block.kind == "text":
        return message_html(readable, is_markdown=is_markdown)
    text = html.escape(readable)
    if block.kind == "thinking":
        return f"<details><summary>{block.heading}</summary><p>{text}</p></details>\n"
    return f"<details open><summary>{html.escape(block.heading)}</summary><pre>{text}</pre></details>\n"


# -- JSON ------------------------------------------------------------------------------------------------------


async def _json(info: ConversationInfo, messages: AsyncIterator[Message]) -> AsyncIterator[str]:
    yield f'{{"conversation":{_dumped(_row(info))},"messages":['
    before = "\n"
    async for message in messages:
        yield before + _dumped(_shown(message))
        before = ",\n"
    yield "\n]}\n"


async def _lines(info: ConversationInfo, messages: AsyncIterator[Message]) -> AsyncIterator[str]:
    async for message in messages:
        yield _dumped(_shown(message)) + "\n"


def _row(info: ConversationInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "title": info.title,
        "metadata": info.metadata,
        "parent_id": info.parent_id,
        "created_at": info.created_at.isoformat(),
    }


def _shown(message: Message) -> dict[str, Any]:
    return {
        "seq": message.seq,
        "id": message.id,
        "role": message.role,
        "revision": message.revision,
        "created_at": message.created_at.isoformat(),
        "said_at": said_at(message).isoformat(),
        "text": payloads.text(message.payload),
        "payload": message.payload,
    }


def _dumped(value: object) -> str:
    """JSON in ASCII, so that half of a surrogate pair survives as its escape."""
    return json.dumps(value, separators=(",", ":"))
