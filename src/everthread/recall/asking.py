"""The words by which something is asked, taken out of a question before its other words are looked for. Pure.

`When`, `why` and 谁 are function words wherever they stand (`query`). Here are those that only ask as part of a phrase:
`time` in `what time does it leave` and 时候 in 什么时候 say what kind of answer is wanted, and no answer has them; in
`time zone` and 小时候 they are what is asked about, and stay. Likewise the phrases that ask for a list or an order.
Only what surely asks is here: a word too many costs more than one too few.
"""

from __future__ import annotations

import re

from everthread.text.words import stem

_ASKING = re.compile(
    r"""\b(?:
    how\ (?:many\ (?:times|different)|many|much|old|far|tall|big|large|high|soon|late|early|come)\b
    |(?:what|which)\ (?:kind|type|sort)s?\ of\b
    |(?:what|which)\ (?:time|day|date|year|month|weekday)\b(?=\s*(?:$|[^\w\s-]|
        (?:am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|will|would
        |he|i|it|my|our|she|the|their|they|this|we|you|your|of|in|on)\b))
    |which\ ones?\b
    |(?:what|who|where|when|why|how)\ (?:else|exactly)\b|exactly\ (?=(?:what|who|where|when|why|how|which)\b)
    |whose|whether
    |so\ far(?!\ (?:as|away|from)\b)|in\ total|altogether|all\ in\ all
    )""",
    re.VERBOSE,
)
_BEGINS = r"(?:^|(?<=[.;:!?,])|(?<=please)|(?<=you)|(?<=just)|(?<=and)|(?<=then)|(?<=now))\s*"
_WHOSE = r"(?:the|my|our|your|his|her|its|their|these|those|this|that)"
_ASKING_TO_BE_TOLD = re.compile(
    rf"""{_BEGINS}\b(?:
    (?:tell|remind)\ me(?!\ to\b)(?:\ (?:again|about|of))?
    |do\ (?:you|we)\ (?:still\ )?(?:know|remember|recall)
    |i(?:'d|\ would)?\ (?:want|like|need)\ to\ know
    |list(?:\ out)?(?:\ (?:all|each|every|everything)\b(?:\ of\b)?|(?=\ {_WHOSE}\b))
    |(?:give|show|name|find|get|tell|send)(?:\ me)?\ all\b(?:\ of\b)?
    |(?:give|show|make|write|get|send|provide)(?:\ me)?\ (?:a|the)\ (?:\w+\ )?list\ of(?:\ all\b)?
    |(?:give|provide|write)(?:\ me)?(?:\ (?:a|an|the))?(?:\ \w+)?\ (?:summary|overview|recap)\ of
    |(?:summari[sz]e|recap)(?=\ (?:{_WHOSE}|what|how|everything|all)\b)
    |walk\ me\ through
    )\b""",
    re.VERBOSE,
)
_ORDER = re.compile(
    r"""\bin\ (?:what|which)\ order\b|\bthe\ order\ in\ which\b
    |\bin\ (?:the\ )?(?:chronological|correct|right|time|date)\ order\b
    |\bin\ order\ to\b
    |,\s*in\ order(?=\s*(?:$|[.,;:!?]))""",
    re.VERBOSE,
)
_LISTED_IN_ORDER = re.compile(
    r"(\b(?:which|what|list|name|show|tell|all|every)\b[^.;!?]{0,200})(?<!\bis)(?<!\bare)(?<!\bwas)(?<!\bwere)(?<!\bbe)"
    r" in order(?=\s*(?:$|[.,;:!?]))"
)
"""`Are the papers in order?` asks for no list."""
_COUNTED = r"点(?!评|心|子|击)|次(?!序)|个|位(?!置)|种(?!子)|时"
"""What is counted without being named. Others are what an answer has: 18 号, 三天, as `often` and `a long time` are."""
_CHINESE = re.compile(
    rf"""[什甚]么(?:时候|时间|时刻|地方|样|日子|东西)?|啥(?:时候|时间|地方|样)?|(?<!小)时候|[为如]何|何(?:时|地|处|人|种)
    |怎么(?:样|回事|办(?=[了呢啊呀吗]|\W|$))?|怎样
    |哪(?:里|儿|些|天|年|一?(?:{_COUNTED}|家(?![具庭])|款|本|件|条(?![件款])|张|部(?!门)|项(?!目)|座(?!位)|间|台|份|所))
    |(?:星期|礼拜|周)几|几(?:{_COUNTED})
    |(?<![不很许更太好最诸众])多(?:少次?|久|长(?:时间)?|大|高|远)|咋(?:样|办|回事)?
    |[是能可]否|[一总]共|(?:按|依|以)(?:照)?(?:时间|日期|先后|什么)?(?:的)?(?:先后)?顺序|依次
    |(?:(?:^|(?<=\W)|(?<=顺序))(?:请|麻烦)?(?:你|您)?(?:帮我|给我|为我|替我)?)
     (?:(?:列|罗列|列举)(?:出来?|一下)|列举|告诉我|(?:还)?记得|(?:我)?想知道|总结一?下?(?!会))(?:所有|全部)?(?:的)?""",
    re.VERBOSE,
)

WHATEVER_STEMS = frozenset(
    map(
        stem,
        "happen talk discuss say said tell told chat conversation write wrote mention speak spoke thing note new news"
        " diary topic go went day anything everything else time all early late beginning end middle week".split(),
    )
)
WHATEVER_CHARACTERS = frozenset("发生聊谈说讲话做干事情记写内容天初底晚早些")
"""Of `What did we talk about on Monday?` nothing is left but the time: whatever was said then is meant."""


def without_asking(folded: str) -> str:
    """What a question, in folded form, is about: all but the words by which it asks, with a space for each phrase."""
    if " in order" in folded:
        folded = _LISTED_IN_ORDER.sub(r"\1", folded)
    for phrases in (_ASKING_TO_BE_TOLD, _ORDER, _ASKING):
        folded = phrases.sub(" ", folded)
    return folded if folded.isascii() else _CHINESE.sub(" ", folded)
