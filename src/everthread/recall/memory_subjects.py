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


_HOLDS_ONCE: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"(?i:my|our) (?i:(?:new|current|main) )?(?P<x>[a-z][a-z -]{2,24}?) (?i:is|are)(?i: now| currently)?"
            r"(?i: located| based)? (?i:in) [A-Z]",
            "place of: {x}",
        ),
        (r"(?i:we)(?i:'re| are)?(?i: now)? (?i:move|moved|moving) (?i:the|our) (?P<x>[a-z][a-z -]{2,24}?) to [A-Z]",
         "place of: {x}"),
        (r"(?i:my|our) (?i:(?:new|current) )?(?P<x>(?i:manager|boss|landlord|landlady|supervisor|team lead))"
         r"(?i: is|'s)(?i: now| currently)? [A-Z][\w'-]{1,20} [A-Z]", "name of the: {x}"),
        (r"(?i:my|our) (?i:(?:new|current|total|monthly) )?(?P<x>(?i:budget|rent|salary|deadline))"
         r"(?i: is|'s)(?i: now| currently)? (?:[$€£¥]|[A-Z]{3} )?\d", "amount: {x}"),
        (r"我们?的?(?:新|总)?(?P<x>预算|房租|工资|截止日期)(?:现在)?(?:是|为|改成|改为|变成|提高到|降到|涨到|调到) ?\d",
         "amount: {x}"),
    )
)  # fmt: skip


def once_subject(sentence: str) -> str | None:
    """What a sentence tells that has one value at a time: where the warehouse is, who the manager is, what the budget
    is. None if it tells something else."""
    found = ((pattern.match(sentence), words) for pattern, words in _HOLDS_ONCE)
    return next((words.format(x=match["x"].lower()) for match, words in found if match is not None), None)


# -- what is taken back --------------------------------------------------------------------------------------------

_CUE = re.compile(
    r"\b(?:again|back|switch|wieder|any ?more|no more|enough|forget|never ?mind|no need"
    r"|no longer|stop|moved|left|quit|can|over|to|these days|nowadays|now)\b|不用|不必"
    r"|无需|可以|忘|取消|[改换切说转][回成]|还是|恢复|别再|又|重新"
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
    r"|i (?:do )?(?:now )?(?:eat|drink) (?P<z>[a-z][a-z ]{1,30}?) (?:these days|nowadays|now)$"
    r"|我(?:现在|如今|已经)?(?:(?:又|重新)(?:能|可以|开始)?|(?:能|可以|开始)(?:重新)?)(?:吃|喝|碰)(?P<y>[\u4e00-\u9fff]{1,6}?)了$",
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
        yield from _may_be_had((had["x"] or had["y"] or had["z"]).lower())
        return
    for pattern, ends in _GONE:
        match = pattern.match(clause)
        if match is not None:
            name = next((one for one in match.groups() if one is not None), "").strip()
            yield from (Ended(subject, naming=words.format(x=name)) for subject, words in ends)
    order = _order_taken_back(clause)
    if order is not None:
        yield Ended(order)
    no_more = _NO_MORE_OF.match(clause)
    if no_more is not None:
        yield Ended("language of answers", naming=no_more["x"] or no_more["y"])
    language = _language_returned_to(clause)
    if language is not None:
        yield Ended("language of answers", sparing=language)


def _order_taken_back(clause: str) -> str | None:
    if _FORGET_ORDER.match(clause) or (_MAY_AGAIN.match(clause) and _AGAIN.search(clause)):
        return order_subject(_TAKEN_BACK_WORDS.sub(" ", clause))
    if _ORDER_TAKEN_BACK_ZH.match(clause) is not None:
        return order_subject(_TAKEN_BACK_WORDS_ZH.sub(" ", clause))
    return None


_RETURNS = re.compile(
    r"\b(?:again|(?:back|switch) to|wieder|instead)\b|(?:[改换切转说变]回|[改换]成|还是(?:用|说)?|恢复(?:用|成)?)",
    re.IGNORECASE,
)
_RETURN_WORDS = re.compile(
    r"\b(?:wieder|bitte|ab jetzt|auf|go|let's|lets|can we|could we|can you|could you|rather|return|continue|normal"
    r"|nvm|nah|nope|sorry|u)\b|[改换切转说变]回|改成|换成|还是|恢复|来|吧|继续|咱们?|我们",
    re.IGNORECASE,
)
_NO_MORE_OF = re.compile(
    rf"(?:(?:ok|okay|please|pls|now|so) )*(?:no more|enough|stop with the|that's enough) (?P<x>{_LANGUAGES})"
    r"(?: please| pls| now)?$"
    r"|(?:以后|现在)?(?:不要|别)再?(?:用|说)(?P<y>[中英德法日韩俄])[文语]了$",
    re.IGNORECASE,
)
_NAMED_LANGUAGE = re.compile(
    rf"\b(?:{_LANGUAGES})\b|[中英德法日韩俄][文语]|汉语|普通话|西班牙语|意大利语|葡萄牙语|粤语", re.IGNORECASE
)


def _language_returned_to(clause: str) -> str | None:
    """The language in which the user wants to go on: "english again", "ab jetzt wieder english", 还是用中文吧. It ends
    an order to answer in another one, and orders nothing for good itself."""
    named = _NAMED_LANGUAGE.findall(clause)
    if len(named) != 1 or len(clause) > _LONGEST_RETURN or _RETURNS.search(clause) is None:
        return None
    rest = _RETURN_WORDS.sub(" ", clause)
    return named[0].lower() if order_subject(rest) == "language of answers" else None


_LONGEST_RETURN = 80


# -- what was so, and is no more -----------------------------------------------------------------------------------

_DOING: Final = {
    "being": "am", "using": "use", "drinking": "drink", "eating": "eat", "driving": "drive", "playing": "play",
    "working": "work", "living": "live", "learning": "am learning", "studying": "am studying", "smoking": "smoke",
    "teaching": "teach", "renting": "rent", "running": "run", "having": "have", "taking": "take",
}  # fmt: skip
_ENDING = (
    r"(?=$|[,;]| (?:any ?more|any longer|these days|nowadays|after all|now|but|since|because|until|till|and (?:now|i|we"
    r"|then)|though|tho|sadly|sorry|lol|as of|last|this"
    r"|in (?:\d{4}|(?:early |late |the )?(?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december|spring|summer|autumn|fall|winter)))\b)"
)
_WAS: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), words)
    for pattern, words in (
        (
            r"(?P<who>i|we)(?:'m| am|'re| are) (?:no longer|not)(?: really| quite| exactly)?"
            rf" (?P<x>[^,;]{{2,80}}?){_ENDING}",
            "{who} {be} {x}",
        ),
        (rf"(?P<who>i|we) no longer (?P<x>[^,;]{{3,80}}?){_ENDING}", "{who} {x}"),
        (
            r"(?P<who>i|we) (?:don't|do not|dont) (?P<x>[^,;]{3,80}?)(?= any ?more\b| any longer\b| these days\b)",
            "{who} {x}",
        ),
        (rf"(?P<who>i|we) used to be (?P<x>[^,;]{{2,80}}?){_ENDING}", "{who} {be} {x}"),
        (rf"(?P<who>i|we) used to (?!be\b)(?P<x>[^,;]{{3,80}}?){_ENDING}", "{who} {x}"),
        (
            r"(?P<who>i|we) (?:was|were) (?P<x>[^,;]{2,60}?),? (?:but|though|until|till)\b"
            r"(?: (?:i'm|i am|we're|we are))?"
            r"(?= (?:not|no|last|recently|this|now|a (?:week|month|year|few))\b)",
            "{who} {be} {x}",
        ),
        (
            rf"(?P<who>i|we)(?:'ve| have)? (?:just |recently |finally )?(?:stopped|quit|gave up|given up)"
            rf" (?P<doing>{'|'.join(_DOING)}) (?P<x>[^,;]{{2,60}}?){_ENDING}",
            "{who} {doing} {x}",
        ),
        (
            r"(?P<who>my [\w' ]{2,30}?)(?: is|'s)(?: not|n't| no longer)"
            rf" (?P<x>(?-i:[A-Z\d])[^,;]{{1,60}}?){_ENDING}",
            "{who} is {x}",
        ),
        (
            r"(?P<who>我们?)(?:现在|如今|已经|早就|后来|最近|都)*(?:不再|不)(?!是|知|想|会|能|要|用|行|好|对|必|过|说|管|信|敢|清|懂"
            r"|太|怎)(?P<x>[^，,；;]{1,20}?)了?(?<=了)$",
            "{who}{x}",
        ),
        (r"(?P<who>我们?)(?:现在|如今|已经|早就)*(?:不再|不)(?P<x>(?:是|用|叫)[^，,；;]{1,20}?)了$", "{who}{x}"),
        (
            r"(?P<who>我们?)(?:以前|之前|原来|过去|曾经|本来|从前)(?:都|一直)?(?P<x>[^，,；;]{2,20})[，,；;]?"
            r"(?:但是?|不过|可是?|后来)?(?:现在|如今|已经|早就)+(?=[^，,]*(?:不|没|改|换|戒))",
            "{who}{x}",
        ),
    )
)  # fmt: skip


def was_so(sentence: str) -> Iterator[str]:
    """What a sentence says is so no more, as it was said while it was so: "I live in Rome" of "I used to live in
    Rome", 我吃素 of 我不吃素了."""
    for pattern, words in _WAS:
        match = pattern.match(sentence)
        if match is None:
            continue
        found = match.groupdict()
        found["doing"] = _DOING.get((found.get("doing") or "").lower(), "")
        yield words.format(be="am" if found["who"].lower() == "i" else "are", **found)


def _may_be_had(thing: str) -> Iterator[Ended]:
    yield Ended(f"cannot have: {thing}")
    yield Ended(f"allergy: {thing}")
    yield Ended(f"taste: {thing}", naming="doesn't eat")
    yield Ended(f"taste: {thing}", naming="doesn't drink")
    yield Ended(f"taste: {thing}", naming="不吃")
    yield Ended(f"taste: {thing}", naming="不喝")
    for diet in _DIETS_WITHOUT.get(thing, ()):
        yield Ended(f"diet: {diet}")
