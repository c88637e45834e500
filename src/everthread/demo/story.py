"""The conversation that the demo holds: a family plans a slow journey by train through the southwest of China.

Its first turns mention three things that matter in the end and that no later turn repeats. `everthread demo --load`
stores a longer version: more turns for each stop, a subagent's task, and a question asked again on a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryTurn:
    """A question, what the model looks up for it, and its answer."""

    question: str
    calls: Sequence[Call] = ()
    """Looked up in one go, in parallel."""
    then: Sequence[Call] = ()
    """Looked up after that."""
    answer: str
    thinking: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A town on the way and what is said about it."""

    town: str
    chinese: str
    nights: int
    sight: str
    sight_answer: str
    question: str
    """Something asked in Chinese."""
    answer: str


SEARCHES: Final = ("peanut allergy", "guesthouse reference", "晕车")
"""Questions about things said at the very beginning, which nobody should have to repeat."""
OPENING: Final = (
    StoryTurn(
        question="We are four: two adults, our son, and a grandmother with a peanut allergy. Slow trains, in October.",
        calls=[("note", {"text": "peanut allergy: grandmother; ask in every restaurant"})],
        thinking="The allergy matters for every meal of the journey. I should write it down before anything else.",
        answer="Four travellers, slow trains, October. I wrote the allergy down and will ask in every restaurant.",
    ),
    StoryTurn(
        question="奶奶坐长途汽车会晕车，所以我们只坐火车，座位最好靠窗。",
        calls=[("note", {"text": "奶奶会晕车：只坐火车，靠窗的座位"})],
        answer="好的，记下了：奶奶会晕车，全程只坐火车，尽量选靠窗的座位。",
    ),
    StoryTurn(
        question="The guesthouse in Kunming is paid for; its reference is QX-4417-PLUM. Please keep it for me.",
        calls=[("note", {"text": "guesthouse reference in Kunming: QX-4417-PLUM, paid"})],
        answer="Kept: the guesthouse in Kunming, reference QX-4417-PLUM, already paid.",
    ),
    StoryTurn(
        question="What can you look up for us?",
        answer="Trains, the weather of past years, and what my guide says about a town. And I can keep notes.",
    ),
)
STOPS: Final = (
    Stop(
        town="Kunming", chinese="昆明", nights=3,
        sight="What would a boy of nine like there?",
        sight_answer="The gulls on Green Lake are not back before November, but the stone forest is a day well spent.",
        question="昆明的过桥米线哪里比较清淡？",
        answer="翠湖边的老店汤底清淡，可以让店家少放油。",
    ),
    Stop(
        town="Dali", chinese="大理", nights=3,
        sight="Can one cycle around the lake?",
        sight_answer="All of it is 120 km, too far with a child; the western shore up to Xizhou is flat and short.",
        question="大理古城晚上吵不吵？",
        answer="人民路一带比较吵，住在才村或者喜洲会安静很多。",
    ),
    Stop(
        town="Lijiang", chinese="丽江", nights=2,
        sight="Is the old town worth it, with all the shops?",
        sight_answer="Go before eight in the morning: the canals are quiet, and the Zhongyi market is for the locals.",
        question="丽江海拔高，老人需要注意什么？",
        answer="两千四百米左右，头两天走慢一点，多喝水，不要马上去雪山。",
    ),
    Stop(
        town="Panzhihua", chinese="攀枝花", nights=1,
        sight="Why does the slow train stop there for so long?",
        sight_answer="Engines are changed before the climb. There is time to walk along the platform and buy mangoes.",
        question="攀枝花火车站附近有什么可以散步的地方？",
        answer="站前可以看到金沙江大桥，沿江有一段新修的步道。",
    ),
    Stop(
        town="Xichang", chinese="西昌", nights=2,
        sight="Can we see a rocket there?",
        sight_answer="The launch site opens for visitors on days without a launch; passports are needed a week before.",
        question="邛海边骑车一圈要多久？",
        answer="一圈大约三十五公里，慢慢骑四个小时，可以只骑湿地公园那一段。",
    ),
    Stop(
        town="Leshan", chinese="乐山", nights=1,
        sight="Boat or stairs for the Giant Buddha?",
        sight_answer="The boat: twenty minutes, and all of him at once. The stairs are steep and the queue is long.",
        question="乐山的钵钵鸡辣吗？",
        answer="可以点藤椒的，麻多辣少，孩子也能吃一点。",
    ),
    Stop(
        town="Chengdu", chinese="成都", nights=4,
        sight="When are the pandas awake?",
        sight_answer="From eight to ten in the morning, when they are fed; after that most of them sleep.",
        question="成都人民公园的茶馆怎么点茶？",
        answer="坐下以后说要什么茶，一般是盖碗茶，续水不要钱。",
    ),
    Stop(
        town="Langzhong", chinese="阆中", nights=2,
        sight="What is there that Chengdu does not have?",
        sight_answer="A town on a bend of the river that was not rebuilt, and vinegar to bathe your feet in.",
        question="阆中古城要不要门票？",
        answer="进古城不要钱，贡院、华光楼这些景点要买联票。",
    ),
    Stop(
        town="Guangyuan", chinese="广元", nights=1,
        sight="Is an hour enough for the cliff grottoes?",
        sight_answer="Two are better: the Thousand Buddha cliff is ten minutes by taxi from the station.",
        question="广元站换车时间四十分钟够吗？",
        answer="同站换乘够了，不用出站，跟着换乘的指示走。",
    ),
    Stop(
        town="Zunyi", chinese="遵义", nights=1,
        sight="Is there anything for a rainy afternoon?",
        sight_answer="The conference museum, and next to it a street where rice cakes are pounded by hand.",
        question="遵义羊肉粉早上几点开始卖？",
        answer="很多店六点就开门，九点以后好的部位就卖完了。",
    ),
    Stop(
        town="Guiyang", chinese="贵阳", nights=2,
        sight="Where do people go in the evening?",
        sight_answer="To Jiaxiu tower, when its lights come on, and then to the night market at Qingyun road.",
        question="贵阳的酸汤鱼酸还是辣？",
        answer="以酸为主，番茄和米酸发酵的，可以要一份不辣的锅底。",
    ),
)  # fmt: skip


def turns() -> Iterator[StoryTurn]:
    """The whole conversation: the opening, then five turns for each stop."""
    yield from OPENING
    before = "Shanghai"
    for number, stop in enumerate(STOPS, 1):
        yield from _turns_about(stop, before, number)
        before = stop.town
    yield _last(before)


def _turns_about(stop: Stop, before: str, number: int) -> Iterator[StoryTurn]:
    yield StoryTurn(
        question=f"How do we get from {before} to {stop.town}?",
        calls=[("find_train", {"origin": before, "destination": stop.town, "kind": kind}) for kind in ("slow", "fast")],
        answer=f"There is a slow one and a fast one to {stop.town}; the slow one costs less and takes the valley.",
        thinking=f"They prefer slow trains, but to compare I should look up both to {stop.town}.",
    )
    yield StoryTurn(
        question="The slow one, please, and tell me what to wear.",
        calls=[("forecast", {"town": stop.town, "month": "October"})],
        then=[("note", {"text": f"stop {number}: {stop.town}, slow train, {_nights(stop)}"})],
        answer=f"Booked in the plan as stop {number}. Bring a jacket for the evenings in {stop.town}.",
    )
    yield StoryTurn(question=stop.sight, calls=[("guide", {"town": stop.town})], answer=stop.sight_answer)
    yield StoryTurn(
        question=stop.question,
        calls=[("forecast", {"town": stop.chinese, "month": "十月"})],
        answer=stop.answer,
    )
    yield StoryTurn(
        question="ok",
        answer=f"Then {stop.town} is settled. On we go.",
    )


def _nights(stop: Stop) -> str:
    return "1 night" if stop.nights == 1 else f"{stop.nights} nights"


def _last(town: str) -> StoryTurn:
    return StoryTurn(
        question="And how do we get home?",
        calls=[
            ("find_train", {"origin": town, "destination": "Shanghai", "kind": "fast"}),
            ("forecast", {"town": "Shanghai", "month": "November"}),
        ],
        then=[("note", {"text": f"home: {town} to Shanghai"})],
        answer="By the fast train on the last day; you are home in the evening. A good journey to all four of you.",
    )


SUBAGENT_TASK: Final = "Compare three quiet guesthouses in Chengdu, close to a park, for four people and four nights."
SUBAGENT_RESULT: Final = (
    "By People's Park: 412 CNY a night, two rooms, breakfast without nuts, 6 minutes to the tea house."
)
SUBAGENT_TURNS: Final = (
    StoryTurn(
        question=SUBAGENT_TASK,
        calls=[("guide", {"town": "Chengdu"}), ("guide", {"town": "People's Park"}), ("guide", {"town": "Wenshu"})],
        thinking="Three parts of the town come into question: People's Park, Wenshu, and the river.",
        answer="Wenshu is lively until eleven. The river is quiet but far. People's Park has the tea houses.",
    ),
    StoryTurn(
        question="Breakfast without nuts is a must; what do they cost?",
        calls=[("note", {"text": "Chengdu: by People's Park, 412 CNY a night, breakfast without nuts"})],
        answer=SUBAGENT_RESULT,
    ),
)
ALLERGY: Final = "Grandmother has a peanut allergy: no nuts in any meal."
"""What is remembered of it all, beside the log."""
EDITED_QUESTION: Final = "Can one walk along the lake instead?"
EDITED_ANSWER: Final = "From Caicun to the wetland it is an hour on wooden paths, flat, with benches in the shade."
"""The other answer about Dali, on a branch of its own."""
CLOSING: Final = (
    ("What is the reference of the guesthouse in Kunming?", "QX-4417-PLUM, and it is paid for."),
    ("奶奶坐车、吃饭有什么要注意的？", "她坐长途汽车会晕车，所以只坐火车；她对花生过敏，饭菜里不要坚果。"),
    ("What does the place by People's Park cost a night?", "412 CNY for two rooms, with a breakfast without nuts."),
)
"""Asked of the agent itself at the end, so that there are requests to look into."""


def more_turns() -> Iterator[StoryTurn]:
    """Three turns for each stop: packing, money, and a line for the diary."""
    for number, stop in enumerate(STOPS, 1):
        yield from _more_turns_about(stop, number)


def _more_turns_about(stop: Stop, number: int) -> Iterator[StoryTurn]:
    spent = 180 + 35 * number * stop.nights
    yield StoryTurn(
        question=f"What do we pack for {stop.town}, if it rains?",
        calls=[("forecast", {"town": stop.town, "month": "October"})],
        answer=f"Four light raincoats and the blue bag; in {stop.town} the rain comes in the afternoon and goes.",
    )
    yield StoryTurn(
        question=f"{stop.chinese}我们花了 {spent} 元，记一下。",
        calls=[("note", {"text": f"{stop.chinese}：花费 {spent} 元"})],
        answer=f"记下了：{stop.chinese} {spent} 元。",
    )
    yield StoryTurn(
        question=f"A line for the diary about {stop.town}, please.",
        answer=f"Day of stop {number}: {stop.town}, {_nights(stop)}. {stop.sight_answer}",
    )
