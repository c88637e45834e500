"""What people say about themselves, found by plain rules in English and Chinese. Pure, and precise rather than greedy.

A rule applies only at the beginning of a sentence (after a greeting or the like), so that what is quoted, asked,
supposed or told of others is none: "she said my name is Ann", "what if I live in Rome?". A sentence that speaks of a
password or the like is never remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from everthread.core.memories import MemoryKind

MAX_READ_CHARACTERS: Final = 4_000
"""Who tells more than this at once pastes something."""
_MAX_SENTENCE_CHARACTERS: Final = 300
_MAX_MEMORIES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedMemory:
    """Something worth remembering, in words that can stand alone."""

    text: str
    kind: MemoryKind
    subject: str | None = None
    """Of one subject the newest counts."""
    confidence: float = 0.9
    is_pinned: bool = False


def extract_by_rules(text: str) -> list[ExtractedMemory]:
    """The memories that a message holds about who wrote it."""
    if not may_hold_memories(text):
        return []
    found = [
        memory
        for sentence in _sentences(text[:MAX_READ_CHARACTERS])
        if not SECRET.search(sentence) and not _NOT_MEANT.search(sentence)
        for memory in _apply_rules(sentence)
    ]
    distinct = {(memory.subject or memory.text): memory for memory in found}
    return list(distinct.values())[:_MAX_MEMORIES]


# -- sentences -----------------------------------------------------------------------------------------------------

_CUE: Final = re.compile(
    r"\b(?:my|call me|i go by|allergic|from now on|going forward|in (?:the )?future|always|never|remember|keep in mind"
    r"|bear in mind|don['’]t forget|i['’]m|i am|i (?:[\w'’]+ ){0,2}(?:prefer|like|love|enjoy|hate|dislike|live|work"
    r"|moved|speak|eat|drink|can['’]t stand|cannot stand))\b"
)
_CUE_IN_CHINESE: Final = re.compile("我|记住|记得|以后|今后|从现在|从今|不要再|别再")
"""Apart, because each of these would be tried at every letter of an English text."""


def may_hold_memories(text: str) -> bool:
    """Whether a message is worth reading on: most say nothing of the kind."""
    said = text[:MAX_READ_CHARACTERS].lower()
    return _CUE.search(said) is not None or (not said.isascii() and _CUE_IN_CHINESE.search(said) is not None)


_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED_LINE = re.compile(
    r"^[^\S\n]*+(?:>|\||#|[-*+] |\d+[.)] |(?!remember\b)[A-Za-z]\w*:\s).*$", re.MULTILINE | re.IGNORECASE
)
"""Quotations, tables, lists and transcripts are somebody's text, not the speaker's own word."""
_END = re.compile(r"(?<=[!?。！？；;\n])\s*|(?<=\.)\s+(?=[^\W\d_a-z]|i\b|$)|\n+")
_OPENINGS = re.compile(
    r"^(?:(?:hi|hello|hey|hi there|hey there|well|so|oh|ok|okay|yes|yeah|no|also|and|but|btw|by the way|fyi"
    r"|for the record|just so you know|just to let you know|for your information|actually|please note that|note that"
    r"|as i said|thanks|thank you|good (?:morning|afternoon|evening)|你好|您好|嗨|哈喽|大家好|对了|另外|还有"
    r"|顺便说一下|顺便|其实|嗯|好的|谢谢)"
    r"(?:[,.!:，。！：、~\s]+|(?<=[\u4e00-\u9fff])))+",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    r"(?:(?:please|you can|you may|just|everyone can) )*(?:my|call me|i['’ ]|always|never|from now|going forward"
    r"|in (?:the )?future|henceforth|remember|keep in mind|bear in mind|don['’]t forget|do not forget)"
    r"|[我本请以今从记帮你您要一叫可就都称喊不别]",
    re.IGNORECASE,
)
"""How a sentence begins that any rule could fit: most are told apart at once."""
_NOT_MEANT = re.compile(
    r"\b(?:if|suppose|imagine|pretend|let['’]s say|for example|e\.g|translate|rewrite|proofread)\b"
    r"|如果|假如|假设|要是|比如|例如|翻译|改写|扮演|\?|？|吗$|呢$",
    re.IGNORECASE,
)
SECRET = re.compile(
    r"passw(?:or)?d|passphrase|\bpin\b|api[ -_]?key|access key|secret|token|credential|card number|\bcvv\b|\bssn\b"
    r"|\[redacted|密码|口令|密钥|验证码|银行卡|信用卡|身份证",
    re.IGNORECASE,
)


def _sentences(text: str) -> Iterator[str]:
    own = _QUOTED_LINE.sub("\n", _CODE.sub(" ", text.replace("’", "'")))
    for part in _END.split(own):
        said = _OPENINGS.sub("", part.strip(' \t"“”')).strip()
        if 3 <= len(said) <= _MAX_SENTENCE_CHARACTERS and _BEGINS.match(said):
            yield said


def _apply_rules(sentence: str) -> Iterator[ExtractedMemory]:
    """What the sentence says, by the first rule that it fits; then its further clauses."""
    for rule in _RULES:
        match = rule.pattern.match(sentence)
        memory = rule.build(match) if match is not None else None
        if match is not None and memory is not None:
            yield memory
            rest = _JOINT.match(sentence[match.end() :])
            if rest is not None:
                clause = sentence[match.end() + rest.end() :]
                # In Chinese, who goes on to speak about themselves need not say so again.
                goes_on = memory.subject in _ABOUT_THEMSELVES and _GOES_ON.match(clause) is not None
                yield from _apply_rules(f"我{clause}" if goes_on else clause)
            return


_ABOUT_THEMSELVES = frozenset({"name", "age", "home", "origin", "employer", "profession"})
_GOES_ON = re.compile(
    "(?:现在|目前|一直|今年|老|很|也|都|最|不)?(?:住在|家在|定居|来自|喜欢|爱|讨厌|吃|喝|对|在|是)|(?:今年)?\\d+岁"
)
_JOINT = re.compile(r"(?<!\s)(?:\s*+[,，、;；]\s*+(?:and|but|而且|并且|也|还)?|\s++(?:and|but)\s)\s*+", re.IGNORECASE)


# -- rules ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rule:
    """A pattern at the beginning of a sentence, and the memory that a match builds."""

    text: str
    flags: re.RegexFlag
    build: Callable[[re.Match[str]], ExtractedMemory | None]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when it is first tried: all of them together take 30 ms."""
        return re.compile(self.text, self.flags)


_NAME = r"(?P<x>[^\W\d_][\w'.-]{0,29}(?: (?-i:[A-Z])[\w'.-]{0,29}){0,3})(?=$|[,.!;]|\s+(?:and|but|from|by the way)\b)"
_THING = (
    r"(?P<x>[^,.;!?:]{2,60}?)(?=$|[.;!]|,|\s+(?:and (?:i|my)\b|but\b|because\b|so\b|since\b|when\b"
    r"|as (?:i|a|well)\b|last\b|this\b|next\b|now\b|any ?more\b|at the moment\b|right now\b|ago\b"
    r"|for (?:a|the|\d)|with my\b))"
)
_ADVERB = r"(?:(?:really|also|strongly|generally|usually|always|much|still|just|absolutely|truly|quite|very much|do) )*"
_NO_NAME = frozenset(
    "a an the back when later at if tomorrow tonight today asap crazy old maybe now on in and or for again not just "
    "anytime whenever whatever what it that this is was so here there".split()
)
_NO_THING = re.compile(
    r"(?:it|this|that|these|those|the|your|our|you|how|what|when|where|why|them|him|her|us|me|both|all|any|some|option|one"
    r"|everything|nothing|something|anything|another|such|his|its|their|to (?:know|see|ask|hear|think|say|point|thank"
    r"|understand|add|start|begin|have|get|be|do))\b",
    re.IGNORECASE,
)
_WORK = (
    "teacher|nurse|doctor|physician|student|engineer|software engineer|developer|programmer|lawyer|designer|writer"
    "|journalist|accountant|architect|scientist|researcher|professor|chef|driver|pilot|farmer|musician|artist|manager"
    "|product manager|data scientist|analyst|consultant|translator|pharmacist|dentist|veterinarian|electrician|plumber"
    "|carpenter|photographer|librarian|economist|psychologist|therapist|founder|freelancer|retiree"
)
_DIETS = "vegan|vegetarian|pescatarian|lactose[- ]intolerant|gluten[- ]intolerant|diabetic|celiac|coeliac|kosher|halal"
_KIN = (
    "wife|husband|partner|girlfriend|boyfriend|son|daughter|mother|mom|mum|father|dad|brother|sister|dog|cat|boss"
    "|manager|doctor|company|team|project"
)
_DETAILS = (
    "birthday|email|email address|phone|phone number|job|profession|hometown|native language|mother tongue"
    "|time ?zone|nationality|blood type|shoe size|age|star sign|pronouns"
)
_ORDERS = (
    "answer|reply|respond|use|write|call|speak|talk|explain|give|show|include|add|ask|tell|send|format|keep|put|cite"
    "|translate|mention|suggest|recommend|assume|round|sign|address|start|end|avoid|do not|don't|be|make|summari[sz]e"
)


def _en(pattern: str, build: Callable[[re.Match[str]], ExtractedMemory | None]) -> _Rule:
    return _Rule(pattern, re.IGNORECASE, build)


def _zh(pattern: str, build: Callable[[re.Match[str]], ExtractedMemory | None]) -> _Rule:
    return _Rule(pattern, re.NOFLAG, build)


def _profile(words: str, subject: str, confidence: float = 0.9) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """Who the user is: `words` and `subject` with what was matched put in."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        found = {name: _tidy(value) for name, value in match.groupdict().items() if value is not None}
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


def _health(words: str, denied: str, subject: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """What a user must not have: always shown, since no question has its words."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        thing = _tidy(match["x"])
        if not thing or _NO_THING.match(thing):
            return None
        is_denied = match.groupdict().get("no") is not None
        return ExtractedMemory(
            text=(denied if is_denied else words).format(x=thing),
            kind=MemoryKind.FACT,
            subject=subject.format(x=thing.lower()),
            confidence=0.95,
            is_pinned=not is_denied,
        )

    return build


def _taste(words: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    """What a user likes or not; of the same thing the newest counts."""

    def build(match: re.Match[str]) -> ExtractedMemory | None:
        thing = _tidy(match["x"])
        if not thing or _NO_THING.match(thing) or _NO_THING_ZH.match(thing) or len(thing.split()) > 10:
            return None
        return ExtractedMemory(
            text=words.format(v=match["v"].lower(), x=thing),
            kind=MemoryKind.PREFERENCE,
            subject=f"taste: {thing.lower()}",
            confidence=0.8,
        )

    return build


def _favourite(words: str) -> Callable[[re.Match[str]], ExtractedMemory | None]:
    def build(match: re.Match[str]) -> ExtractedMemory | None:
        what, thing = _tidy(match["k"]), _tidy(match["x"])
        if not what or not thing:
            return None
        text = words.format(k=what, x=thing)
        return ExtractedMemory(text=text, kind=MemoryKind.PREFERENCE, subject=f"favourite: {what.lower()}")

    return build


def _instruction(match: re.Match[str]) -> ExtractedMemory | None:
    """How the user wants to be served, in their own words."""
    said = _tidy(match[0])
    if len(said) <= 5:
        return None
    return ExtractedMemory(text=said, kind=MemoryKind.INSTRUCTION, confidence=0.9, is_pinned=True)


def _explicit_request(match: re.Match[str]) -> ExtractedMemory | None:
    """What the user asked to be remembered: told by a finer rule where one fits, else in their own words."""
    said = _tidy(match["x"])
    if len(said) < 3:
        return None
    finer = next(_apply_rules(said), None)
    if finer is not None:
        return replace(finer, confidence=1.0)
    return ExtractedMemory(text=said, kind=MemoryKind.FACT, confidence=1.0)


def _tidy(text: str) -> str:
    return " ".join(text.split()).strip(" ,.!;:，。！；：、\"“”'")


_NO_THING_ZH = re.compile(r"的|这|那|你|您|它|他|她|上面|前面|后面|第[一二三四五0-9]|什么|怎么|哪|的$|和|跟|听|看看")
_ZH_END = r"(?=$|[，。,!！；;、\s]|\.(?!\d))"
_ZH_THING = r"(?P<x>[^，。,.!！；;？?、\s](?:[^，。,.!！；;？?]|\.(?=\d)){0,29}?)[了啦]?" + _ZH_END
_ZH_NAME = (
    r"(?P<x>(?![了他她它你您不过上车外去来回做别怎什起])[\u4e00-\u9fffA-Za-z][\u4e00-\u9fffA-Za-z·]{0,11}?)(?:吧|就行|就好|就可以了?|即可|哦|啦)?"
    + _ZH_END
)
_ZH_WORK = (
    "老师|教师|医生|护士|程序员|工程师|软件工程师|学生|大学生|研究生|设计师|律师|会计|会计师|作家|司机|厨师|记者|产品经理|研究员"
    "|教授|公务员|销售|翻译|摄影师|音乐人|画家|农民|退休人员|自由职业者|数据分析师|药剂师|牙医|编辑"
)
_ZH_KIN = "儿子|女儿|妻子|老婆|太太|丈夫|老公|先生|妈妈|爸爸|哥哥|姐姐|弟弟|妹妹|女朋友|男朋友|狗|猫|公司|老板"
_ZH_ORDER_VERBS = "请|都|不要|别|用|使用|回答|回复|叫|称呼|给|写|说|记得|始终|一律|总是|尽量|必须|只|统一|先|务必|把|按"

_RULES: Final[tuple[_Rule, ...]] = (
    _en(
        r"(?:please )?(?:remember|keep in mind|bear in mind|don't forget|do not forget)(?: that\b|:"
        r"|,? (?=my\b|i\b|i'm\b|i've\b|we\b|our\b))[: ]*(?P<x>.{3,250}?)$",
        _explicit_request,
    ),
    _en(rf"my (?:full |first |real )?name(?:'s| is) {_NAME}", _profile("The user's name is {x}.", "name", 0.95)),
    _en(rf"(?:you can |you may |please |just |everyone can )*(?:call me|i go by) {_NAME}",
        _profile("The user wants to be called {x}.", "form of address", 0.95)),
    _en(rf"i(?:'m| am) (?P<no>not )?(?:(?:severely|highly|very|also|deathly|mildly) )*allergic to {_THING}",
        _health("The user is allergic to {x}.", "The user is not allergic to {x}.", "allergy: {x}")),
    _en(rf"i(?:'m| am) (?P<no>not )?(?:a |an )?(?P<x>{_DIETS})\b",
        _health("The user is {x}.", "The user is not {x}.", "diet: {x}")),
    _en(rf"my favou?rite (?P<k>[\w' -]{{2,40}}?) (?:is|are) {_THING}", _favourite("The user's favourite {k} is {x}.")),
    _en(rf"i (?:{_ADVERB})(?P<v>prefer|love|like|enjoy|hate|dislike) {_THING}", _taste("The user {v}s {x}.")),
    _en(rf"i (?P<v>don't like|do not like|no longer like|don't enjoy|can't stand|cannot stand|don't eat|don't drink) "
        rf"{_THING}", _taste("The user: I {v} {x}.")),
    _en(rf"i (?:now |currently |still )?live in (?!fear|hope|denial|a\b|an\b|the (?:past|moment)){_THING}",
        _profile("The user lives in {x}.", "home")),
    _en(rf"i(?:'ve| have)?(?: just| recently)? moved to {_THING}", _profile("The user lives in {x}.", "home", 0.8)),
    _en(rf"i(?:'m| am) (?:originally )?from (?!the (?:future|past)|here){_THING}",
        _profile("The user is from {x}.", "origin")),
    _en(rf"i (?:now |currently )?work (?:at|for) (?!it|you|this|that|a\b|an\b|my\b|me\b){_THING}",
        _profile("The user works at {x}.", "employer")),
    _en(rf"i (?:now |currently )?work as (?:a |an |the )?{_THING}", _profile("The user works as: {x}.", "profession")),
    _en(rf"i(?:'m| am) (?:a|an) (?P<x>(?:[\w-]+ )?(?:{_WORK}))\b", _profile("The user is a {x}.", "profession")),
    _en(r"i(?:'m| am) (?P<x>\d{1,3}) years old\b", _profile("The user is {x} years old.", "age")),
    _en(rf"i speak (?!to\b|with\b|for\b|of\b|about\b){_THING}", _profile("The user speaks {x}.", "languages", 0.85)),
    _en(rf"my (?P<k>{_KIN})(?:'s name is| is (?:called|named)) {_NAME}",
        _profile("The user's {k} is called {x}.", "name of {k}")),
    _en(rf"my (?P<k>{_DETAILS}) (?:is|are) (?P<x>[^,;!?]{{1,60}}?)(?=$|[,;!]|\.(?:\s|$)| and\b| but\b)",
        _profile("The user's {k}: {x}.", "{k}")),
    _en(rf"(?:from now on|going forward|in (?:the )?future|henceforth),? (?:please |you (?:should|must) "
        rf"|i want you to )?(?:always |never |only )?(?:{_ORDERS})\b.{{2,200}}$", _instruction),
    _en(rf"(?:please )?(?:always|never) (?:{_ORDERS})\b.{{2,200}}$", _instruction),
    # -- Chinese
    _zh(r"(?:请你?|帮我|你要|要|一定要)?(?:记住|记一下|记得(?=我))(?!了?吗|没)(?:了)?[：:，, ]?"
        r"(?P<x>[^？?]{2,120}?)[。！!]?$", _explicit_request),
    _zh(rf"(?:我叫|我的名字(?:是|叫)|我名叫|本人叫){_ZH_NAME}", _profile("用户的名字是{x}。", "name", 0.95)),
    _zh(rf"(?:请|你|您|可以|以后|今后|就|都)*(?:叫我|称呼我为?|喊我){_ZH_NAME}",
        _profile("用户希望被称为{x}。", "form of address", 0.95)),
    _zh(r"我对(?P<x>[^，。,.!！；;？?\s]{1,20}?)(?P<no>不)?(?:严重|有点|轻微)?过敏",
        _health("用户对{x}过敏。", "用户对{x}不过敏。", "allergy: {x}")),
    _zh(r"我(?P<no>不)?是(?:个|一个)?(?P<x>素食者|素食主义者|纯素食者|糖尿病人|糖尿病患者|穆斯林)",
        _health("用户是{x}。", "用户不是{x}。", "diet: {x}")),
    _zh(rf"我最(?:喜欢|爱)的(?P<k>[^，。,.!！；;？?是\s]{{1,12}})是{_ZH_THING}", _favourite("用户最喜欢的{k}是{x}。")),
    _zh(rf"我(?:很|最|比较|特别|非常|还是|更|真的|一直|平时|也|都)*(?P<v>不喜欢|不爱|讨厌|不吃|不喝|喜欢|偏爱|爱吃|爱喝|爱看|爱听){_ZH_THING}",
        _taste("用户{v}{x}。")),
    _zh(rf"我(?:现在|目前|一直)?(?:住在|家在|定居在){_ZH_THING}", _profile("用户住在{x}。", "home")),
    _zh(rf"我(?:刚|最近|已经)?(?:搬到|搬去|搬家到)了?{_ZH_THING}", _profile("用户住在{x}。", "home", 0.8)),
    _zh(rf"我(?:来自|老家在|老家是){_ZH_THING}", _profile("用户来自{x}。", "origin")),
    _zh(r"我是(?P<x>(?!一|个|什|好|坏|男|女|老|年|主|本|个|中间|负责|联系|当事)[\u4e00-\u9fff]{2,6})人" + _ZH_END,
        _profile("用户是{x}人。", "origin")),
    _zh(r"我(?:现在|目前)?在(?P<x>[^，。,.!！；;？?\s]{2,20}?)(?:工作|上班|任职|就职)" + _ZH_END,
        _profile("用户在{x}工作。", "employer")),
    _zh(rf"我(?:是|当)(?:一名|一个|一位|个|名)?(?P<x>[\u4e00-\u9fff]{{0,6}}(?:{_ZH_WORK}))" + _ZH_END,
        _profile("用户是{x}。", "profession")),
    _zh(r"我(?:今年|现在)?(?P<x>\d{1,3}|[一二三四五六七八九十]{1,4})岁", _profile("用户{x}岁。", "age")),
    _zh(rf"我(?:的|家)?(?P<k>{_ZH_KIN})(?:的名字)?叫{_ZH_NAME}", _profile("用户的{k}叫{x}。", "name of {k}")),
    _zh(r"我的(?P<k>生日|电话|电话号码|手机号|邮箱|微信|职业|专业|母语|时区|血型|国籍|年龄)(?:是|：|:)(?P<x>[^，。！；？\s]{1,40})",
        _profile("用户的{k}是{x}。", "{k}")),
    _zh(rf"(?:请)?(?:以后|今后|从现在起|从今以后|从现在开始)[，,]?(?:请|你|您)?(?:{_ZH_ORDER_VERBS})"
        r"[^？?]{2,80}$", _instruction),
    _zh(r"(?:请)?(?:你|您)?(?:不要再|别再)(?:用|使用|加|写|叫我|称呼我|给我|回复|回答|输出|推荐)[^？?]{1,80}$",
        _instruction),
)  # fmt: skip
