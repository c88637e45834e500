"""What was taken back or corrected is told as such, whoever writes the summary; the figures are in
docs/benchmarks/context.md.
"""

from __future__ import annotations

from hashlib import sha256

import pytest

from benchmarks.changed_minds import FOLDER, measure
from everthread.compaction.claims import check_claims
from everthread.compaction.compactor import CompactionOutcome
from everthread.compaction.extract import extract
from everthread.compaction.fact_ranking import facts_of_sources
from everthread.compaction.gate import Accepted, check_summary
from everthread.compaction.sources import Source
from everthread.compaction.summarise import SummaryFailure
from everthread.compaction.summary_format import Section, SummaryLine, parse_summary
from everthread.compaction.superseded import changed_by, mark_superseded, replaced_by
from everthread.context.tokens import count_tokens
from tests.compaction.spans import assistant, user

SMALL_TALK = [
    "the plumber fixed the boiler, invoice 2231, 180 EUR",
    "the school trip to the lake costs 45 EUR per child",
    "i need to print the tax form 2042 before may 20",
    "the neighbours complained about noise on sunday",
]


def _talk(*said: str) -> list[Source]:
    """What was said, with small talk after each and more at the end."""
    texts: list[str] = []
    for at, one in enumerate(said):
        texts += [one, SMALL_TALK[at % 4]]
    texts += [f"{SMALL_TALK[at % 4]} ({at})" for at in range(8)]
    return [
        source
        for at, text in enumerate(texts)
        for source in (user(2 * at + 1, text), assistant(2 * at + 2, "Noted, as you say."))
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("please always answer in short bullet points", "forget the bullet points, write normally again"),
        ("我吃素", "我现在又吃肉了"),
        ("我们的预算是3000欧元", "预算提高到3500欧元吧"),
        ("meeting with Deniz on Tuesday 10:00", "Deniz moved the meeting to Wednesday 14:00"),
        ("hotel for 4 nights in Annecy, check in 12 July", "hotel: make it 5 nights, check in 11 July instead"),
        ("call me Mrs. Abernathy please", "from now on call me Ruth"),
        ("always answer in Spanish", "you can answer in English again"),
        ("always answer in Spanish", "my boss says he can't read that, so please answer in English"),
        ("以后叫我小周", "还是叫我周先生吧"),
        ("出发日期是10月3号", "出发日期改成10月5号"),
        ("前端5月3号上线", "那就改到5月9号吧"),
        ("choir practice for the new piece is on 21 May", "they moved choir practice, it's now 28 May"),
        ("the kitchen budget is 5000 euros", "kitchen budget is 5600 euros now, my aunt chips in"),
        ("we rent 3 tents for the lake", "sorry, 2 tents for the lake, not 3"),
        ("dinner for 20 people at Osteria Nonna on 24 October", "dinner cancelled... she doesn't want a big thing"),
    ],
)
def test_what_was_taken_back_is_marked_and_what_took_it_back_is_told(before: str, after: str) -> None:
    text = extract(_talk(before, after), max_tokens=400, count_tokens=count_tokens)
    (line,) = (line for line in text.splitlines() if before in line)
    assert "(replaced by [#5])" in line or "（已被 [#5] 取代）" in line
    assert after in text


@pytest.mark.parametrize(
    ("section", "told", "later"),
    [
        ("decisions", "assistant: Shall I search? → user: yes pls", "assistant: Cancel 玉芝兰; family dinner at home"),
        ("standing", "user: never deploy to prod without asking me first", "freeze till monday, no prod deploy now"),
        ("standing", "user: Paul is vegetarian", "i eat meat again"),
        ("facts", "user: lunch with Deniz on Friday 12:00", "Deniz moved the review to Wednesday 14:00 in room 5?"),
        ("facts", "user: the boiler was repaired in June for 180 EUR", "we moved the party to 24 June"),
        ("decisions", "user: book the room for 24 June", "make it the room for 24 June"),
        ("decisions", "user: cancel the Osteria", "scrap the Osteria"),
        ("decisions", "user: the vet put us on the salmon food on monday, 80 g", "salmon food, 80 g instead"),
        ("standing", "user: Always answer in English.", "My colleague said: always answer in French."),
        ("standing", "user: Always answer in English.", "She told me to answer in French."),
        ("standing", "user: Always answer in English.", "My customers answer in German."),
        ("standing", "user: call me Bob", "My friends call me Bo"),
        ("standing", "用户：叫我小周", "我男朋友叫我小猪"),
        ("standing", "用户：以后都用中文回答我", "我同事说：以后都用法语回答。"),
        ("standing", "用户：以后都用中文回答我", "我女朋友说法语"),
        ("standing", "用户：我吃素", "我女朋友现在吃肉了"),
        ("decisions", "用户：冰箱换成300升的", "冰箱15号又送不了"),
        ("facts", "用户：张伟请假到5月3号", "前端上线改到5月9号"),
        ("facts", "用户：张伟请假到5月3号", "评审改到5月9号"),
        ("facts", "用户：出发日期是10月3号", "回程日期改到13号"),
        ("decisions", "用户：预算总共20000元", "房租涨到3000元"),
        (
            "decisions",
            "用户：出发日期改成10月5号，3号我要开会。",
            "去丽江两天，10月8到10月9，玉龙雪山就不去了，爸爸怕高反。",
        ),
        ("facts", "用户：冰箱还没送到", "冰箱能换成300升的吗"),
    ],
)
def test_what_still_holds_is_not_marked(section: Section, told: str, later: str) -> None:
    line = SummaryLine(section=section, text=told, first_seq=1, last_seq=1)
    assert mark_superseded([line], [(9, later)], "en") == [line]


@pytest.mark.parametrize(
    ("told", "meant", "later"),
    [
        ("swimming class on Monday at 9", "drawing class on Monday at 5", "drawing class moved from Monday to Sunday"),
        ("the band gets 900 euros", "the hall costs 900 euros", "the hall is 1,100 euros now, not 900 euros"),
        ("dad takes the 7:40 bus", "aunt Ines takes the 7:40 ferry", "the ferry is at 8:20 now, not 7:40"),
        ("ticket 8812 goes to Ana", "ticket 8820 goes to Ana", "give 8820 to Piet instead of Ana"),
        ("rent is 90 euros", "power is 90 euros", "power is 110 euros now, not 90 euros, rent stays"),
        ("周一上午游泳课", "周一下午美术课", "美术课从周一改到周日了"),
        ("场地费9000元", "乐队费用9000元", "乐队费用降到7000元了"),
        ("zoom call 和 Ana 在 3月2号", "zoom call 和 Piet 在 3月2号", "和 Piet 的 zoom call 挪到 3月6号"),
    ],
)
@pytest.mark.parametrize("is_told", [True, False])
def test_a_change_marks_what_it_is_about_and_nothing_else_of_the_same_day_or_amount(
    told: str, meant: str, later: str, is_told: bool
) -> None:
    lines = [
        SummaryLine(section="decisions", text=f"user: {text}", first_seq=seq, last_seq=seq)
        for seq, text in ((1, told), (3, meant))
    ]
    said = {1: told, 3: meant}
    marked = mark_superseded(lines if is_told else lines[:1], [(5, later)], "en", said)
    assert ["[#5]" in line.text for line in marked] == [False, True][: len(marked)]


@pytest.mark.parametrize(
    ("told", "later", "mark"),
    [
        ("booked the movers, 14 may, two men, 300 euros", "the 14th is off, the movers come on the 15th", "in part"),
        ("booked the movers, 14 may", "the 14th is off, the movers come on the 15th", "replaced"),
        ("zelt für 3 nächte, 20 euros", "scrap the zelt", "replaced"),
        ("Ana 出4万，Piet 出2万", "更新：Ana 加到6万", "in part"),
        ("婚礼预算20万，请80位客人", "婚礼预算提高到25万吧", "in part"),
        ("We decided to go to Dali by train, no flights.", "Not Dali any more, Lijiang instead.", "in part"),
        ("我们决定六月坐火车去大理，不坐飞机。", "不去大理了，改去丽江。", "in part"),
        ("We decided to go to Dali, because Tom lives there.", "Not Dali any more, Lijiang instead.", "replaced"),
    ],
)
def test_of_a_line_that_tells_more_than_was_changed_only_a_part_is_said_to_have_changed(
    told: str, later: str, mark: str
) -> None:
    line = SummaryLine(section="decisions", text=f"user: {told}", first_seq=1, last_seq=1)
    (marked,) = mark_superseded([line], [(5, later)], "en")
    assert mark in marked.text
    assert changed_by(marked) == (5,)
    assert replaced_by(marked) == (5 if mark == "replaced" else None)


@pytest.mark.parametrize("later", ["if Bo forgets it again i move to the moon", "如果下雨就改到周日"])
def test_what_would_be_replaces_nothing(later: str) -> None:
    line = SummaryLine(
        section="decisions", text="user: Bo: bring it on 周六 to the moon party", first_seq=1, last_seq=1
    )
    assert mark_superseded([line], [(5, later)], "en") == [line]


@pytest.mark.parametrize("order", [1, -1])
def test_a_change_that_may_mean_either_of_two_things_marks_neither(order: int) -> None:
    lines = [
        SummaryLine(section="decisions", text=f"user: {text}", first_seq=seq, last_seq=seq)
        for seq, text in ((1, "the plumber comes on the 20th"), (3, "the museum visit is on the 20th"))
    ]
    assert mark_superseded(lines[::order], [(30, "the 20th is off, take the 25th")], "en") == lines[::order]


@pytest.mark.parametrize(
    ("told", "later"),
    [
        ("booked the movers, 14 may, two men", "movers called, 14th doesnt work for them, its the 15th now"),
        ("table at Nonna on the 3rd", "nonna is full on the 3rd, they put us on the 4th"),
        ("tom brings the ladder on tuesday", "tom can only do thursday, not tuesday"),
        ("the cat gets 3 drops a day", "vet says the cat needs 2 drops now, not 3"),
        ("lecture is in room 12", "lecture moved to room 40"),
        ("订30把雨伞", "雨伞改成50把"),
        ("gas bill paid, 88.20", "gas corrected: 82.20, misread it"),
        ("sunday 9 august, forty people", "the hall has moved us: a fair takes the 9th so we get the 16th"),
        ("coach leaves at 5.15", "coach leaves at 5.45, not 5.15"),
        ("title starts with OAK-41", "wrong ticket, its OAK-14"),
        ("Ines 出4万", "更新：Ines 加到6万"),
        ("web release 是4月2号", "web 那边没测完，delay 到 4月9号"),
    ],
)
def test_a_correction_is_told_by_more_turns_of_phrase(told: str, later: str) -> None:
    line = SummaryLine(section="decisions", text=f"user: {told}", first_seq=1, last_seq=1)
    assert "[#5]" in mark_superseded([line], [(5, later)], "en")[0].text


@pytest.mark.parametrize(
    "word", ["assistant", "user", "decided", "decision", "cancelled", "moved", "actually", "Tuesday", "euros", "July"]
)
def test_no_two_statements_are_about_the_same_by_words_that_name_no_subject(word: str) -> None:
    line = SummaryLine(section="decisions", text=f"{word}: the boiler", first_seq=1, last_seq=1)
    assert mark_superseded([line], [(9, f"{word} instead: a tent")], "en") == [line]
    about_boiler = mark_superseded([line], [(9, f"{word} instead: a tent, not the boiler")], "en")
    assert "[#9]" in about_boiler[0].text


def _of_model(prose: str, sources: list[Source]) -> Accepted:
    judged = check_summary(
        prose,
        sources,
        facts_of_sources(sources),
        count_tokens=count_tokens,
        source_tokens=2_000,
        max_tokens=1_000,
        by_model=True,
    )
    assert isinstance(judged, Accepted)
    return judged


def test_a_models_line_about_a_cancelled_order_stands_and_the_order_is_not_put_back() -> None:
    talk = _talk("please always answer in short bullet points", "forget the bullet points, write normally again")
    told = "- The user no longer wants bullet points; write normal prose [#5]"
    judged = _of_model(f"## Keep in mind\n{told}\n## Facts\n- The school trip to the lake costs 45 EUR [#7]", talk)
    assert judged.struck == ()
    assert told in judged.text
    assert "please always answer in short bullet points" not in judged.text


def test_what_cancels_an_order_is_put_back_where_a_model_leaves_it_out() -> None:
    talk = _talk("please always answer in short bullet points", "forget the bullet points, write normally again")
    judged = _of_model("## Facts\n- The school trip to the lake costs 45 EUR per child, as was said [#7]", talk)
    assert "- forget the bullet points, write normally again [#5]" in judged.text
    assert "please always answer in short bullet points" not in judged.text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("hotel: make it 5 nights, check in 11 July instead", "Hotel: 5 nights, check-in 11 July"),
        ("use 3 replicas instead of 2", "The service runs with 3 replicas"),
        ("take dark grey rather than white for the worktop", "The worktop is dark grey"),
        ("forget the bullet points, write normally", "Do not use bullet points any more"),
        ("no more French in the letters", "French is not wanted in the letters"),
        ("台面用深灰色而不是白色", "台面用深灰色"),
    ],
)
def test_a_correction_denies_only_what_it_takes_back(said: str, told: str) -> None:
    assert check_claims(f"- {told} [#1]", [user(1, said)]).struck == ()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("the plumber fixed the boiler, 180 EUR", "Paul paid the plumber 180 EUR"),
        ("the plumber fixed the boiler, 180 EUR", "Marcel, the plumber, fixed the boiler for 180 EUR"),
        ("the plumber fixed the boiler, 180 EUR", "Sandra Bell reported that the boiler was fixed"),
        ("修暖气花了180元", "张伟付了180元修暖气"),
        ("forget the bullet points, write normally", "The user still wants bullet points in all answers"),
    ],
)
def test_a_name_that_nobody_said_is_struck_at_the_start_of_a_sentence_too(said: str, told: str) -> None:
    assert len(check_claims(f"- {told} [#1]", [user(1, said)]).struck) == 1


@pytest.mark.parametrize(
    "told",
    [
        "Management decided to fix the boiler for 180 EUR",
        "Repairs, the user said, cost 180 EUR",
        "Tenants asked for the boiler to be fixed",
        "Ruth paid the plumber 180 EUR",
    ],
)
def test_who_opens_a_sentence_without_a_name_or_speaks_is_not_invented(told: str) -> None:
    said = [Source(seq=1, role="user", name="Ruth", text="the plumber fixed the boiler, i paid 180 EUR")]
    assert [one for one in check_claims(f"- {told} [#1]", said).struck if one.reason == "name"] == []


def test_what_something_was_changed_from_may_have_been_said_long_before() -> None:
    talk = [user(1, "周二上午十点和陈总开会"), *(user(seq, "今天天气不错，出去走走。") for seq in range(2, 9))]
    talk.append(user(9, "陈总把会改到周三下午两点了"))
    assert check_claims("- 会议从周二改到了周三 [#9]", talk).struck == ()
    assert [one.reason for one in check_claims("- 会议从周五改到了周三 [#9]", talk).struck] == ["date"]


@pytest.mark.parametrize(("stage", "failed"), [("model-terse", True), ("extract", False)])
def test_only_a_models_failure_counts_as_one(stage: str, failed: bool) -> None:
    outcome = CompactionOutcome(compacted=False, failures=(SummaryFailure(stage=stage, reason="timeout: 5 s"),))
    assert outcome.model_failed is failed


@pytest.mark.parametrize(("language", "struck", "caught", "marked"), [("en", 7, 81, 70), ("zh", 6, 90, 83)])
def test_conversations_that_change_their_mind_are_told_as_published(
    language: str, struck: int, caught: int, marked: int
) -> None:
    row = measure("sealed", language)
    assert row["struck %"] <= struck
    assert row["caught %"] >= caught
    assert row["marked %"] >= marked
    assert row["wrongly marked %"] == 0


@pytest.mark.parametrize(
    ("half", "language", "marked"),
    [
        ("near_sealed", "en", 100),
        ("near_sealed", "zh", 50),
        ("near_sealed", "mixed", 66),
        ("near_open", "en", 100),
        ("near_open", "zh", 78),
        ("near_open", "mixed", 100),
    ],
)
def test_of_two_things_alike_the_one_that_was_changed_is_marked_as_published(
    half: str, language: str, marked: int
) -> None:
    row = measure(half, language)
    assert row["marked %"] >= marked
    assert row["wrongly marked %"] == 0


def test_the_sealed_conversations_are_those_that_were_sealed() -> None:
    for line in (FOLDER / "sealed.sha256").read_text("utf-8").splitlines():
        sealed, name = line.split()
        assert sha256((FOLDER / name).read_bytes()).hexdigest() == sealed


@pytest.mark.parametrize(
    ("order", "back"),
    [
        ("never use emojis", "emojis are fine again 😀"),
        ("never use emojis", "haha ok emojis are fine again"),
        ("never use emojis", "emojis are fine again, ok?"),
        ("never use emojis", "嗯 emojis are fine again哈哈"),
        ("Always answer in bullet points.", "no more bullet points 🙏"),
        ("以后都用中文回答我", "换回英文吧😀"),
        ("From now on use metric units", "imperial units again please lol"),
    ],
)
def test_an_order_is_ended_whatever_is_typed_around_its_end(order: str, back: str) -> None:
    asked = [
        one
        for at in range(20)
        for one in (
            user(2 * at + 3 + (2 if at > 9 else 0), f"Question {at} about part P-{at * 37}: price?"),
            assistant(2 * at + 4 + (2 if at > 9 else 0), f"P-{at * 37} costs {at * 3 + 1} EUR"),
        )
    ]
    talk = [user(1, order), assistant(2, "ok"), *asked[:20], user(23, back), assistant(24, "ok"), *asked[20:]]
    lines = parse_summary(extract(talk, max_tokens=400, count_tokens=count_tokens))
    told = {line.first_seq: line for line in lines if isinstance(line, SummaryLine)}
    assert back in told[23].text
    assert 1 not in told or replaced_by(told[1]) == 23


TOLD_TWO_THINGS = "Our warehouse is in Rotterdam, Dock 14. Budget for the relocation is 48,000 EUR."
MOVES = "Change of plan: not Rotterdam any more, we move the warehouse to Antwerp, Quay 7."
COSTS_MORE = "the CFO says the relocation budget is now 55,500 EUR instead of 48,000"


@pytest.mark.parametrize("at_once", [True, False])
def test_a_line_of_which_two_messages_changed_a_part_each_names_both(at_once: bool) -> None:
    lines = [SummaryLine(section="facts", text=f"user: {TOLD_TWO_THINGS}", first_seq=1, last_seq=1)]
    if at_once:
        (marked,) = mark_superseded(lines, [(5, MOVES), (9, COSTS_MORE)], "en")
    else:
        (marked,) = mark_superseded(mark_superseded(lines, [(5, MOVES)], "en"), [(5, MOVES), (9, COSTS_MORE)], "en")
    assert marked.text == f"user: {TOLD_TWO_THINGS} (changed in part by [#5], [#9])"
    assert changed_by(marked) == (5, 9)


def test_what_changed_the_same_part_again_is_named_alone() -> None:
    lines = [SummaryLine(section="facts", text=f"user: {TOLD_TWO_THINGS}", first_seq=1, last_seq=1)]
    more = COSTS_MORE.replace("55,500", "60,000")
    (marked,) = mark_superseded(lines, [(5, COSTS_MORE), (9, more)], "en")
    assert changed_by(marked) == (9,)
