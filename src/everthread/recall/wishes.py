"""Standing wishes: what a user wants always, never or from now on, and the questions they govern. Pure.

`Always give dates as day and month` shares no word with `Write to the printer about the flyers`, and yet the answer
must follow it. So where something is asked to be done, recall also finds the wishes: a few cue words lead to them in
the index, and patterns tell a wish from whatever else has such a word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from everthread.core.queries import Term

MAX_WISHES = 5
"""So many are lifted for a question: those that have most to do with it, else the newest."""
_MAX_READ = 60
_MAX_READ_CHARACTERS = 1_200
"""Who says more at once tells something; a wish is said in its first sentences, or briefly."""

CUES = tuple(
    Term(token=token)
    for token in (
        "alway never ever whenev prefer forward futur everi vegan vegetarian allerg keep onward now ask want don"
        " 以后 今后 从现 从今 每次 一律 始终 一直 不要 时候 回答 永远"
    ).split()
)
"""Words that nearly every wish has one of, as the index writes them."""
_POLITE = r"(?:(?:please|kindly|hey|ok|okay|oh|btw|also|and|just|pls)\ ){0,3}"
_BEGINS = r"(?:^|[.!?;:]\s+|,\s*|\b(?:and|so|but|also|then)\s+)"
_WISH = re.compile(
    _BEGINS
    + _POLITE
    + r"""(?:always\b|never\b|from\ (?:now|here|today)\ on\b|going\ forward\b|in\ (?:the\ )?future\b|whenever\b
    |every\ ?time\b|each\ time\b|(?:when|if)\ i\ (?:ask|say|talk|want|request|need)\b|keep\ in\ mind\b
    |(?:don'?t|do\ not)\ (?:ever|use|put|send|suggest|recommend|book|show|write|call|add|include|schedule|give)\b
    |(?:for|with)\ [^.!?]{2,40}\ i\ (?:only\ )?(?:want|like|prefer)\b
    |i\ (?:always\ |only\ |really\ |strongly\ |would\ |much\ ){0,3}
        (?:prefer|like\ (?:my|it\ when)|want\ (?:all|every|you|only))\b
    |(?:use|call|keep|stick\ to|round|write|answer|reply|format|include)\ [^.!?]{1,80}
        \b(?:always|from\ (?:now|here)\ on)\b
    |i(?:'m|\ am)\ (?:a\ )?(?:vegan|vegetarian|allergic))""",
    re.IGNORECASE | re.VERBOSE,
)
_CHINESE_WISH = re.compile(
    r"以后(?:都|请|别|不要|就|一律|[^。！？]{0,12}(?:一律|都|用))|今后|从现在(?:起|开始)|从今|每次(?:都|[^。！？]{0,10}(?:都|请|用|先|要))|一律"
    r"|请(?:一直|始终|永远)|(?:^|[，,。])(?:请)?(?:不要|别)(?:再)?(?:给我|用|说|安排|推荐|写)|回答(?:我|问题)|(?:的时候|时)(?:请|先|都|记得)"
)
_REQUEST = re.compile(
    r"""^(?:please\ |hey\ |ok\ |now\ |so\ |hi\ |hello\ |and\ )*(?:(?:can|could|would|will)\ (?:you|we)
    |how\ (?:do|should|can|could|would|to|might)|what\ (?:should|would|could|can|do\ you|is\ the\ best)
    |what\ are\ (?:some|the\ (?:best|different))|which\ [^?]{0,40}(?:should|would|are\ worth)
    |where\ (?:should|can|do\ you\ think)|when\ (?:can|should|could)|is\ [^?]{2,40}\ (?:good|worth|safe)
    |i(?:'m|\ am|'d|\ want|\ need|\ would)|let'?s|help|explain|write|draft|give|show|book|find|make|plan|compare|suggest
    |recommend|tell|send|set|call|clean|polish|sum|fix|order|create|translate|list\ some|describe\ how|prepare|check|add
    |build|design|generate|look|schedule|post)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_CHINESE_REQUEST = re.compile(
    r"^(?:请|麻烦)?你?(?:帮|给|写|比较|推荐|介绍|安排|解释|翻译|做一|看看|早上好|你好|订|总结|怎么|如何)|哪个好|帮(?:我|忙)|给我"
)


def asks_for_work(question: str) -> bool:
    """Whether something is to be done or advised, so that wishes may govern it; else something is only asked for."""
    return _REQUEST.search(question) is not None or _CHINESE_REQUEST.search(question) is not None


def is_wish(role: str, text: str) -> bool:
    """Whether a user's message says how something shall always, never or from now on be done."""
    if role != "user":
        return False
    start = text[:_MAX_READ_CHARACTERS]
    if _WISH.search(start):
        return True
    return not start.rstrip().endswith(("?", "？")) and _CHINESE_WISH.search(start) is not None


def likely_wishes(postings: Mapping[Term, Sequence[int]]) -> list[int]:
    """The messages that are worth reading: those with the rarest cue words, of equals the newest."""
    cues: dict[int, float] = {}
    for having in postings.values():
        for key in having:
            cues[key] = cues.get(key, 0.0) + 1 / len(having)
    return sorted(cues, key=lambda key: (-cues[key], -key))[:_MAX_READ]
