"""What an order to the assistant is about, and what a sentence takes back. Pure, for `memory_rules`.

"Always answer in short bullet points" and, later, "forget the bullet points" are about one subject; so are "answer in
French" and 以后用中文回答. An order has a subject only if it says nothing else: one that holds for letters, or when
somebody asks for code, stands beside the general one. In the same way a sentence takes something back only if all of
it is understood, or if it names what it ends. Whoever takes back wrongly loses what a user said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from everthread.recall.memory_intents import Ended

_LANGUAGES: Final = (
    "english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hindi|chinese"
    "|mandarin|cantonese|japanese|korean|swedish|norwegian|danish|finnish|greek|hebrew|czech|hungarian|romanian"
)
_SUBJECTS: Final = {
    "order: spelling": r"\b(?:british|american|australian|canadian) (?:english|spelling)\b|[英美]式拼写",
    "language of answers": rf"\b(?:{_LANGUAGES})\b|\b(?:the same|whatever|the|my) language(?: that)?"
    r"(?: (?:i|we) (?:use|write in|ask in|write|am using))?|[中英德法日韩俄](?:文|语)|汉语|普通话|西班牙语"
    r"|意大利语|葡萄牙语|粤语",
    "order: bullet points": r"\bbullet(?:ed|s)?\b(?:[- ](?:points?|lists?)\b)?|\b(?:(?:plain|normal"
    r"|flowing) )?(?:prose|text"
    r"|paragraphs)\b|分点|列点|要点|项目符号",
    "order: emojis": r"\b(?:emojis?|emoticons?|smileys?)\b|表情(?:符号|包)?|颜文字",
    "order: tables": r"\btables?\b|表格",
    "order: headings": r"\bhead(?:ing|er)s?\b|小?标题",
    "order: markdown": r"\bmarkdown\b",
    "order: units": r"\b(?:metric|imperial)\b(?: (?:units?|system|measurements?)\b)?|公制|英制",
    "order: exclamation marks": r"\bexclamation (?:marks?|points?)\b|感叹号",
    "order: length": r"\b(?:short|shorter|brief|briefly|concise|concisely|terse|long|longer|detailed|in detail"
    r"|at length|more detail|in depth)\b|简短|简洁|简要|精简|短一?点|详细|长一?点",
}
_SUBJECT = re.compile("|".join(f"({pattern})" for pattern in _SUBJECTS.values()), re.IGNORECASE)
_SAYS_LITTLE = re.compile(
    r"\b(?:please|pls|plz|kindly|always|never|ever|only|just|again|actually|now|on|from|going|forward|in|future|the"
    r"|henceforth|onwards?|of|answer(?:s|ing)?|reply|replies|respond|responses?|write|writing|speak|talk|give|me|us"
    r"|use|using|to|with|my|your|all|every|any|an?|no|more|stop|keep|make|don't|do not|not|avoid|and|i|you|should|must"
    r"|want|would|like|instead|it|them|be|points?|sentences?|texts?|stick|switch|back|messages?|questions?|tho|ok)\b"
    r"|以后|今后|从现在(?:起|开始)?|从今|往后|麻烦|不要|不准|禁止|使用|回答|回复|答复|说话|交流|对话|一律|统一|始终|总是"
    r"|尽量|可以|还是|列出|改成|改用|务必|必须|一些|一点|请|你|您|我|都|要|用|给|以|来|再|别|写|说|吧|了|就|行|只|的|时|加|在|里|中"
    r"|些|和|对|[\s\W]",
    re.IGNORECASE,
)

_ONE_ANSWER = re.compile(
    r"\b(?:your|the|this|that|an?|next) (?:\w+ )?(?:answer|reply|response|message)\b"
    r"|这[次个]|下次",
    re.IGNORECASE,
)


def order_subject(order: str) -> str | None:
    """What an order is about that holds for all answers; None if it holds for some, or is about several things."""
    if _ONE_ANSWER.search(order) is not None:
        return None
    subjects = [
        name
        for match in _SUBJECT.finditer(order)
        for name, found in zip(_SUBJECTS, match.groups(), strict=True)
        if found
    ]
    distinct = set(subjects) - {"order: length"} or set(subjects)
    if len(distinct) != 1 or _SAYS_LITTLE.sub("", _SUBJECT.sub(" ", order)):
        return None
    return distinct.pop()


# -- what is taken back --------------------------------------------------------------------------------------------

_CUE = re.compile(
    r"\b(?:again|any ?more|forget|never ?mind|no need|no longer|stop|moved|left|quit|can|over|to)\b|不用|不必"
    r"|无需|可以|忘|取消"
    r"|别管|能|离开|搬离|离职|辞职|不在|不住",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,，、;；]| [-–—]+ | (?:and|but|so) ", re.IGNORECASE)
_AGAIN = re.compile(r"\b(?:again|any ?more|after all|from now on)\b", re.IGNORECASE)
"""What tells a wish that is taken back from a way of doing this once: "you can give me the long answer now"."""
_FORGET_ORDER = re.compile(
    r"(?:please |ok |okay |well |actually |so |now ){0,4}(?:(?:forget|never ?mind)\b|(?:you|u) (?:can|may) stop\b)",
    re.IGNORECASE,
)
_MAY_AGAIN = re.compile(
    r"(?:please |ok |okay |well |actually |so |now ){0,4}(?:(?:there's |there is )?no need (?:for|to)\b"
    r"|(?:you|u) (?:can|may) (?:skip|drop|use|write|answer|give|have|include|leave out)\b"
    r"|(?:you|u) don't (?:have|need) to\b|[^,]{2,40}? (?:is|are) (?:fine|ok|okay|allowed|welcome|good)\b)",
    re.IGNORECASE,
)
_TAKEN_BACK_WORDS = re.compile(
    r"\b(?:forget|never ?mind|about|what i said|the thing|wish|rule|request|for|there's|there is|need|can|u|may"
    r"|skip|drop|have|include|leave|out|after|is|are|fine|okay|allowed|welcome|good|any ?more|that|those|these"
    r"|stuff|well|so)\b",
    re.IGNORECASE,
)
_ORDER_TAKEN_BACK_ZH = re.compile(
    r"(?:(?:请|以后|现在|算了)*(?:忘了|忘掉|忘记|取消|别管|不用管)|(?:以后|现在)?(?:你)?(?:不用|不必|不需要|无需)再"
    r"|(?:以后|现在)?(?:你)?(?:不用|不必|不需要|无需)(?=.*了$)|(?:现在|以后|你|又|重新)*可以(?=.*了$)"
    r"|[^，,可]{1,6}(?:又)?可以(?:用)?了$)"
)
_TAKEN_BACK_WORDS_ZH = re.compile(
    "忘了|忘掉|忘记|取消|别管|不用管|不用|不必|不需要|无需|现在|重新|之前|刚才|说过|要求|那个|关于|又|算"
)

_PLACE = (
    r"(?P<x>(?-i:[A-Z])[\w'.-]{1,20}(?: (?-i:[A-Z])[\w'.-]{0,20}){0,3}|[\u4e00-\u9fff]{2,8})"
    r"(?= any ?more\b| in\b| last\b|$)"
)
_GONE: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), ends)
    for pattern, ends in (
        (
            rf"(?:i|we) (?:no longer live in|don't live in|do not live in|moved (?:away from|out of)) {_PLACE}"
            rf"|(?:i'm|i am|we're|we are) (?:not|no longer) in (?P<y>[\w'. -]{{2,40}}?) any ?more$",
            (("home", "in {x}"), ("home", "住在{x}")),
        ),
        (
            rf"(?:i|we) (?:(?:no longer work|don't work|stopped working) (?:at|for)|quit|left) {_PLACE}",
            (("employer", "at {x}"), ("employer", "在{x}工作")),
        ),
        (
            r"我们?(?:已经|早就?)?(?:不住在?|搬离|不在)了?(?P<x>[\u4e00-\u9fff]{2,8}?)(?:住|生活)?了?$",
            (("home", "住在{x}"),),
        ),
        (
            r"我(?:已经|刚)?(?:从(?P<x>[^，,]{2,12}?)(?:离职|辞职|离开)了?|不在(?P<y>[^，,]{2,12}?)(?:工作|上班|干)了|离开(?P<z>[^，,]{2,12}?)了?)$",
            (("employer", "在{x}工作"),),
        ),
        (
            r"(?:and |so |now )*i(?:'ve| have)?(?: just)? (?:quit|lost|left) my job\b|i(?: got|'ve been"
            r"| was) (?:fired|laid off)\b"
            r"|我(?:刚|已经)?(?:辞职|离职|失业|被裁员?)了",
            (("employer", ""),),
        ),
    )
)
_MAY_HAVE_AGAIN = re.compile(
    r"(?:(?:and|good news|now) )*i (?:can (?:finally )?(?:eat|drink|have|tolerate)|(?:started to |started )?"
    r"(?:eat|eating|drink|drinking)) (?P<x>[a-z][a-z ]{1,30}?) again\b"
    r"|我(?:现在|如今|已经)?(?:又|重新)?(?:能|可以|开始)(?:重新)?(?:吃|喝|碰)(?P<y>[\u4e00-\u9fff]{1,6}?)了$",
    re.IGNORECASE,
)
_DIETS_WITHOUT: Final = {
    "meat": ("vegan", "vegetarian", "veggie", "pescatarian", "a vegan", "a vegetarian"),
    "fish": ("vegan", "vegetarian", "veggie"),
    "dairy": ("vegan", "lactose intolerant", "lactose-intolerant"),
    "cheese": ("vegan",),
    "eggs": ("vegan",),
    "gluten": ("gluten intolerant", "gluten-intolerant"),
    "肉": ("素食者", "素食主义者", "纯素食者"),
}


def taken_back(sentence: str) -> Sequence[Ended]:
    """The memories of which a sentence says that they hold no more."""
    if _CUE.search(sentence) is None:
        return ()
    return [ended for clause in _CLAUSE.split(sentence) for ended in _taken_back_by(clause.strip())]


def _taken_back_by(clause: str) -> Iterator[Ended]:
    had = _MAY_HAVE_AGAIN.match(clause)
    if had is not None:
        yield from _may_be_had((had["x"] or had["y"]).lower())
        return
    for pattern, ends in _GONE:
        match = pattern.match(clause)
        if match is not None:
            name = next((one for one in match.groups() if one is not None), "").strip()
            yield from (Ended(subject, naming=words.format(x=name)) for subject, words in ends)
    order = _order_taken_back(clause)
    if order is not None:
        yield Ended(order)


def _order_taken_back(clause: str) -> str | None:
    if _FORGET_ORDER.match(clause) or (_MAY_AGAIN.match(clause) and _AGAIN.search(clause)):
        return order_subject(_TAKEN_BACK_WORDS.sub(" ", clause))
    if _ORDER_TAKEN_BACK_ZH.match(clause) is not None:
        return order_subject(_TAKEN_BACK_WORDS_ZH.sub(" ", clause))
    return None


def _may_be_had(thing: str) -> Iterator[Ended]:
    yield Ended(f"cannot have: {thing}")
    yield Ended(f"allergy: {thing}")
    yield Ended(f"taste: {thing}", naming="doesn't eat")
    yield Ended(f"taste: {thing}", naming="doesn't drink")
    yield Ended(f"taste: {thing}", naming="不吃")
    yield Ended(f"taste: {thing}", naming="不喝")
    for diet in _DIETS_WITHOUT.get(thing, ()):
        yield Ended(f"diet: {diet}")
