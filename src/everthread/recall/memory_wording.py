"""What a rule makes of the sentence that it fits: a memory in words that can stand alone. Pure, for `memory_rules`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from everthread.core.memories import ALWAYS_SHOWN, MemoryKind
from everthread.recall.memory_intents import Ended
from everthread.text.language import language_of_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedMemory:
    """Something worth remembering, in words that can stand alone."""

    text: str
    kind: MemoryKind
    subject: str | None = None
    """Of one subject the newest counts."""
    confidence: float = 0.9
    is_pinned: bool = False
    ends: Sequence[Ended] = ()
    """Older memories that hold no more."""
    is_retraction: bool = False
    """It only takes something back, and is itself nothing to remember."""


def in_own_words(sentence: str) -> str:
    """As a quotation, so that who reads it knows whose words and whose `I` it is."""
    said = tidy(sentence)
    if language_of_text(said) == "zh":
        return f"用户说：“{said}”。"
    return 'The user said: "{}".'.format(said.replace('"', "'"))


HAS_CHINESE = re.compile("[\u4e00-\u9fff]")
OF_ONESELF = re.compile(r"我|(?:i|my|we|our)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Rule:
    """A pattern at the beginning of a sentence, and the memory that a match builds."""

    text: str
    flags: re.RegexFlag
    build: Callable[[re.Match[str]], ExtractedMemory | None]
    sample: str
    """What it is for: extract_by_rules finds it by this rule."""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when it is first tried: all of them together take 30 ms."""
        return re.compile(self.text, self.flags)


_NO_NAME = frozenset(
    "a an the back when later at if tomorrow tonight today asap crazy old maybe now on in and or for again not just "
    "anytime whenever whatever what it that this is was so here there".split()
)
_NO_THING = re.compile(
    r"(?:it|this|that|these|those|the|your|our|you|how|what|when|where|why|them|him|her|us|me|both|all|any|some"
    r"|option|one"
    r"|everything|nothing|something|anything|another|such|his|its|their|to (?:know|see|ask|hear|think|say|point|thank"
    r"|understand|add|start|begin|have|get|be|do))\b",
    re.IGNORECASE,
)


def profile(words: str, subject: str, confidence: float = 0.9) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """Who the user is: `words` and `subject` with what was matched put in."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        found = {name: tidy(value) for name, value in match.groupdict().items() if value is not None}
        if not found.get("x") or found["x"].lower() in _NO_NAME:
            return None
        return ExtractedMemory(
            text=words.format(**found),
            kind=MemoryKind.PROFILE,
            subject=subject.format(**{name: value.lower() for name, value in found.items()}),
            confidence=confidence,
            is_pinned=True,
        )

    return build


def health(words: str, denied: str, subject: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """What a user must not have: always shown, since no question has its words."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        thing = tidy(match["x"])
        if not thing or _NO_THING.match(thing) or _NO_ALLERGEN.search(thing) or _OF_SOMEBODY.match(thing):
            return None
        is_denied = match.groupdict().get("no") is not None
        return ExtractedMemory(
            text=(denied if is_denied else words).format(x=thing),
            kind=MemoryKind.FACT,
            subject=subject.format(x=thing.lower()),
            confidence=0.95,
            is_pinned=not is_denied,
            ends=tuple(Ended(subject.format(x=other)) for other in _other_forms(thing.lower(), is_denied=is_denied)),
        )

    return build


_MEATLESS = frozenset(("vegan", "vegetarian", "pescatarian", "veggie"))


def _other_forms(thing: str, *, is_denied: bool) -> Iterator[str]:
    """What else it was called, where it is denied; or what else was eaten by who now eats so."""
    if is_denied:
        yield thing.removesuffix("s") if thing.endswith("s") else f"{thing}s"
    elif thing in _MEATLESS:
        yield from sorted(_MEATLESS - {thing})


_NO_ALLERGEN = re.compile(
    r"\b(?!herring|pudding|dressing|icing)\w+ing\b|\b(?:mondays?|mornings?|work|exercise|cardio|meetings?|people|bullshit|nonsense"
    r"|small talk|bad code|commitment|responsibilit\w+|early|alarm|adult\w*|drama|fun|stupid\w*|another|bite"
    r"|so much|anymore)\b"
    r"|加班|早起|上班|开会|工作|学习|运动|周一|星期一|作业|考试|废话|人多|社交|数据|数学|报表|代码",
    re.IGNORECASE,
)
"""What people say in jest."""
_PERSON = (
    r"boss(?:es)?|ex(?:es)?|ex-\w{1,20}|colleagues?|co-?workers?|kids|children|men|women|husbands?|wife|in-laws"
    r"|(?:father|mother|brother|sister|son|daughter)-in-law"
    r"|lawyers?|managers?|clients?|customers?|neighbou?rs?|relatives"
)
_OF_SOMEBODY = re.compile(
    rf"(?:my|our|your|his|her|their)\b|(?:the |all )?(?:{_PERSON})$"
    r"|(?:老板|领导|同事|客户|甲方|前任|前男友|前女友|老公|老婆|丈夫|妻子|男友|女友|男朋友|女朋友|男人|女人|孩子|小孩|熊孩子"
    r"|亲戚|婆婆|岳母|邻居|老师|室友|某人|某些人|别人|有些人|傻[^，。]{0,3})",
    re.IGNORECASE,
)
"""Who is allergic to a person jests; and "my cat" is the cat of who says it, not of who reads it."""
_ALLERGIC_TO_SOMEBODY = re.compile(
    r"i(?:'m| am)[\w ]{0,20} allergic to (?:"
    rf"(?:my|our|your|his|her|their) (?!(?:[\w'-]+ ){{0,2}}(?:cats?|dogs?|horses?|rabbits?|hamsters?|pets?"
    r"|medication)\b)"
    rf"|(?:the |all )?(?:{_PERSON})$)",
    re.IGNORECASE,
)
_ALLERGIC = re.compile(r"i(?:'m| am)[\w ]{0,20} allergic|我[^？?]{1,20}过敏", re.IGNORECASE)


def taste(words: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """What a user likes or not; of the same thing the newest counts."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        thing = tidy(match["x"])
        if not thing or _NO_THING.match(thing) or _NO_THING_ZH.match(thing) or len(thing.split()) > 10:
            return None
        verb = match["v"].lower()
        return ExtractedMemory(
            text=words.format(v=_OF_THE_USER.get(verb, verb), x=thing),
            kind=MemoryKind.PREFERENCE,
            subject=f"taste: {thing.lower()}",
            confidence=0.8,
            ends=tuple(_preferred_before(thing.lower())) if verb == "prefer" else (),
        )

    return build


_OF_THE_USER: Final = {
    "prefer": "prefers",
    "love": "loves",
    "like": "likes",
    "enjoy": "enjoys",
    "hate": "hates",
    "dislike": "dislikes",
    "don't like": "doesn't like",
    "do not like": "doesn't like",
    "no longer like": "no longer likes",
    "don't enjoy": "doesn't enjoy",
    "don't eat": "doesn't eat",
    "don't drink": "doesn't drink",
}
_OVER = re.compile(r" (?:to|over|rather than|instead of) ")


def _preferred_before(thing: str) -> Iterator[Ended]:
    """Who prefers one thing to another does not prefer the other."""
    better, *others = _OVER.split(thing, maxsplit=1)
    for other in others:
        yield Ended(f"taste: {other}", naming=f"prefers {other}")
        for word in ("to", "over", "rather than", "instead of"):
            yield Ended(f"taste: {other} {word} {better}")


def favourite(words: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    def build(match: re.Match[str]) -> ExtractedMemory | None:
        what, thing = tidy(match["k"]), tidy(match["x"])
        if not what or not thing:
            return None
        text = words.format(k=what, x=thing)
        return ExtractedMemory(text=text, kind=MemoryKind.PREFERENCE, subject=f"favourite: {what.lower()}")

    return build


def instruction(match: re.Match[str]) -> ExtractedMemory | None:
    """How the user wants to be served, in their own words."""
    said = tidy(match[0])
    if len(said) <= 5:
        return None
    return ExtractedMemory(text=said, kind=MemoryKind.INSTRUCTION, confidence=0.9, is_pinned=True)


def explicit_request(match: re.Match[str]) -> ExtractedMemory | None:
    """What the user asked to be remembered, for the rules to tell in finer words where one fits."""
    said = tidy(match["x"])
    if len(said) < 3:
        return None
    words = in_own_words(said) if OF_ONESELF.match(said) else said
    return ExtractedMemory(text=words, kind=MemoryKind.FACT, confidence=1.0)


def tidy(text: str) -> str:
    return " ".join(text.split()).strip(" ,.!;:，。！；：、\"“”'")


_NO_THING_ZH = re.compile(r"的|这|那|你|您|它|他|她|上面|前面|后面|第[一二三四五0-9]|什么|怎么|哪|的$|和|跟|听|看看")


def whole(kind: MemoryKind) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """The sentence as it was said, never cut."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        said = tidy(match.string)
        if match.end() < len(match.string.rstrip(" .!。！;；，,~")) or MOMENT.search(said):
            return None
        if _ALLERGIC_TO_SOMEBODY.match(said) or (_NO_ALLERGEN.search(said) and _ALLERGIC.match(said)):
            return None
        pinned = kind in ALWAYS_SHOWN or _MUST_NOT_HAVE.search(said) is not None
        text = said if kind is MemoryKind.INSTRUCTION else in_own_words(said)
        return ExtractedMemory(text=text, kind=kind, confidence=0.75, is_pinned=pinned)

    return build


NO_FOOD = (
    "(?:and|another|like|much|more|enough|too|at|in|out|alone|before|after|until|or|here|there|now|that|this|so"
    "|breakfast|lunch|dinner|supper|food|both|fun|kids|children|pets|an?|the|my|your|with|if|when|because)"
)
_MUST_NOT_HAVE = re.compile(
    r"\b(?:can't|cannot|can not|mustn't|must not|not allowed to) (?:eat|drink|have|tolerate|digest)"
    rf" (?!{NO_FOOD}\b)\w"
    r"|\bpregnant\b|\ballerg"
    r"|\bintoleran|\bcoeliac|\bceliac|\bdiabet|\bepilep|\banaphyla|\bblood thinner"
    r"|(?:不能|不可以|不敢)(?:吃|喝|碰)(?!$|了|太|多|，|,)|怀孕|过敏|不耐受|糖尿病|癫痫|哮喘",
    re.IGNORECASE,
)
"""What may do harm when it is not known: always shown, since no question has its words."""
MOMENT = re.compile(
    r"\b(?:right now|today|tonight|this (?:morning|evening|afternoon|time|error|one)|at the moment|again|tomorrow"
    r"|yesterday|just (?!over|under|outside)|in line \d|errors?|exception|timeout|fails?|failing|bug"
    r"|your (?:example|code"
    r"|answer|version|suggestion)|the (?:first|second|third|last|other) (?:one|version|option))\b"
    r"|今天|今晚|刚才?|马上|等下|一会|明天|昨天|这次|这个|那个|第\s?\d+\s?行|报错|出错|超时|失败|你的|你这",
    re.IGNORECASE,
)
"""What holds only for now, or is about the talk itself."""
REST = r"[^?？]{2,200}$"
