"""The order of what was read: small conversations in which one signal decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from everthread.core.queries import Term
from everthread.recall.candidates import idf_by_term
from everthread.recall.matched_words import words_as_written
from everthread.recall.policy import RecallWeights
from everthread.recall.query import TermCounter, parse_question
from everthread.recall.ranking import CandidateMessage, RankedMessage, RankingSignals, rank
from everthread.text.dates import find_time_ranges

NOW = datetime(2026, 4, 15, 10, tzinfo=UTC)
Said = tuple[str, str] | tuple[str, str, str]


def messages_of(said: Sequence[Said]) -> list[CandidateMessage]:
    """Messages by role, text and, where they have one, the speaker's name; an hour apart."""
    return [
        CandidateMessage(
            entry_key=at,
            depth=at,
            conversation_id="c",
            role=one[0],
            text=one[1],
            name=one[2] if len(one) > 2 else None,
            said_at=NOW - timedelta(hours=len(said) - at),
        )
        for at, one in enumerate(said, 1)
    ]


def ranked(
    question: str, messages: Sequence[CandidateMessage], weights: RecallWeights | None = None, **known: object
) -> Sequence[RankedMessage]:
    query = parse_question(question)
    counter = TermCounter(query.terms)
    postings = {
        term: [one.entry_key for one in messages if at in dict(counter.count(one.text).counts)]
        for at, term in enumerate(query.terms)
    }
    signals = RankingSignals(
        postings=postings, idfs=idf_by_term(postings, len(messages)), times=find_time_ranges(question, NOW)
    )
    return rank(query, messages, replace(signals, **known), weights or RecallWeights())  # type: ignore[arg-type]


def texts(found: Sequence[RankedMessage]) -> list[str]:
    return [one.message.text for one in found]


FILLER: list[Said] = [("user", f"Something else, number {number}") for number in range(30)]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    said: list[Said] = [("user", f"the film of day {day}") for day in range(20)]
    found = ranked("film by Tarkovsky", messages_of([("user", "Tarkovsky made it"), *said]))
    assert found[0].message.text == "Tarkovsky made it"


def test_an_answer_without_a_word_of_the_question_is_found_by_what_it_answers() -> None:
    said: list[Said] = [*FILLER, ("assistant", "Who was the director?"), ("user", "Denis Villeneuve, I think"), *FILLER]
    assert "Denis Villeneuve, I think" in texts(ranked("the director", messages_of(said)))[:2]


def test_a_long_message_borrows_nothing_from_its_neighbours() -> None:
    page = "Nothing to see here. " * 200
    said: list[Said] = [*FILLER, ("user", page), ("user", "the director"), ("user", "short"), *FILLER]
    assert texts(ranked("director", messages_of(said)))[:2] == ["the director", "short"]


def test_results_of_tools_lend_nothing() -> None:
    said: list[Said] = [*FILLER, ("tool", "director: Lynch"), ("user", "right"), *FILLER]
    found = ranked("director", messages_of(said), RecallWeights(topic=0))
    assert texts(found) == ["director: Lynch"]


def test_the_speaker_that_a_question_names_goes_before_the_one_who_is_spoken_to() -> None:
    said: list[Said] = [
        ("assistant", "Caroline, did you buy the necklace?", "Melanie"),
        ("user", "My grandmother gave me the necklace", "Caroline"),
    ]
    found = ranked("What necklace does Caroline have?", messages_of(said))
    assert found[0].message.name == "Caroline"


def test_a_named_speaker_is_found_without_another_word_of_the_question_the_nearest_first() -> None:
    crowd: list[Said] = [("user", f"Something else, number {at}", ("Bob", "Cleo", "Dan")[at % 3]) for at in range(30)]
    said: list[Said] = [
        *crowd,
        ("user", "the tent stood in the cellar", "Bob"),
        ("user", "Monday was fine", "Cleo"),
        ("user", "It leaks at the seam", "Ann"),
        *crowd,
        ("user", "Running late", "Ann"),
        *crowd,
    ]
    found = texts(ranked("What did Ann say of the tent?", messages_of(said)))
    assert found[:2] == ["the tent stood in the cellar", "It leaks at the seam"]
    assert "Running late" in found
    without = texts(ranked("What did Ann say of the tent?", messages_of(said), RecallWeights(speaker=0)))
    assert "Running late" not in without


def test_among_bare_roles_the_user_goes_first_unless_the_assistant_is_asked_what_it_said() -> None:
    said: list[Said] = [("user", "a good hotel in Kyoto"), *FILLER, ("assistant", "a good hotel in Kyoto")]
    assert ranked("hotel in Kyoto", messages_of(said))[0].message.role == "user"
    assert ranked("Which hotel in Kyoto did you recommend?", messages_of(said))[0].message.role == "assistant"


def test_what_the_assistant_said_is_not_sunk_by_the_prior_for_users() -> None:
    said: list[Said] = [("user", "and Kyoto?"), *FILLER, ("assistant", "The Sowaka is a hotel in Kyoto"), *FILLER]
    assert ranked("hotel in Kyoto", messages_of(said))[0].message.text == "The Sowaka is a hotel in Kyoto"


def test_a_named_day_brings_what_was_said_then() -> None:
    old, new = NOW - timedelta(days=40), NOW - timedelta(days=1)
    both = [
        replace(one, said_at=when)
        for one, when in zip(
            messages_of([("user", "lunch with Ann"), ("user", "lunch with Bob")]), (old, new), strict=True
        )
    ]
    assert texts(ranked("whom did I have lunch with yesterday?", both))[0] == "lunch with Bob"


def test_meaning_finds_what_has_no_word_of_the_question_as_far_as_it_is_understood() -> None:
    messages = messages_of([*FILLER, ("user", "my feline is ill"), *FILLER, ("user", "the cat food list"), *FILLER])
    similarity = {(31, 0): 0.8, (62, 0): 0.3, (1, 0): 0.1}
    understood = ranked("sick cat", messages, RecallWeights(meaning=0.6), similarity=similarity, understood_share=1.0)
    assert understood[0].message.text == "my feline is ill"
    assert (
        ranked("sick cat", messages, RecallWeights(meaning=0.6), similarity=similarity, understood_share=0.0)[
            0
        ].message.entry_key
        == 62
    )


def test_of_a_long_message_the_passage_with_the_words_is_shown() -> None:
    text = "\n\n".join(
        ["Filler about nothing. " * 20, "The password of the router is tulip. " * 5, "More filler. " * 40]
    )
    (found,) = ranked("router password", messages_of([("assistant", text)]))
    shown = text[found.span.start : found.span.end]
    assert "tulip" in shown
    assert len(shown) < len(text) * 0.7


def test_messages_of_two_conversations_are_no_neighbours() -> None:
    one, two = messages_of([("user", "the director"), ("user", "short")])
    found = ranked("director", [one, replace(two, conversation_id="other")], RecallWeights(topic=0))
    assert texts(found) == ["the director"]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text(max_size=40)), max_size=12),
    st.text(max_size=40),
)
def test_whatever_was_said_each_message_comes_at_most_once_and_best_first(
    said: list[tuple[str, str]], question: str
) -> None:
    found = ranked(question, messages_of(said))
    keys = [one.message.entry_key for one in found]
    assert len(keys) == len(set(keys))
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_the_more_tools_say_the_less_meaning_lifts_what_is_said_beside_them() -> None:
    asked_for = ("tool", '{"card": "charged 120 for the upgraded return"}')
    said: list[Said] = [("user", "please use my card"), *FILLER, asked_for, *FILLER]
    log: list[Said] = [("tool", f'{{"row": {number}}}') for number in range(60)]
    similarity = {(1, 0): 0.9, (2, 0): 0.1, (3, 0): 0.1}
    weights = RecallWeights(meaning=0.6, user=0)
    in_talk = ranked(
        "what was the card charged", messages_of(said), weights, similarity=similarity, understood_share=1.0
    )
    in_a_log = ranked(
        "what was the card charged", messages_of([*said, *log]), weights, similarity=similarity, understood_share=1.0
    )
    assert in_a_log[0].message.text == asked_for[1]
    lifted = [next(one.score for one in found if one.message.entry_key == 1) for found in (in_talk, in_a_log)]
    assert lifted[0] > lifted[1]


def test_the_parts_of_a_score_add_up_to_it_and_name_what_found_the_message() -> None:
    said: list[Said] = [*FILLER, ("user", "Who directs the film?"), ("assistant", "Jane Campion."), *FILLER]
    found = ranked("Who is the director of the film last week?", messages_of(said))
    for one in found:
        assert abs(sum(one.parts.values()) - one.score) < 1e-9
    by_text = {one.message.text: one for one in found}
    assert next(iter(by_text["Who directs the film?"].parts)) == "words"
    assert next(iter(by_text["Jane Campion."].parts)) in ("neighbours", "topic")
    assert "words" not in by_text["Jane Campion."].parts
    assert by_text["Who directs the film?"].words == ("directs", "film")


NOTES = [
    "The vet wants Bruno on a diet.",
    "Passport photos cost nine euros.",
    "Rehearsal moved to the church hall.",
    "Our landlord repaired the boiler.",
    "Garlic goes in before the frost.",
    "The printer needs an old driver.",
    "Noor lands at terminal two.",
    "Locker 118 at the pool.",
    "Sold the mower next door.",
    "Window seats are gone already.",
    "The tax letter came back.",
    "Choir sings on Tuesday evening.",
    "A crown for the left molar.",
    "Two kilos of cherries today.",
    "Wool blankets shrink in machines.",
    "The ferry stops at dusk.",
]


def lent_by_neighbours(messages: list[CandidateMessage], question: str, text: str) -> float:
    found = {one.message.text: one for one in ranked(question, messages)}
    return found[text].parts.get("neighbours", 0.0) if text in found else 0.0


def test_notes_about_unrelated_things_lend_each_other_little() -> None:
    unrelated = messages_of([("user", text) for text in [*NOTES, "My umbrella is at the station.", *NOTES[::-1]]])
    # The same notes, but each time about one thing over several messages.
    together: list[Said] = []
    for at, text in enumerate(NOTES):
        together += [("user", text), ("assistant", f"{text} So topic{at} is settled."), ("user", f"topic{at} it is")]
    together[24:24] = [("user", "My umbrella is at the station."), ("user", "Near the kiosk there.")]
    side_by_side = lent_by_neighbours(unrelated, "Where is my umbrella?", NOTES[-1])
    of_one_piece = lent_by_neighbours(messages_of(together), "Where is my umbrella?", "Near the kiosk there.")
    assert side_by_side < 0.3 * of_one_piece


def test_an_answer_stands_before_the_same_question_asked_elsewhere() -> None:
    said: list[Said] = [
        *FILLER,
        ("user", "Who directs the film?"),
        *FILLER,
        ("user", "Who directs the film?"),
        ("assistant", "That film is directed by Jane Campion."),
        *FILLER,
    ]
    assert texts(ranked("Who directs the film?", messages_of(said)))[0] == "That film is directed by Jane Campion."


def test_a_result_is_found_by_the_words_of_its_call() -> None:
    said: list[Said] = [
        *FILLER,
        ("assistant", 'track_parcel {"tracking": "R77X1"}'),
        ("tool", '{"events": ["held at customs"]}'),
        *FILLER,
        ("assistant", 'get_plan {"customer": "C1"}'),
        ("tool", '{"plan": "basic"}'),
        *FILLER,
    ]
    found = texts(ranked("What happened to the parcel?", messages_of(said)))
    assert '{"events": ["held at customs"]}' in found[:2]
    assert '{"plan": "basic"}' not in found


def test_another_word_for_the_same_counts_less_than_the_word_itself() -> None:
    said: list[Said] = [
        *FILLER,
        ("user", "The bicycle is at the north exit"),
        *FILLER,
        ("user", "The bike is red"),
        *FILLER,
    ]
    related = {Term(token="bicycl"): {0: 0.5}}
    found = ranked("Where is my bike?", messages_of(said), related=related)
    assert texts(found)[:2] == ["The bike is red", "The bicycle is at the north exit"]
    assert found[1].words == ("bicycle",)
    assert not found[1].is_neighbour_only


def test_a_wish_is_lifted_into_what_is_found_and_says_so() -> None:
    said: list[Said] = [
        ("user", "Always use metric units"),
        ("assistant", "Fine."),
        *FILLER,
        ("user", "the tower of Pisa"),
        *FILLER,
    ]
    found = ranked("How tall is the tower?", messages_of(said), wishes=frozenset({1}))
    assert texts(found)[:2] == ["the tower of Pisa", "Always use metric units"]
    assert found[1].parts["wish"] == found[1].score


def test_of_many_wishes_those_of_the_same_matter_come_first_and_each_once() -> None:
    others = [f"From now on call me {name}" for name in ("Al", "Bo", "Cy", "Di", "Ed", "Flo")]
    wishes = ["In letters never use exclamation marks", "I'm vegan, keep that in mind", *others, others[-1]]
    said: list[Said] = [one for wish in wishes for one in (("user", wish), *FILLER)]
    keys = frozenset(range(1, len(said), 1 + len(FILLER)))
    found = ranked("Draft a letter to Mr. Green", messages_of(said), wishes=keys)
    lifted = [one.message.text for one in found if "wish" in one.parts]
    assert lifted[0] == "In letters never use exclamation marks"
    assert lifted[-1] == "I'm vegan, keep that in mind"
    assert len(lifted) == len(set(wishes))


def test_among_people_there_are_no_wishes() -> None:
    said: list[Said] = [("user", "Always use metric units", "Ann"), *FILLER, ("user", "the tower of Pisa", "Bob")]
    assert "Always use metric units" not in texts(ranked("the tower", messages_of(said), wishes=frozenset({1})))


def test_a_related_word_never_stands_above_the_word_itself() -> None:
    """A short message counts more for each of its words, and yet not so much."""
    with_word = "At some point in the long afternoon the old bike of my neighbour stood in the rain beside the shed"
    said: list[Said] = [("user", with_word), *FILLER, ("user", "bicycles")]
    related = {Term(token="bicycl"): {0: 0.9}}
    found = ranked("bike", messages_of(said), RecallWeights(neighbours=0.0, topic=0.0), related=related)
    assert texts(found) == [with_word, "bicycles"]


def test_the_words_of_a_hit_are_told_as_they_stand_in_it() -> None:
    query = parse_question("花生 allergies 1200 went Müller maxRetry")
    text = "Allergy: 她對花生過敏。They go to Müller for 1,200 with max_retry"
    assert set(words_as_written(text, query.terms)) == {"花生", "Allergy", "1,200", "go", "Müller", "max_retry"}
