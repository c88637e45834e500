"""The rest of the conversation that `everthread demo --load` keeps for the page: what the family asked once the route
stood, stop by stop; the errand of a subagent; and a question that was asked anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from everthread.demo.story import STOPS, Stop, Turn

ERRAND: Final = "Compare three quiet guesthouses in Chengdu, close to a park, for four people and four nights."
ERRAND_RESULT: Final = (
    "By People's Park: 412 CNY a night, two rooms, breakfast without nuts, 6 minutes to the tea house."
)
ERRAND_TURNS: Final = (
    Turn(
        question=ERRAND,
        calls=[("guide", {"town": "Chengdu"}), ("guide", {"town": "People's Park"}), ("guide", {"town": "Wenshu"})],
        thinking="Three parts of the town come into question: People's Park, Wenshu, and the river.",
        answer="Wenshu is lively until eleven. The river is quiet but far. People's Park has the tea houses.",
    ),
    Turn(
        question="Breakfast without nuts is a must; what do they cost?",
        calls=[("note", {"text": "Chengdu: by People's Park, 412 CNY a night, breakfast without nuts"})],
        answer=ERRAND_RESULT,
    ),
)

ALLERGY: Final = "Grandmother has a peanut allergy: no nuts in any meal."
"""What is remembered of it all, beside the log."""

ASKED_ANEW: Final = "Can one walk along the lake instead?"
ANSWERED_ANEW: Final = "From Caicun to the wetland it is an hour on wooden paths, flat, with benches in the shade."
"""The other answer about Dali, on a branch of its own."""


CLOSING: Final = (
    ("What is the reference of the guesthouse in Kunming?", "QX-4417-PLUM, and it is paid for."),
    ("奶奶坐车、吃饭有什么要注意的？", "她坐长途汽车会晕车，所以只坐火车；她对花生过敏，饭菜里不要坚果。"),
    ("Is anything left to book?", "The room by People's Park in Chengdu, 412 CNY a night. All else is noted."),
)
"""Asked of the agent itself at the end, so that there are requests to look into."""


def turns_after() -> Iterator[Turn]:
    """Three turns for each stop: packing, money, and a line for the diary."""
    for place, stop in enumerate(STOPS, 1):
        yield from _afterwards(stop, place)


def _afterwards(stop: Stop, place: int) -> Iterator[Turn]:
    spent = 180 + 35 * place * stop.nights
    nights = "1 night" if stop.nights == 1 else f"{stop.nights} nights"
    yield Turn(
        question=f"What do we pack for {stop.town}, if it rains?",
        calls=[("forecast", {"town": stop.town, "month": "October"})],
        answer=f"Four light raincoats and the blue bag; in {stop.town} the rain comes in the afternoon and goes.",
    )
    yield Turn(
        question=f"{stop.chinese}我们花了 {spent} 元，记一下。",
        calls=[("note", {"text": f"{stop.chinese}：花费 {spent} 元"})],
        answer=f"记下了：{stop.chinese} {spent} 元。",
    )
    yield Turn(
        question=f"A line for the diary about {stop.town}, please.",
        answer=f"Day of stop {place}: {stop.town}, {nights}. {stop.sight_answer}",
    )
