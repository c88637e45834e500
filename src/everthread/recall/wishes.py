"""Standing wishes: what a user wants always, never or from now on, and the questions they govern. Pure.

`Always give dates as day and month` shares no word with `Write to the printer about the flyers`, and yet the answer
must follow it. So where something is asked to be done, recall also finds the wishes: a few cue words lead to them in
the index, and patterns tell a wish from whatever else has such a word. Likewise who asks for food that somebody cannot
eat means the allergy, which need not have a word of that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from everthread.core.queries import Term
from everthread.text.cues import orders_for_good, without_others_words

MAX_WISHES = 5
"""So many are lifted for a question: those that have most to do with it, else the newest."""
_MAX_READ = 60
_MAX_READ_CHARACTERS = 1_200
"""Who says more at once tells something; a wish is said in its first sentences, or briefly."""
_BRIEF_CHARACTERS = 320
"""Of a message of one thought all that orders for good is a wish."""

CUES = tuple(
    Term(token=token)
    for token in (
        "alway never ever whenev prefer forward futur everi vegan vegetarian allerg keep onward now ask want don"
        " mind answer repli dont pleas pls plz rememb anymor stop note"
        " 以后 今后 从现 从今 每次 一律 始终 一直 不要 时候 回答 永远 凡是 只要"
    ).split()
)
"""Words that nearly every wish has one of, as the index writes them."""
_POLITE = r"(?:(?:please|kindly|hey|ok|okay|oh|btw|also|and|just|pl[sz])\ ){0,3}"
_BEGINS = r"(?:^|[.!?;:]\s+|,\s*|\b(?:and|so|but|also|then)\s+)"
_WISH = re.compile(
    _BEGINS
    + _POLITE
    + r"""(?:always\b|never\b(?!\ (?:mind|again|heard|seen|been|had|knew|said|thought|got|did|was|saw|met)\b)
    |from\ (?:now|here|today)\ on\b|going\ forward\b|in\ (?:the\ )?future\b|whenever\b
    |every\ ?time\b|each\ time\b|(?:when|if)\ i\ (?:ask|say|talk|want|request|need)\b
    |keep\ (?:(?:that|this|it)\ )?in\ mind\b
    |no\ [^.!?]{2,30}\ in\ (?:your|my)
        \ (?:answers?|replies|texts?|mails?|e-?mails?|letters?|messages?|reports?|summaries)\b
    |(?:please|pls|plz)\ (?:remember|note|keep)\ (?!to\b)|no\ more\ \w+ing\b|stop\ (?!by\b)\w+ing\b
    |when(?:ever)?\ (?:yo)?u\ (?:answer|reply|write|give|send|suggest|book|cook|plan|make)\b
    |(?:don'?t|do\ not)\ (?!(?:you|we|they|i)\b)[^.!?]{2,60}
        \b(?:any\ ?more|again|pl(?:ea)?se?|plz|i\ (?:hate|dislike|don'?t\ like))\b
    |(?:don'?t|do\ not)\ (?:ever|use|put|send|suggest|recommend|book|show|write|call|add|include|schedule|give)\b
    |(?:for|with)\ [^.!?]{2,40}\ i\ (?:(?:only|always)\ )?(?:want|like|prefer)\b
    |i\ (?:always\ |only\ |really\ |strongly\ |would\ |much\ ){0,3}
        (?:prefer|like\ (?:my|it\ when)|want\ (?:all|every|you|only))\b
    |(?:use|call|keep|stick\ to|round|write|answer|reply|format|include)\ [^.!?]{1,80}
        \b(?:always|from\ (?:now|here)\ on)\b
    |i(?:'m|\ am)\ (?:a\ )?(?:vegan|vegetarian|allergic))""",
    re.IGNORECASE | re.VERBOSE,
)
_CHINESE_WISH = re.compile(
    r"以后(?:都|请|别|不要|就|一律|[^。！？]{0,12}(?:一律|都|用))|今后|从现在(?:起|开始)|从今|一律|凡是?[^。！？]{1,20}(?:先|都|要|别|不要|不用)"
    r"|请(?:一直|始终|永远)|(?:^|[，,。])(?:请)?(?:不要|别)(?:再)?(?:给我|用|说|安排|推荐|写)|回答(?:我|问题)|(?:的时候|时)(?:请|先|都|记得)"
)
_REQUEST = re.compile(
    r"""^(?:please\ |hey\ |ok\ |now\ |so\ |hi\ |hello\ |and\ )*(?:(?:can|could|would|will)\ (?:you|we)
    |how\ (?:do|should|can|could|would|to|might)|what\ (?:should|would|could|can|do\ you|is\ the\ best)
    |what\ are\ (?:some|the\ (?:best|different))|which\ [^?]{0,40}(?:should|would|are\ worth)
    |where\ (?:should|can|do\ you\ think)|when\ (?:can|should|could)|is\ [^?]{2,40}\ (?:good|worth|safe)
    |i(?:'m|\ am|'d|\ want|\ need|\ would)|let'?s|help|explain|write|draft|give|show|book|find|make|plan|compare|suggest
    |recommend|tell|send|set|call|clean|polish|sum|fix|order|create|translate|list\ some|describe\ how|prepare|check|add
    |build|design|generate|look|schedule|post|get|put\ together|invite|remind|reply|answer|rewrite|rephrase|shorten|buy
    |pick|choose|arrange|cancel|reserve|outline|propose|contact|inform|notify|ask|e?-?mail|message|respond|confirm
    |follow\ up|commit|implement|refactor|rename|remove|delete|update|change|extend|replace|convert|format|test|run
    |deploy|review|document|estimate|calculate|organi[sz]e|host|cook|bake|pack)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ENDS_IN_REQUEST = re.compile(
    r"^(?!(?:who|what|when|where|which|why|how|whose|did|was|were)\b).*[.,;:!]\s+(?:and\s+|so\s+)?"
    r"(?:pl(?:ea)?se?\b|(?:can|could|would|will)\ you\b|(?:what|how)\ (?:should|can|could|do)\ (?:i|we)\b)",
    re.IGNORECASE | re.DOTALL,
)
_CHINESE_REQUEST = re.compile(
    r"^(?:请|麻烦)?你?(?:帮|给|写|比较|推荐|介绍|安排|解释|翻译|做一|看看|早上好|你好|订|总结|怎么|如何|提醒|起草|回复|规划|整理|准备)"
    r"|哪个好|帮(?:我|忙)|给我|去哪(?:里|儿)?(?:吃|玩|住)|吃(?:什么|点啥)(?:好)?[？?]?$"
)

_MATTERS = tuple(
    re.compile(one, re.IGNORECASE)
    for one in (
        r"\b(?:write|writes|writing|written|draft\w*|letters?|e-?mails?|mails?|texts?|repl(?:y|ies)|word(?:s|ing)?|sign(?:ed)?"
        r"|polish|paragraph|essay|flyers?|notices?|posts?|tone|spelling|announce\w*|report)\b|写|邮件|信|文案|报告|措辞|回复|起草|通知",
        r"\b(?:food|eat\w*|cook\w*|dinner|lunch|breakfast|meals?|recipes?|restaurants?|dish(?:es)?|snacks?|menu|spicy|vegan"
        r"|vegetarian|allergic|intolerant|lactose|gluten|cater\w*)\b|吃|餐|菜|饭|外卖|辣|素|忌口|过敏|请客",
        r"\b(?:travel\w*|trips?|fl(?:y|ights?)|planes?|seats?|hotels?|trains?|nights?\ in|airports?|vacation|holidays?"
        r"|sights|itinerary)\b|出差|旅行|机票|航班|酒店|火车|高铁|行程|座位",
        r"\b(?:code|script|function|program|class|bug|python|sql|test(?:s|ed)?|refactor|comments?|repo|commit)\b"
        r"|代码|函数|脚本|程序|注释|测试",
        r"\b(?:meetings?|(?:a|the)\ call|calls|slots?|schedul\w*|appointments?|calendar|workshop"
        r"|remind\w*|mornings?|evenings?|blocked|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b|会议|开会|日程|提醒|安排|约|早上|晚上|周[一二三四五六日末]",
        r"\b(?:money|cost\w*|prices?|euros?|dollars?|pounds|pay\w*|buy|budget|amounts?|invoices?|order|spend|spent|loan)\b"
        r"|钱|价|元|预算|买|订|花费|付款|金额",
    )
)
"""What wishes and requests are about: writing, food, travel, code, time, money."""

RESTRICTION_CUES = tuple(
    Term(token=token)
    for token in (
        "allerg allergi intoler eat drink can cannot don doesn avoid never vegan vegetarian kosher halal celiac coeliac"
        " gluten lactos diet diabet stop allow suppos mustn without"
        " 过敏 不能 不吃 不喝 忌口 素食 吃素 清真 不耐 戒了 不要 避免 糖尿"
    ).split()
)
_ASKS_WHAT_NOT = re.compile(
    r"\b(?:can'?t|cannot|can\ not|not|n't|never|shouldn'?t|mustn'?t|avoid|allowed|without|allerg\w*|intoleran\w*|"
    r"restriction\w*|diet\w*|forbidden|safe)\b|不能|不可以|不吃|不喝|不该|忌|过敏|避免|别吃|禁",
    re.IGNORECASE,
)
_ASKS_ABOUT_FOOD = re.compile(
    r"\b(?:eat|eats|eating|food|foods|drink|drinks|diet|dietary|cook|cooking|serve|meal|meals|dinner|lunch|breakfast|"
    r"menu|ingredients?|allerg\w*|intoleran\w*|snacks?|medicine|medication)\b|吃|喝|食|菜|餐|饮|药|过敏|忌口",
    re.IGNORECASE,
)
_RESTRICTION = re.compile(
    r"""\b(?:allerg\w+|intoleran\w+|vegan|vegetarian|pescatarian|kosher|halal|celiac|coeliac|gluten|diabet\w+|lactose
    |(?:can'?t|cannot|can\ not|don'?t|doesn'?t|won'?t|never|mustn'?t|shouldn'?t|(?:not|n't)\ (?:allowed|supposed)\ to
        |stopped|gave\ up|avoid\w*|stay\w*\ (?:off|away\ from))
      \ (?:\w+\ ){0,2}(?:eat\w*|ate|have|drink\w*|touch\w*|take|digest|tolerate|stand|meat|dairy|sugar|alcohol|nuts))\b
    |过敏|不能(?:吃|喝|碰)|不(?:吃|喝)(?!饭|完|下)|忌口|吃素|素食|清真|乳糖不耐|戒(?:酒|糖|了)""",
    re.IGNORECASE | re.VERBOSE,
)


_ASKS_FOR_WISHES = re.compile(
    r"\b(?:my|our|standing)\ (?:\w+\ )?(?:rules|preferences|instructions|wishes|guidelines|conventions)\b"
    r"|\b(?:rules|preferences|instructions|wishes|guidelines|conventions)\ (?:for\ you|i\ (?:gave|set|told))\b"
    r"|\byou\ (?:to\ |should\ |shall\ |must\ )?(?:always|never)\b"
    r"|我[^，。！？?]{0,8}(?:要求|规矩|规则|偏好|喜好|习惯)",
    re.IGNORECASE,
)


def asks_for_wishes(question: str) -> bool:
    """Whether it is asked for the standing wishes themselves: `what are my rules for you?`."""
    return _ASKS_FOR_WISHES.search(question) is not None


def asks_for_restrictions(question: str) -> bool:
    """Whether it is asked what somebody may not eat or drink: then allergies and diets are meant, and no dishes."""
    return _ASKS_WHAT_NOT.search(question) is not None and _ASKS_ABOUT_FOOD.search(question) is not None


def is_restriction(role: str, text: str) -> bool:
    """Whether a message of a person says what somebody may not or does not eat or drink."""
    if role != "user" or text.rstrip().endswith(("?", "？")):
        return False
    return _RESTRICTION.search(text[:_MAX_READ_CHARACTERS].replace("’", "'")) is not None


def asks_for_work(question: str) -> bool:
    """Whether something is to be done or advised, so that wishes may govern it; else something is only asked for."""
    return any(one.search(question) is not None for one in (_REQUEST, _ENDS_IN_REQUEST, _CHINESE_REQUEST))


def is_wish(role: str, text: str) -> bool:
    """Whether a user's message says how something shall always, never or from now on be done."""
    if role != "user":
        return False
    start = text[:_MAX_READ_CHARACTERS]
    if _WISH.search(start):
        return True
    if start.rstrip().endswith(("?", "？")):
        return False
    if len(text) <= _BRIEF_CHARACTERS and orders_for_good(start):
        return True
    return _CHINESE_WISH.search(without_others_words(start)) is not None


def _is_either(role: str, text: str) -> bool:
    return is_wish(role, text) or is_restriction(role, text)


class WishKind(NamedTuple):
    """What may govern an answer, or is asked for itself."""

    cues: Sequence[Term]
    """What leads to it in the index."""
    is_one: Callable[[str, str], bool]
    """Whether a message, by its role and text, is one."""
    is_asked_for: bool


def kind_of_wish(question: str) -> WishKind | None:
    """What kind of wish a question asks for, or may be governed by; where it is about food, what somebody may not eat
    governs too."""
    if asks_for_restrictions(question):
        return WishKind(RESTRICTION_CUES, is_restriction, is_asked_for=True)
    if asks_for_wishes(question):
        return WishKind(CUES, is_wish, is_asked_for=True)
    if not asks_for_work(question):
        return None
    if _ASKS_ABOUT_FOOD.search(question) is not None:
        return WishKind(tuple(dict.fromkeys((*CUES, *RESTRICTION_CUES))), _is_either, is_asked_for=False)
    return WishKind(CUES, is_wish, is_asked_for=False)


def matters_of(text: str) -> frozenset[int]:
    """Which everyday matters a text is about; none, as of most wishes about answers: then it may govern any."""
    start = text[:_MAX_READ_CHARACTERS]
    return frozenset(at for at, matter in enumerate(_MATTERS) if matter.search(start))


def likely_wishes(postings: Mapping[Term, Sequence[int]]) -> list[int]:
    """The messages that are worth reading: those with the rarest cue words, of equals the newest."""
    cues: dict[int, float] = {}
    for having in postings.values():
        for key in having:
            cues[key] = cues.get(key, 0.0) + 1 / len(having)
    return sorted(cues, key=lambda key: (-cues[key], -key))[:_MAX_READ]
