"""English verbs whose forms share no stem: who asks where somebody *went* may have said *go*.

Verbs that say next to nothing by themselves (get, give, make, take, say, tell, think, know) are left as they are.
"""

from __future__ import annotations

from functools import cache

from everthread.core.queries import Term
from everthread.text.words import stem

_VERBS = """
    become became, begin began begun, bend bent, bite bit bitten, bleed bled, blow blew blown, break broke broken,
    breed bred, bring brought, build built, buy bought, catch caught, choose chose chosen, come came, creep crept,
    deal dealt, dig dug, draw drew drawn, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen,
    feed fed, feel felt, fight fought, find found, fly flew flown, forget forgot forgotten, forgive forgave
    forgiven, freeze froze frozen, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold
    held, keep kept, lay laid, lead led, leave left, lend lent, lie lay lain, light lit, lose lost, meet met, pay
    paid, ride rode ridden, ring rang rung, rise rose risen, run ran, see saw seen, seek sought, sell sold, send
    sent, shake shook shaken, shoot shot, show shown, sing sang sung, sink sank sunk, sit sat, sleep slept, slide
    slid, speak spoke spoken, speed sped, spend spent, spin spun, stand stood, steal stole stolen, stick stuck,
    sting stung, strike struck, swear swore sworn, sweep swept, swim swam swum, swing swung, teach taught, tear
    tore torn, throw threw thrown, understand understood, wake woke woken, wear wore worn, weep wept, win won,
    wind wound, write wrote written
"""


def other_forms(term: Term) -> tuple[Term, ...]:
    """The other forms of a verb, as the index has them; none of any other word."""
    return () if term.is_prefix else _others().get(term.token, ())


@cache
def _others() -> dict[str, tuple[Term, ...]]:
    found: dict[str, tuple[Term, ...]] = {}
    for verb in _VERBS.split(","):
        forms = dict.fromkeys(map(stem, verb.split()))
        for form in forms:
            found[form] = (*found.get(form, ()), *(Term(token=other) for other in forms if other != form))
    return found
