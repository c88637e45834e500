"""A conversation as a PDF, typeset by typst. Text is passed as data, never as markup, so nothing in it is executed.

typst brings fonts for Latin, Greek and Cyrillic. Chinese, Japanese and Korean need Noto Sans CJK, installed on the
machine or by `everthread models fetch noto-sans-cjk`; without it such a text is refused rather than printed as boxes.
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
from everthread.history.export import ALL, Parts, heading, moment, said_at, shown_of, speaker

FONT = "noto-sans-cjk"
MAX_MESSAGES = 20_000
"""More would take minutes and gigabytes; the other formats have no limit."""
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


async def render_pdf(
    info: ConversationInfo, messages: AsyncIterator[Message], models: Path, parts: Parts = ALL
) -> bytes:
    """The PDF. MissingExtra if typst, or a font that the text needs, is missing."""
    rendered: list[dict[str, Any]] = []
    async for message, blocks in shown_of(messages, parts):
        head = f"{message.seq} · {_clean(speaker(message))} · {moment(said_at(message))}"
        pieces = [{"kind": block.kind, "title": _clean(block.heading), "text": _clean(block.text)} for block in blocks]
        rendered.append({"head": head, "pieces": pieces})
        if len(rendered) > MAX_MESSAGES:
            raise Invalid(f"a PDF holds at most {MAX_MESSAGES:,} messages; choose another format", field="format")
    data = {"title": _clean(heading(info)), "messages": rendered}
    return await asyncio.to_thread(_typeset, data, models)


def _clean(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))


def _typeset(data: dict[str, Any], models: Path) -> bytes:
    try:
        typst = import_module("typst")
    except ModuleNotFoundError as problem:
        raise MissingExtra("PDF needs an extra: pip install 'everthread[server]'") from problem
    whole = json.dumps(data, ensure_ascii=False)
    folders = _font_folders(models, needed=_CJK.search(whole) is not None, typst=typst)
    fonts = {"fonts": ["Libertinus Serif", "Noto Sans CJK SC"], "mono": ["DejaVu Sans Mono", "Noto Sans CJK SC"]}
    try:
        pdf: bytes = typst.compile(
            _TEMPLATE.encode(),
            format="pdf",
            font_paths=[str(folder) for folder in folders],
            sys_inputs={"data": json.dumps(data | fonts, ensure_ascii=False)},
        )
    except RuntimeError as problem:  # typst's own
        raise StoreError("typst could not render the PDF; choose another format") from problem
    return pdf


def _font_folders(models: Path, *, needed: bool, typst: Any) -> Sequence[Path]:
    folder = weights.folder_of(models, weights.weights_by_name(FONT))
    if folder.is_dir():
        return (folder,)
    if needed and "Noto Sans CJK SC" not in typst.Fonts().families():
        raise MissingExtra(f"this text needs the font Noto Sans CJK; fetch it once: everthread models fetch {FONT}")
    return ()
