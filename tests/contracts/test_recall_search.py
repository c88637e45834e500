"""Finding the old again, through the conversation's own verbs, on every store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everthread import Conversation, Everthread, Invalid
from everthread.context.tokens import count_tokens
from everthread.core.entries import seq_of
from everthread.core.nouns import Ref
from everthread.core.queries import Term
from everthread.recall.candidates import NEIGHBOUR_REACH
from everthread.recall.search import RecallServices, recall
from tests.contracts.message_helpers import says
from tests.contracts.views import text_of

MONDAY = datetime(2026, 4, 6, 9, tzinfo=UTC)


def said(text: str, *, role: str = "user", at: datetime | None = None, **more: Any) -> Mapping[str, Any]:
    when = {} if at is None else {"created_at": at.isoformat()}
    return {"role": role, "content": text, **when, **more}


async def chatter(conv: Conversation, turns: int, topic: str = "garden") -> None:
    """Turns about something else."""
    messages = [
        one
        for turn in range(turns)
        for one in (
            said(f"And what of the {topic} in week {turn}?"),
            said(f"In week {turn} the {topic} needs water and some patience.", role="assistant"),
        )
    ]
    await conv.append(messages)


async def test_who_was_that_director_again_said_ten_turns_and_two_hundred_messages_ago(conv: Conversation) -> None:
    """By name from the fifth paper."""
    await conv.append(
        [
            said("I watched Arrival yesterday, the one with the circular alien writing. Who made it?"),
            said("Arrival was directed by Denis Villeneuve; he also made Dune.", role="assistant"),
        ]
    )
    await chatter(conv, 100)
    for question in ("Who was that director again?", "who directed the alien film"):
        hits = await conv.recall(question)
        assert "Denis Villeneuve" in " ".join(hit.text for hit in hits[:3])
    await conv.append([said("Who was that director again?")])
    context = await conv.context(query="Who was that director again?")
    assert "Denis Villeneuve" in text_of(context)
    assert context.messages[-1]["content"] == "Who was that director again?"


async def test_back_to_the_science_fiction_films_we_talked_about(conv: Conversation) -> None:
    """By name from the fifth paper: several messages of one talk come back, in the order they were said."""
    await chatter(conv, 10, "kitchen")
    await conv.append(
        [
            said("Which science-fiction films should I see?"),
            said("Start with Solaris, then Stalker; both films are by Tarkovsky.", role="assistant"),
            said("I liked Solaris. Another science-fiction film like it?"),
            said("Then try Moon, a quiet film with Sam Rockwell.", role="assistant"),
        ]
    )
    await chatter(conv, 60)
    question = "Back to the science-fiction films we talked about"
    await conv.append([said(question)])
    shown = text_of(await conv.context(query=question))
    assert 0 < shown.index("Solaris, then Stalker") < shown.index("try Moon") < shown.rindex(question)


async def test_chinese_is_found_by_other_words_for_the_same(conv: Conversation) -> None:
    await conv.append([said("我们在大阪订了一家带浴缸的酒店，一晚八百"), said("好的，记下了", role="assistant")])
    await chatter(conv, 30)
    hits = await conv.recall("大阪的住处多少钱一晚？")
    assert hits[0].seqs == (1,)


async def test_the_words_of_asking_find_nothing(conv: Conversation) -> None:
    await conv.append(
        [
            said("our flight leaves on 18 October at 10:25"),
            said("this list gets long"),
            said("the hotel in Lyon is booked"),
            said("sandbox ordered too"),
            said("leo hates clowns. Pipo, same time as before"),
        ]
    )
    for question, word, instead in (
        ("航班什么时候出发?", "flight", "time"),
        ("What time does the flight leave?", "flight", "time"),
        ("list all bookings", "booked", "list"),
        ("Which hotels did we book, in order?", "hotel", "order"),
    ):
        hits = await conv.recall(question)
        assert word in hits[0].words
        assert not any(instead in hit.words for hit in hits)


async def test_a_question_that_was_just_asked_is_not_its_own_answer(conv: Conversation) -> None:
    question = "When does the harbour open?"
    await conv.append([said("The harbour opens at six."), said("Noted.", role="assistant"), said(question)])
    for called in ([], [said("I look it up.", role="assistant")]):
        await conv.append(called)
        (hit,) = await conv.recall(question, limit=1)
        assert hit.text == "The harbour opens at six."
    assert question in [hit.text for hit in await conv.recall("When will the harbour open?")]
    await conv.append([said("And the lighthouse?")])
    assert question in [hit.text for hit in await conv.recall(question)], "it is not the newest any more"


async def test_a_hit_says_where_it_is_from(conv: Conversation) -> None:
    (receipt,) = await conv.append([said("The harbour opens at six.", at=MONDAY, name="Ann")])
    (hit,) = await conv.recall("When does the harbour open?")
    assert (hit.ids, hit.seqs, hit.said_at) == ((receipt.id,), (1,), MONDAY)
    assert (hit.text, hit.speaker, hit.is_passage) == ("The harbour opens at six.", "Ann", False)
    assert hit.conversation_id == conv.id
    assert hit.score > 0


async def test_the_tags_that_a_program_wraps_its_text_in_are_no_words(conv: Conversation) -> None:
    command = "<command-message>init is analysing your code</command-message>\n<command-name>/init</command-name>"
    await conv.append(
        [said(command), said("On it.", role="assistant"), said("The login sets a cookie called sid_v2, signed.")]
    )
    hits = await conv.recall("What was the name of the login cookie?")
    assert "sid_v2" in hits[0].text
    assert all("name" not in hit.words for hit in hits)
    assert (await conv.recall("init command"))[0].text == command  # what stands in the tags is found


async def test_what_a_named_speaker_said_is_found_without_another_word_of_the_question(conv: Conversation) -> None:
    others = ("Bob", "Cleo", "Dan")
    talk = [said(f"Something else, number {at}", name=others[at % 3]) for at in range(60)]
    await conv.append([*talk[:20], said("the tent stood in the cellar", name="Bob"), *talk[20:30]])
    await conv.append([said("It leaks at the seam", name="Ann"), *talk[30:], said("Running late", name="Ann")])
    found = [hit.text for hit in await conv.recall("What did Ann say of the tent?", limit=25)]
    assert found[0] == "the tent stood in the cellar"
    assert {"It leaks at the seam", "Running late"} <= set(found)
    named_alone = [hit.speaker for hit in await conv.recall("And what about Ann?", limit=2)]
    assert named_alone == ["Ann", "Ann"]
    assert [hit.speaker for hit in await conv.recall("What did Zoe say of the tent?", limit=1)] == ["Bob"]


async def test_the_newest_word_of_a_named_speaker_is_found_behind_entries_without_words(conv: Conversation) -> None:
    """Deletions are entries that no word leads to, so that the last seq is not the number of messages with words."""
    others = ("Bob", "Cleo", "Dan")
    await conv.append([said(f"Something else, number {at}", id=f"m{at}", name=others[at % 3]) for at in range(60)])
    for at in range(40):
        await conv.delete_message(f"m{at}")
    await conv.append([said("Running late", name="Ann")])
    assert [hit.text for hit in await conv.recall("And what about Ann?", limit=1)] == ["Running late"]


async def test_postings_count_entries_and_say_when_there_are_more(et: Everthread, conv: Conversation) -> None:
    await conv.append([said(f"harbour {at}", id=f"m{at}") for at in range(4)])
    await conv.delete_message("m0")
    await conv.append([said("?!")])
    term = Term(token="harbour")
    for cap, seqs, truncated in ((5, [1, 2, 3, 4], False), (4, [1, 2, 3, 4], False), (3, [2, 3, 4], True)):
        found = await et.store.search.postings(conv.owner, conv.id, [term], cap=cap)
        assert ([seq_of(key) for key in found.of[term]], found.truncated) == (seqs, truncated)
        assert found.total == (await et.store.conversations.get(Ref(conv.owner, conv.id))).entry_count


async def test_limits_on_hits_and_tokens_hold(conv: Conversation) -> None:
    await conv.append([said(f"harbour note {n}: " + "boats " * 40) for n in range(30)])
    assert len(await conv.recall("harbour", limit=4)) == 4
    assert len(await conv.recall("harbour", limit=30, max_tokens=150)) <= 3
    assert len(await conv.recall("harbour", limit=0)) == 0
    assert len(await conv.recall("harbour", max_tokens=0)) == 0


async def test_a_verb_is_found_in_a_form_with_another_stem(conv: Conversation) -> None:
    await conv.append([said("We flew to Rome in May."), said("It rains."), said("Good soup.")])
    assert (await conv.recall("Which city will they fly to?"))[0].seqs == (1,)


async def test_it_is_found_by_another_word_and_in_another_language(conv: Conversation) -> None:
    said = [
        "I left the bicycle at the north exit.",
        "姐姐在医院当护士，常上夜班。",
        *(f"Note {number}" for number in range(40)),
    ]
    for text in said:
        await conv.append({"role": "user", "content": text})
    assert [hit.text for hit in await conv.recall("Where is my bike?", limit=1)] == said[:1]
    assert [hit.text for hit in await conv.recall("Which hospital was it?", limit=1)] == said[1:2]


async def test_a_standing_wish_is_found_for_whatever_asks_for_work(conv: Conversation) -> None:
    await conv.append({"role": "user", "content": "Always give dates as day and month."})
    await conv.append({"role": "assistant", "content": "Understood."})
    await conv.append([{"role": "user", "content": f"Something else, number {at}"} for at in range(40)])
    await conv.append({"role": "user", "content": "The printer in Leeds has our logo."})
    hits = await conv.recall("Write to the printer about the flyers.", limit=10)
    (wish,) = [hit for hit in hits if hit.text.startswith("Always")]
    assert wish.why == ("wish",)
    assert not [hit for hit in await conv.recall("Which printer was it?", limit=10) if hit.text.startswith("Always")]


async def test_a_time_that_the_question_names_is_counted_from_the_moment_of_asking(conv: Conversation) -> None:
    for week in range(8):
        await conv.append([said(f"Lunch was soup number {week}.", at=MONDAY + timedelta(weeks=week))])
    asked_at = MONDAY + timedelta(weeks=5, days=2)
    hits = await conv.recall("What was lunch last week?", asked_at=asked_at)
    assert hits[0].text == "Lunch was soup number 4."
    assert (await conv.recall("上周的 lunch 是什么？", asked_at=asked_at))[0].text == "Lunch was soup number 4."


@pytest.mark.parametrize(
    "question", ["What did we talk about on April 21st?", "what happened last tuesday", "4月21号发生了什么？"]
)
async def test_whatever_was_said_at_a_time_is_found_by_the_time_alone(conv: Conversation, question: str) -> None:
    for day in range(25):
        at = MONDAY + timedelta(days=day)
        texts = [f"The {one} of walk {day} was fine." for one in ("start", "middle")]
        await conv.append([said(text, at=at + timedelta(minutes=step)) for step, text in enumerate(texts)])
    hits = await conv.recall(question, asked_at=MONDAY + timedelta(days=20))
    lines = [line for hit in hits for line in hit.text.splitlines()]
    assert lines[:2] == ["The start of walk 15 was fine.", "The middle of walk 15 was fine."]
    assert hits[0].why[0] == "date"
    assert not hits.only_weak
    assert hits.asks_for_several


async def test_a_time_is_found_among_deleted_messages_and_where_nothing_was_said(conv: Conversation) -> None:
    for day in range(12):
        await conv.append([said(f"Walk number {day}.", at=MONDAY + timedelta(days=day), id=f"m{day}")])
    for day in (4, 5, 6):
        await conv.delete_message(f"m{day}")
    asked_at = MONDAY + timedelta(days=7)
    assert [hit.text for hit in await conv.recall("what did I say yesterday?", asked_at=asked_at)] == []
    assert (await conv.recall("what did I say five days ago?", asked_at=asked_at))[0].text == "Walk number 2."
    assert len(await conv.recall("what did I say in 2019?", asked_at=asked_at)) == 0


@pytest.mark.parametrize(
    "question",
    ["What happened in 2024?", "what did we talk about last year?", "What happened in May?", "去年发生了什么？"],
)
async def test_whatever_was_said_in_a_year_or_in_may_is_found_by_that_alone(conv: Conversation, question: str) -> None:
    for week in range(8):
        await conv.append([said(f"Walk number {week}.", at=MONDAY + timedelta(weeks=week))])
    asked_at = MONDAY.replace(year=MONDAY.year + 1)
    question = question.replace("2024", str(MONDAY.year))
    hits = await conv.recall(question, asked_at=asked_at)
    assert "Walk number 5." in [line for hit in hits for line in hit.text.splitlines()]
    assert not hits.only_weak


async def test_what_is_said_again_word_for_word_stands_below_something_else(conv: Conversation) -> None:
    for _ in range(3):
        await conv.append([said("run the webhook tests")])
        await conv.append([said("Fine so far, nothing to see.", role="assistant")])
    await conv.append([said("The webhook lost its secret key yesterday.")])
    hits = await conv.recall("webhook", limit=2)
    assert {hit.text for hit in hits} == {"run the webhook tests", "The webhook lost its secret key yesterday."}
    for hit in await conv.recall("webhook"):
        assert sum(hit.parts.values()) == pytest.approx(hit.score, abs=1e-5)


async def test_what_was_replaced_deleted_or_left_behind_on_a_branch_is_not_found(conv: Conversation) -> None:
    await conv.append(
        [said("The code is tulip.", id="a"), said("The code word is rose.", id="b"), said("End.", id="c")]
    )
    await conv.append([said("The code is daisy.", id="a")])
    await conv.delete_message("b")
    assert {hit.text for hit in await conv.recall("code")} & {"The code is tulip.", "The code word is rose."} == set()
    assert (await conv.recall("code"))[0].text == "The code is daisy."
    assert (await conv.recall("code"))[0].seqs == (1,)
    await conv.edit("c", said("The code is lily."))
    await conv.set_active("main")
    assert "The code is lily." not in {hit.text for hit in await conv.recall("code")}


async def test_a_message_is_found_as_soon_as_its_append_returns(conv: Conversation) -> None:
    for number in range(5):
        await conv.append([said(f"parcel {number} came")])
        assert f"parcel {number} came" in {hit.text for hit in await conv.recall(f"parcel {number}")}


async def test_all_that_an_owner_has_is_searched_only_when_asked(et: Everthread, conv: Conversation) -> None:
    other = await et.conversations.create()
    await other.append([said("The harbour opens at six.")])
    await conv.append([said("Hello.")])
    assert len(await conv.recall("harbour")) == 0
    (hit,) = await conv.recall("harbour", scope="owner")
    assert (hit.conversation_id, hit.seqs) == (other.id, (1,))


async def test_i20_recall_never_sees_another_owner(et: Everthread, conv: Conversation) -> None:
    theirs = await et.conversations.create(owner="ann", id=conv.id)
    await theirs.append([said("The harbour opens at six.")])
    await conv.append([said("Hello harbour.")])
    for scope in ("conversation", "owner"):
        assert [hit.text for hit in await conv.recall("harbour", scope=scope)] == ["Hello harbour."]
        assert [hit.text for hit in await theirs.recall("opens", scope=scope)] == ["The harbour opens at six."]


async def test_i22_what_was_erased_is_recalled_by_nobody(et: Everthread, conv: Conversation) -> None:
    await conv.append([said("The harbour opens at six.", id="a"), said("Right, at six.", role="assistant")])
    await et.erase(conversation=conv.id, message="a")
    for scope in ("conversation", "owner"):
        hits = await conv.recall("When does the harbour open?", scope=scope)
        assert "harbour" not in " ".join(hit.text for hit in hits)


async def test_what_is_off_the_record_is_not_indexed(et: Everthread) -> None:
    aside = await et.conversations.create(off_record=True)
    await aside.append([said("The harbour opens at six.")])
    assert len(await aside.recall("harbour")) == 0
    assert len(await aside.recall("harbour", scope="owner")) == 0


@pytest.mark.parametrize(
    "query",
    [
        "",
        " \n\t",
        "?!",
        '" OR 1=1 --',
        "'; DROP TABLE entries; --",
        'NEAR(harbour, 2) AND * "',
        "harbour* ^col:x {a b}",
        "港口 harbour гавань 항구 🚢",
        "🚢🚢🚢",
        "\x00\ud800 harbour",
        "harbour " * 12_000,
        "港" * 100_000,
    ],
)
async def test_any_text_is_a_question(conv: Conversation, query: str) -> None:
    await conv.append([said("The harbour opens at six."), said("港口六点开门")])
    hits = await conv.recall(query)
    assert len(hits) <= 2
    if "harbour" in query:
        assert any("harbour" in hit.text for hit in hits)


async def test_bad_arguments_are_refused_by_their_field(conv: Conversation) -> None:
    for field, arguments in {
        "query": {"query": 7},
        "limit": {"query": "a", "limit": -1},
        "max_tokens": {"query": "a", "max_tokens": "x"},
        "scope": {"query": "a", "scope": "world"},
        "asked_at": {"query": "a", "asked_at": "yesterday"},
    }.items():
        with pytest.raises(Invalid) as problem:
            await conv.recall(**arguments)  # type: ignore[arg-type]
        assert problem.value.field == field
    with pytest.raises(Invalid):
        await conv.recall("x" * 100_001)


async def test_a_context_brings_back_few_episodes_with_their_answers(conv: Conversation) -> None:
    for number in range(12):
        await conv.append([said(f"Where is harbour {number}?"), said(f"At quay {number}.", role="assistant")])
    await chatter(conv, 40)
    await conv.append([says("Where is harbour 7?")])
    context = await conv.context(query="Where is harbour 7?", compaction={"max_message_history": 40})
    (part,) = [part for part in context.parts if part.kind == "recalled"]
    assert {15, 16} <= set(part.seqs)
    assert len(part.seqs) <= 6
    assert list(part.seqs) == sorted(part.seqs)


async def test_an_episode_whose_messages_are_all_found_is_one_episode(conv: Conversation) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"harbour": "Lisbon"}'}}
    await conv.append(
        [
            said("Where is the harbour of Lisbon?"),
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "The harbour of Lisbon: quay 9."},
            said("The harbour of Lisbon is at quay 9.", role="assistant"),
        ]
    )
    for number in range(12):
        await conv.append([said(f"Where is harbour {number}?"), said(f"At quay {number}.", role="assistant")])
    await chatter(conv, 40)
    context = await conv.context(query="the harbour of Lisbon", compaction={"max_message_history": 40})
    (part,) = [part for part in context.parts if part.kind == "recalled"]
    assert {1, 3, 4} <= set(part.seqs)
    assert len([seq for seq in part.seqs if seq > 4]) <= 4


@pytest.mark.parametrize("number", [2**70 + 1, 12345678901234567890123])
async def test_numbers_in_the_arguments_of_a_call_are_recalled_to_the_last_digit(
    conv: Conversation, number: int
) -> None:
    call = {"name": "transfer", "args": {"account": number}, "id": "c1", "type": "tool_call"}
    await conv.append([{"type": "ai", "content": "", "tool_calls": [call]}])
    assert str(number) in (await conv.recall("transfer"))[0].text


async def test_words_of_every_message_are_looked_for_only_where_too_few_have_others(
    et: Everthread, conv: Conversation
) -> None:
    """Nobody reads three hundred messages for the sake of a word that all of them have."""
    await conv.append([said(f"The order of day {day} is on its way.") for day in range(60)])
    await conv.append([said("The order for the lighthouse is late."), said("Yes, the order is.", role="assistant")])
    await conv.append([said(f"The order of night {night} is on its way.") for night in range(60)])
    services, question = RecallServices(store=et.store), "where is the order for the lighthouse"
    few = await recall(services, conv.owner, conv.id, question, at_least=1)
    many = await recall(services, conv.owner, conv.id, question, at_least=10)
    assert few.ranking[0].message.text == many.ranking[0].message.text == "The order for the lighthouse is late."
    assert len(few.messages) <= 2 * NEIGHBOUR_REACH + 1 < 100 < len(many.messages)
    assert len(await conv.recall(question, limit=10)) == 10


async def test_a_hit_says_whether_it_is_a_strong_match(conv: Conversation, et: Everthread) -> None:
    await chatter(conv, 20)
    await conv.append([says("The locker code at the gym is 4417", id="code")])
    strong = await conv.recall("What is the code of my gym locker?")
    assert (strong[0].ids, strong[0].match, strong.only_weak) == (("code",), "strong", False)
    weak = await conv.recall("When does the ferry to Naxos leave the harbour in the week of Easter?")
    assert weak.only_weak, [(hit.text, hit.match) for hit in weak]
    nothing = await conv.recall("zebra")
    assert (len(nothing), nothing.only_weak) == (0, True)
    by_words = await et.search("locker code", conversation=conv.id)
    assert [hit.match for hit in by_words] == ["strong"]
    assert {hit.match for hit in await et.search("locker ferry", conversation=conv.id)} == {"weak"}


async def test_what_somebody_may_not_eat_is_an_allergy_and_no_dish(conv: Conversation) -> None:
    await chatter(conv, 10)
    await conv.append(
        [
            says("I'm allergic to shellfish.", id="allergy"),
            said("Noted.", role="assistant"),
            says("Let's get pizza on Friday, the food there is great", id="pizza"),
            says("我对花生过敏", id="peanuts"),
            says("晚饭吃火锅吧", id="hotpot"),
        ]
    )
    for question in ("food I can't eat", "what can't I eat?", "我不能吃什么？"):
        hits = await conv.recall(question)
        assert {hits[0].ids, hits[1].ids} == {("allergy",), ("peanuts",)}, question
        assert hits[0].match == "strong"


async def test_what_lies_in_many_messages_is_quoted_from_all_of_them_in_order(conv: Conversation) -> None:
    """Ten hits are still ten, and within the tokens they show what ten passages could not."""
    pages = "The weather was fine that day and nobody had anything to add to it. " * 12
    for number in range(24):
        await conv.append(
            [says(f"{pages} We tried the film number {number} on a rainy evening. {pages}", id=f"m{number}")]
        )
        await chatter(conv, 2)
    hits = await conv.recall("Which films did we try?", limit=10, max_tokens=2000)
    assert hits.asks_for_several
    assert len(hits) == 10
    quoted = [seq for hit in hits.in_order for seq in hit.seqs]
    films = [id for hit in hits for id in hit.ids if id.startswith("m")]
    assert len(films) == len(set(films)) > 20
    assert quoted == sorted(quoted)
    assert all(len(hit.seqs) == len(hit.text.splitlines()) == len(hit.ids) for hit in hits)
    assert sum(count_tokens(hit.text) for hit in hits) <= 2000
    assert len(await conv.recall("Which films did we try?", limit=1)) == 1
    assert not (await conv.recall("Who tried film number 3?")).asks_for_several


async def test_a_message_without_a_text_is_never_a_hit(conv: Conversation) -> None:
    picture = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    await conv.append([says(""), {"role": "user", "content": [picture]}, says("the badger lives in the shed", id="b")])
    await conv.append([{"role": "tool", "tool_call_id": "c1", "content": {"badger": 5}, "id": "t"}])
    hits = await conv.recall("badger")
    assert {id for hit in hits for id in hit.ids} == {"b", "t"}
    assert all(hit.text for hit in hits)
    assert '{"badger": 5}' in "\n".join(hit.text for hit in hits)
