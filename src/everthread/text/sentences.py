"""A message's text, cut into the pieces an extract is made of.

Lines come first, because chat is written in lines: a fenced code block is one piece, a list item is one
piece, a heading is told apart from prose. Only prose (and a long item) is cut into sentences, by
`sentencex` (Wikimedia; about 50 MB/s where pySBD does 0.2, and it keeps URLs, versions, abbreviations and
Chinese closing quotes whole).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sentencex import segment  # type: ignore[import-untyped]

from everthread.text.language import language_of_text, readable

PieceKind = Literal["prose", "item", "heading", "code"]

# sentencex takes quadratic time on one long line outside ASCII (50,000 characters: 1.3 s), so it is fed
# in stretches; a longer line than this is a log or a data dump, not a sentence.
STRETCH_CHARS = 2_000
# An item up to this long is one thought; beyond it, it is a paragraph with a bullet in front.
_LONG_ITEM_CHARS = 200
# Chinese writers join whole statements by semicolons; past this length they are taken apart.
_LONG_CHINESE_CHARS = 60
# A line at least this long that ends without a full stop was wrapped by an editor, not ended by a writer.
_WRAPPED_CHARS = 60

_FENCE = re.compile(r"^\s{0,8}(```+|~~~+)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.*)$")
_ITEM = re.compile(
    r"^\s*+(?:(?:[-*+•‣▪]|\d{1,3}[.)])\s++|[•·‣▪]|\d{1,3}(?:[、）]|[.)](?=[\u4e00-\u9fff]))"
    r"|[（(]\d{1,3}[)）]|[一二三四五六七八九十]{1,3}、)\s*+(\S.*)$"
)
_RULE = re.compile(r"^\s*([-*_=])(?:\s*\1){2,}\s*$")
_TABLE_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_TABLE_RULE = re.compile(r"^[\s|:+=-]+$")
_QUOTE = re.compile(r"^\s*>\s?")
_ENDED = re.compile(r"[.!?。！？…:：;；)\]\"”」』]\s*$")
_INTRODUCES = re.compile(r"[:：]\s*$")
_GOES_ON = re.compile(r"^\s*[a-z]")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:Ms|Mx|Mme|Mlle|Hr|Fr|Sra?|Srta|[Ss]tr|[Nn]r|[Nn][uú]m|Apt|[Rr]m|[Ff]l|[Aa]pprox|[Ii]n[ck]l|[Ee]x[ck]l"
    r"|zzgl|bzw|bzgl|evtl|ggf|usw|[Ss]og|[Vv]gl|[Cc][af]|[Tt][eé]l|[Pp]l|[Aa]v|Avda|[Bb]oul|[Uu]l|[Pp][aá]gs?|[Aa]rts?|[Bb]d"
    r"|[Ee]nv|p\. ?e[jx]|z\. ?B|d\. ?h|u\. ?a|c\.-à-d)\.\s*$"
)
"""What stands before a name or a number, which `segment` takes for an end."""
_MAY_GO_ON = re.compile(r"(?:^|[\s(–-])(?:\d{1,2}|[^\W\d_])\.\s*$")
"""An ordinal (15. Mai) or an initial (M. Dupont), if it is no end: what is cut there says another day."""
_OPENS_SENTENCE = re.compile(
    r"(?:The|It|Its|I|We|He|She|They|You|This|That|These|Those|There|Then|And|But|So|If|When|Also|My|Our|Your|His|Her"
    r"|Their|Please|Let|Thanks|Yes|No|Not|What|How|Why|Where|Who|Which|Can|Could|Would|Should|Is|Are|Does|Did|Call"
    r"|Always|Never|After|Before|For|From|To|On|At|By|With|Next|Now|Because|Since|Ok|Okay|Anyway|Just|Maybe"
    r")\b|[\u4e00-\u9fff]"
)
"""How an English or Chinese sentence surely begins."""
_DIGITS = tuple("0123456789")
_ENGLISH = re.compile(r"\b(?i:the|is|are|our|with|my|you|this|and|of|from|have|has|it's|costs?)\b")
_NOT_ENGLISH = re.compile(
    r"\b(?i:am|dem|der|den|des|die|das|vom|zum|zur|bis|im|und|ab|seit|ist|um|le|la|el|les|du|al|dnia|do|på|til|og|och)\b"
)
"""An English sentence that has no word of another language writes 5th, so its number ends it."""
_HAS_WORD = re.compile(r"\w")
_SEMICOLON = re.compile(r"(?<=[；;])")
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.{1,1000}?)(?<=\S)\1")
_LINK = re.compile(r"!?\[([^\]\n]{1,200})\]\((\S{1,500}?)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPiece:
    """A sentence, a list item, a heading or a whole code block, stripped of its markup."""

    kind: PieceKind
    text: str
    under: str = ""
    """Of an item: the heading or the introducing line that it belongs to."""


def split_sentences(text: str) -> list[TextPiece]:
    """The pieces of a text in their order. Nothing but markup, blank space and rules of tables is lost."""
    pieces: list[TextPiece] = []
    heading = introduced = ""
    for kind, block in _blocks(readable(text)):
        if kind == "code":
            pieces.append(TextPiece(kind="code", text=block))
            continue
        plain = _plain(block)
        under = (introduced or heading) if kind == "item" else ""
        long = kind == "prose" or len(plain) > _LONG_ITEM_CHARS
        texts = list(_sentences(plain)) if long else [plain] if plain else []
        pieces.extend(TextPiece(kind=kind, text=sentence, under=under) for sentence in texts)
        if kind == "heading":
            heading, introduced = plain, ""
        elif kind == "prose" and texts:
            introduced = texts[-1].rstrip(" :：") if _INTRODUCES.search(plain) else ""
    return pieces


def _blocks(text: str) -> Iterator[tuple[PieceKind, str]]:
    paragraph: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        kind, content = _line_kind(line)
        if paragraph and (kind != "prose" or not _continues(paragraph[-1], content)):
            yield "prose", " ".join(paragraph)
            paragraph = []
        if kind == "code":
            yield "code", _code_block(line, lines)
        elif kind == "prose" and content:
            paragraph.append(content)
        elif content:
            yield kind, content
    if paragraph:
        yield "prose", " ".join(paragraph)


def _line_kind(line: str) -> tuple[PieceKind, str]:
    if line[:1].isascii() and line[:1].isalpha():
        return "prose", line.strip()
    if _FENCE.match(line):
        return "code", line
    if _RULE.match(line):
        return "item", ""
    line = _QUOTE.sub("", line)
    if heading := _HEADING.match(line):
        return "heading", heading[1].rstrip().rstrip("#").rstrip()
    if row := _TABLE_ROW.match(line):
        cells = [cell.strip() for cell in row[1].split("|")]
        return "item", "" if _TABLE_RULE.match(row[1]) else " | ".join(cell for cell in cells if cell)
    if item := _ITEM.match(line):
        return "item", item[1].strip()
    return "prose", line.strip()


def _code_block(opening: str, lines: Iterator[str]) -> str:
    """The block with its fences; one that is never closed runs to the end of the message."""
    fence = _FENCE.match(opening)
    mark = fence[1] if fence else "```"
    block = [opening.strip()]
    for line in lines:
        block.append(line)
        if line.strip().startswith(mark):
            break
    return "\n".join(block)


def _continues(before: str, line: str) -> bool:
    return len(before) >= _WRAPPED_CHARS and not _ENDED.search(before) and bool(_GOES_ON.match(line))


def _plain(text: str) -> str:
    linked = _LINK.sub(r"\1 (\2)", text) if "](" in text else text
    return (_BOLD.sub(r"\2", linked) if "**" in linked or "__" in linked else linked).strip()


def _sentences(paragraph: str) -> Iterator[str]:
    waiting, coded = "", paragraph.count("`") % 2 == 0
    for stretch in _stretches(paragraph):
        for sentence in segment(language_of_text(stretch), stretch):
            # A piece without a word (a stray mark, an emoji) belongs to the sentence that follows, and so does
            # one that was cut inside a piece of code.
            if _HAS_WORD.search(waiting) and not (coded and waiting.count("`") % 2) and not _goes_on(waiting, sentence):
                yield from _statements(waiting.strip())
                waiting = ""
            waiting = f"{waiting}{sentence}"
    if waiting.strip():
        yield from _statements(waiting.strip())


def _goes_on(before: str, after: str) -> bool:
    """Whether one sentence was cut in two: at the dot of an ordinal, an initial or an abbreviation."""
    end = before[-12:]
    if not (_ABBREVIATED.search(end) or _MAY_GO_ON.search(end)) or _OPENS_SENTENCE.match(after.lstrip()):
        return False
    near = before[-STRETCH_CHARS:]
    is_english = end.rstrip(" .").endswith(_DIGITS) and _ENGLISH.search(near) and not _NOT_ENGLISH.search(near)
    return not is_english


def _stretches(paragraph: str) -> Iterator[str]:
    start = 0
    while len(paragraph) - start > STRETCH_CHARS:
        end = paragraph.rfind(" ", start + STRETCH_CHARS // 2, start + STRETCH_CHARS) + 1
        end = end or start + STRETCH_CHARS
        yield paragraph[start:end]
        start = end
    yield paragraph[start:]


def _statements(sentence: str) -> Iterator[str]:
    if len(sentence) <= _LONG_CHINESE_CHARS or language_of_text(sentence) != "zh":
        yield sentence
        return
    yield from (part.strip() for part in _SEMICOLON.split(sentence) if part.strip())
