"""The title of an untitled conversation: by rules its first question, without greetings and cut at the end of a word;
or by a model, if its answer is usable as a title. A greeting, thanks or a block of code is not a title: the
conversation waits for one until it has a subject.
"""

from __future__ import annotations

import asyncio
import re
from typing import Protocol

from everthread.core.errors import ModelError
from everthread.text.secrets import redact_secrets
from everthread.text.terms import terms

MOST_CHARACTERS = 60
_MOST_OF_A_SENTENCE = 10_000
FIRST_MESSAGES = 20
"""How far from the beginning of a conversation the words of its title come."""
_GREETING = re.compile(
    r"^(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))\b[^.!?,，。！\n]{0,20}[.!?,，。！\s]+"
    r"|(?:你好|您好|大家好|早上好|晚上好)[，。！!,\s]*)",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"(?:(?:hi|hello|hey|hiya|yo|good (?:morning|afternoon|evening|day)|there|again|thanks?|thank you|thx|ok|okay|yes"
    r"|no|sure|test|testing|ping|are you there|how are you(?: doing)?(?: today)?|what'?s up|bye|cool|great"
    r"|nice to meet you)[\s,.!?~…]*)+"
    r"|(?:(?:你好|您好|大家好|早上?好|上午好|下午好|晚上好|嗨|哈喽|在吗|在不在|谢谢|多谢|好的?|嗯|测试|再见)"
    r"[呀啊吗吧了\s，。！？!?,~…]*)+",
    re.IGNORECASE,
)
_PREAMBLE = re.compile(
    r"(?:you are|act as|i want you to act as) (?:an? |the |my )[^.!?\n]{1,80}[.!]?"
    r"|thank(?:s| you) (?:for|so)\b[^.!?\n]{0,40}[.!]?"
    r"|(?:i (?:just )?(?:need|have)|just|can you|could you|please)?\s*(?:a |one |your |some |another )?"
    r"(?:quick )?(?:help(?: me)?|questions?)(?: please| here| out)?[\s,.!?:…]*"
    r"|你(?:现在)?是一?[个名位][^。！？\n]{1,40}[。！]?"
    r"|(?:急+|在线等|救命|求助|亲|[^，。！？\s]{0,4}(?:您|你|们)好)[呀啊哦\s，。！!~…]*"
    r"|我?(?:有个?|请教一?个?)小?问题(?:想?(?:请教|问|咨询))?(?:一下|[下您你]){0,2}[\s，。！!？?…]*"
    r"|\W*",
    re.IGNORECASE,
)
"""What people write before they say what it is about."""
_LEAD = re.compile(
    r"(?:(?:so|well|ok(?:ay)?|hm+|um+|also|and|but|btw|sorry|please|pls|plz|kindly|maybe)\b[\s,.]+"
    r"|(?:just )?(?:an? |one |another )?(?:quick )?question\b[:,.\s–-]+"
    r"|(?:hi|hello|hey)[,!\s]+|my name is [\w' -]{2,30}?(?:,| and)\s+"
    r"|i(?:'m| am| was|'d| would)?(?: just)? (?:wondering|writing to (?:enquire|inquire|ask)|like to (?:know|ask)"
    r"|want(?:ed)? to (?:know|ask))(?: about| if| whether)?\s+"
    r"|(?P<asks>(?:(?:can|could|would|will) (?:you|u|someone|anyone)|(?:you|u) could)"
    r"(?:,? (?:please|pls|maybe|possibly|kindly))*[\s,]+|(?:能不能|可不可以)(?:请你?)?)"
    r"|if (?:it|that)'?s not too much trouble,?\s+|let me know\s+"
    r"|(?:i need (?:your |some )?help|help me)(?: out)?(?: with| to)?\s+"
    r"|i have (?:this|a) (?=[\w-]+ (?:problem|issue|question))|https?://\S+\s+|\d{1,2}[.)]\s+"
    r"|谢谢(?:你|您)?[，,！!\s]*|(?:另外|还有|那个|就是|嗨|哈喽)[，,\s]*|(?:请问|问)(?:一下|下)?[，,：:\s]*|麻烦(?:你|您)?"
    r"|我?就?想要?(?:问问?|请教|咨询|了解|知道)(?:一下|下)?[，,：:\s]*|帮我?(?:看看|看一下|看下)?(?![助忙])"
    r"|给我(?:讲讲|讲一下|介绍一下|解释一下)|请(?=[帮把给写用翻总])|我(?=想问|想请教))",
    re.IGNORECASE,
)
_CODE_BLOCK = re.compile(r"(?ms)^[ \t]{0,8}(```+|~~~+).*?(?:^[ \t]{0,8}\1[`~]*[ \t]*$|\Z)")
_SENTENCE = re.compile(r"(?<=[。！？])|(?<=[.!?])\s|\n")
_QUOTE_OR_HEADING = re.compile(r"^(?:>\s?|#{1,6}\s)+")
_MARKED = re.compile(r"`([^`]+)`|\*{2,3}(\S(?:[^*]*\S)?)\*{2,3}")
"""Code and strong words. What may be no mark, as in `Vec<String>`, `2 * 3` or `__init__`, stays as it was said."""
_NO_WORD = re.compile(r"[`*_#>~\s-]*")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\ud800-\udfff]+")


class Titler(Protocol):
    """A model that names conversations. It may fail with ModelError, hang, or write anything."""

    async def title(self, text: str) -> str: ...


async def title_by_model(model: Titler, beginning: str, seconds: float) -> str | None:
    """Return a model's title for a conversation's beginning; None when it fails, is too slow, or gives no title."""
    try:
        async with asyncio.timeout(seconds):
            said = await model.title(beginning)
    except (ModelError, TimeoutError):
        return None
    return title_by_rules(said.strip().strip("\"'“”《》「」"))


def title_by_rules(question: str) -> str | None:
    """Return a title made by rules; None when the question has no subject: no words, a greeting, nothing but code."""
    sentence = _first_sentence(_CODE_BLOCK.sub("\n", question))[:_MOST_OF_A_SENTENCE]
    text = _plain(redact_secrets(sentence))  # masked first: half a secret is recognised by nobody
    if _NO_SUBJECT.fullmatch(text) or _NO_WORD.fullmatch(text):
        return None
    if len(text) > MOST_CHARACTERS:
        cut = text[: MOST_CHARACTERS - 1]
        whole = cut.rpartition(" ")[0]
        text = (whole if len(whole) > MOST_CHARACTERS // 2 else cut).rstrip(" ,;:，；：、") + "…"
    return text.rstrip(".。") or None


def may_quote(title: str, text: str, depth: int) -> bool:
    """Whether a title may have been made from a message: it is what the rules would make of it, or shares a word with
    it while the message is one of the first."""
    if title == title_by_rules(text):
        return True
    return depth <= FIRST_MESSAGES and not set(terms(title)).isdisjoint(terms(text))


def _plain(sentence: str) -> str:
    """Return a sentence on one line, without the marks of Markdown around its words."""
    text = _UNPRINTABLE.sub(" ", _QUOTE_OR_HEADING.sub("", sentence))
    return " ".join(_MARKED.sub(lambda found: next(filter(None, found.groups())), text).split())


def _first_sentence(question: str) -> str:
    """Return the first sentence that has a subject, after a greeting; empty when there is none."""
    said = question.strip()
    rest = _GREETING.sub("", said, count=1).strip() or said
    parts = (part.strip() for part in _SENTENCE.split(_NUMBER.sub("", rest)))
    return next((_without_lead(part[:_MOST_OF_A_SENTENCE]) for part in parts if part and not _says_nothing(part)), "")


def _says_nothing(part: str) -> bool:
    return _NO_SUBJECT.fullmatch(part) is not None or _PREAMBLE.fullmatch(part) is not None


def _without_lead(sentence: str) -> str:
    """A sentence without the words by which people begin to ask, unless hardly anything is left then."""
    text, is_order = sentence, False
    while lead := _LEAD.match(text):
        text = text[lead.end() :]
        is_order = is_order or lead["asks"] is not None
    if len(text.split()) < _FEW_WORDS and len(_WIDE.findall(text)) < _FEW_WIDE:
        return sentence
    return text.rstrip("?？") if is_order else text


_NUMBER = re.compile(r"^\d{1,2}[.)]\s+")
_WIDE = re.compile("[\u3400-\u9fff]")
_FEW_WORDS, _FEW_WIDE = 2, 4
