"""A conversation as a PDF, set by typst. Text is handed over as data, never as markup, so nothing in it is obeyed.

typst brings fonts for Latin, Greek and Cyrillic. Chinese, Japanese and Korean need Noto Sans CJK, which the machine has
or `everthread models fetch noto-sans-cjk` brings; without it such a text is refused rather than printed as boxes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from everthread.adapters.models import weights
from everthread.core.errors import Invalid, MissingExtra, StoreError
from everthread.core.nouns import ConversationInfo, Message
from everthread.history.exporting import ALL, Parts, Piece, heading, moment, shown_of, speaker

FONT = "noto-sans-cjk"
MAX_MESSAGES = 20_000
"""Above this a PDF takes minutes and gigabytes; the other formats have no bound."""
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

_TEMPLATE = """
#let data = json(bytes(sys.inputs.data))
#set document(title: data.title)
#set page(paper: "a4", margin: 2cm, numbering: "1")
#set text(font: data.fonts, size: 10pt, fallback: true)
#set par(justify: false)
#show raw: set text(font: data.mono)
#let lines(text) = text.split("\\n").join(linebreak())
#align(center, text(size: 16pt, weight: "bold", data.title))
#for message in data.messages [
  #v(0.8em)
  #text(size: 8pt, fill: rgb("#666666"), message.head)
  #for piece in message.pieces [
    #if piece.kind == "text" [
      #par(lines(piece.text))
    ] else [
      #block(inset: (left: 0.8em), stroke: (left: 1pt + rgb("#bbbbbb")))[
        #text(size: 8pt, fill: rgb("#444444"))[#emph(piece.title) #linebreak() #lines(piece.text)]
      ]
    ]
  ]
]
"""


async def printed(info: ConversationInfo, messages: AsyncIterator[Message], models: Path, parts: Parts = ALL) -> bytes:
    """The PDF. MissingExtra when typst, or a font that the text needs, is not here."""
    shown = []
    async for message, pieces in shown_of(messages, parts):
        shown.append(_shown(message, pieces))
        if len(shown) > MAX_MESSAGES:
            raise Invalid(f"a PDF holds at most {MAX_MESSAGES:,} messages; choose another format", field="format")
    data = {"title": _clean(heading(info)), "messages": shown}
    return await asyncio.to_thread(_set, data, models)


def _shown(message: Message, pieces: Sequence[Piece]) -> dict[str, Any]:
    written = [{"kind": piece.kind, "title": _clean(piece.heading), "text": _clean(piece.text)} for piece in pieces]
    return {"head": f"{message.seq} · {_clean(speaker(message))} · {moment(message.created_at)}", "pieces": written}


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def _set(data: dict[str, Any], models: Path) -> bytes:
    try:
        typst = import_module("typst")
    except ModuleNotFoundError as problem:
        raise MissingExtra("PDF needs an extra: pip install 'everthread[server]'") from problem
    whole = json.dumps(data, ensure_ascii=False)
    folders = _folders(models, needed=_CJK.search(whole) is not None, typst=typst)
    fonts = {"fonts": ["Libertinus Serif", "Noto Sans CJK SC"], "mono": ["DejaVu Sans Mono", "Noto Sans CJK SC"]}
    try:
        made: bytes = typst.compile(
            _TEMPLATE.encode(),
            format="pdf",
            font_paths=[str(folder) for folder in folders],
            sys_inputs={"data": json.dumps(data | fonts, ensure_ascii=False)},
        )
    except RuntimeError as problem:  # typst's own
        raise StoreError("the PDF could not be set; choose another format") from problem
    return made


def _folders(models: Path, *, needed: bool, typst: Any) -> Sequence[Path]:
    folder = weights.folder_of(models, weights.named(FONT))
    if folder.is_dir():
        return (folder,)
    if needed and "Noto Sans CJK SC" not in typst.Fonts().families():
        raise MissingExtra(f"this text needs the font Noto Sans CJK; fetch it once: everthread models fetch {FONT}")
    return ()
