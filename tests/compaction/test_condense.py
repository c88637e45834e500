"""Several summaries become one that still says where everything was said."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everthread.compaction.condense import condense, facts_of_summaries, sources_of_summaries, without_told
from everthread.compaction.extract import extract
from everthread.compaction.fact_ranking import split_kept
from everthread.compaction.sources import ChildSummary, Source, TokenCounter
from everthread.compaction.summary_format import Section, SummaryLine, parse_summary
from everthread.context.ingredients import QuotedMemory, QuotedSummary
from tests.compaction.spans import counters, spans, texts, user, word_count

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

LEAVES = [
    ChildSummary(
        first_seq=1,
        last_seq=40,
        text="## Goal\n- user: move the shop by 12 May 2024 [#1]\n## Decisions\n- user: let's use Postgres 14 [#9]\n"
        "## Open points\n- user: I'm waiting for the invoice [#38]\n## Also mentioned\n- Seaborn; on port 9310 [#12]",
    ),
    ChildSummary(
        first_seq=41,
        last_seq=80,
        text="## Decisions\n- user: no, we'll use Postgres 16 [#50, 2024-05-02]\n## Facts\n"
        "- assistant: a dump takes about 25 minutes [#52–#53]\n"
        "## Open points\n- user: the backup is not yet done [#79]",
    ),
]


def _condensed(leaves: list[ChildSummary], max_tokens: int = 400) -> list[SummaryLine]:
    text = condense(leaves, max_tokens=max_tokens, count_tokens=word_count)
    return [line for line in parse_summary(text) if isinstance(line, SummaryLine)]


def _of(lines: list[SummaryLine], section: Section) -> list[tuple[str, int, int]]:
    return [(line.text, line.first_seq, line.last_seq) for line in lines if line.section == section]


def test_lines_keep_their_section_their_words_and_their_seqs() -> None:
    lines = _condensed(LEAVES)
    assert _of(lines, "goal") == [("user: move the shop by 12 May 2024", 1, 1)]
    assert _of(lines, "decisions") == [
        ("user: let's use Postgres 14", 9, 9),
        ("user: no, we'll use Postgres 16", 50, 50),
    ]
    assert _of(lines, "facts") == [("assistant: a dump takes about 25 minutes", 52, 53)]
    assert [line.day for line in lines if line.first_seq == 50] == ["2024-05-02"]


def test_listed_facts_are_carried_on() -> None:
    assert _of(_condensed(LEAVES), "mentioned") == [("on port 9310", 12, 12)]


def test_when_room_is_short_decisions_outlast_open_points_of_old() -> None:
    texts = [line.text for line in _condensed(LEAVES, max_tokens=60)]
    assert "user: no, we'll use Postgres 16" in texts
    assert "user: I'm waiting for the invoice" not in texts


def test_prose_of_a_model_stands_for_its_whole_span() -> None:
    leaf = ChildSummary(first_seq=81, last_seq=120, text="The move went well. Jane Smith closed ticket ABC-123.")
    facts = _of(_condensed([*LEAVES, leaf]), "facts")
    assert ("Jane Smith closed ticket ABC-123.", 81, 120) in facts


def test_a_condensed_summary_can_be_condensed_again() -> None:
    once = condense(LEAVES, max_tokens=400, count_tokens=word_count)
    again = condense([ChildSummary(first_seq=1, last_seq=80, text=once)], max_tokens=400, count_tokens=word_count)
    assert again == once


def test_facts_of_users_survive_a_level_that_has_room_for_them() -> None:
    leaves = []
    for first in (1, 41, 81):
        span = [
            user(seq, f"Parcel {seq * 1111} weighs {seq}.5 kg and goes to depot {seq + 300}.")
            for seq in range(first, first + 40)
        ]
        leaves.append(
            ChildSummary(
                first_seq=first, last_seq=first + 39, text=extract(span, max_tokens=200, count_tokens=word_count)
            )
        )
    facts = facts_of_summaries(leaves)
    held, missing = split_kept(condense(leaves, max_tokens=600, count_tokens=word_count), facts)
    assert len(held) > 0.9 * (len(held) + len(missing))


def test_lines_of_summaries_serve_the_gate_as_sources() -> None:
    assert [(source.seq, source.role) for source in sources_of_summaries(LEAVES)][:3] == [
        (1, "user"),
        (9, "user"),
        (38, "user"),
    ]


def test_nothing_gives_nothing() -> None:
    assert condense([], max_tokens=100, count_tokens=word_count) == ""
    assert condense([ChildSummary(first_seq=1, last_seq=2, text=" \n")], max_tokens=100, count_tokens=word_count) == ""


@given(st.lists(texts(), max_size=4), st.integers(40, 300), counters())
@patient
def test_any_summaries_give_one_that_fits(said: list[str], max_tokens: int, count_tokens: TokenCounter) -> None:
    leaves = [ChildSummary(first_seq=at * 10 + 1, last_seq=at * 10 + 10, text=text) for at, text in enumerate(said)]
    condensed = condense(leaves, max_tokens=max_tokens, count_tokens=count_tokens)
    assert count_tokens(condensed) <= max_tokens
    assert condensed == condense(leaves, max_tokens=max_tokens, count_tokens=count_tokens)


@given(spans(), st.integers(60, 300))
@patient
def test_what_extracts_say_can_be_condensed_without_losing_all(sources: list[Source], max_tokens: int) -> None:
    text = extract(sources, max_tokens=200, count_tokens=word_count)
    leaf = ChildSummary(first_seq=1, last_seq=600, text=text)
    assert bool(condense([leaf], max_tokens=max_tokens, count_tokens=word_count)) == bool(text)


def test_what_tools_changed_outlasts_what_they_looked_up() -> None:
    looked = "\n".join(
        f"- run_command(command=kubectl top pods -n shop{n}) → cart-{n} {n}50m [#{n}]" for n in range(2, 30)
    )
    leaf = ChildSummary(
        first_seq=1,
        last_seq=40,
        text=f"## Tools used\n{looked}\n- run_command(command=kubectl scale deploy/cart --replicas=6) → scaled [#31]",
    )
    assert "--replicas=6" in condense([leaf], max_tokens=200, count_tokens=word_count)


def test_no_mark_of_another_line_is_listed_as_a_fact() -> None:
    leaf = ChildSummary(
        first_seq=1,
        last_seq=40,
        text="## 决定\n- 用户：活动改到15号 [#20]\n## 另外提到\n"
        "- 排练花了66分钟（已被 [#9] 取代） [#5]\n- 灯光要300元 [#6]",
    )
    text = condense([leaf], max_tokens=400, count_tokens=word_count)
    assert "灯光" in text
    assert "66" not in text
    assert "[#9" not in text


def test_a_decision_that_answers_a_question_is_the_users() -> None:
    asides = "\n".join(f"- user: my train was {n} minutes late [#{n}]" for n in range(20, 60))
    leaf = ChildSummary(
        first_seq=1,
        last_seq=60,
        text="## Decisions\n- assistant: Would 410 a week do for the boat? → user: yes, 430 at most [#5–#6]\n"
        f"## Facts\n{asides}",
    )
    assert "430 at most" in condense([leaf], max_tokens=120, count_tokens=word_count)


def test_what_a_summary_tells_in_the_same_words_is_no_memory_beside_it_unless_it_was_replaced() -> None:
    memory = QuotedMemory(id="m1", text='The user said: "we need a new roof before winter".', message=3)
    wish = QuotedMemory(id="m2", text="use metres in every plan", message=5)
    told = "- user: so we need a new roof before winter, a green one [#3]"
    plain = QuotedSummary(
        id="s", first_seq=1, last_seq=9, text=f"## Goal\n{told}\n## Decisions\n- user: use metres in every plan [#5]"
    )
    replaced = QuotedSummary(
        id="s", first_seq=1, last_seq=9, text=f"## Goal\n{told.replace(' [#3]', ' (replaced by [#7]) [#3]')}"
    )
    assert without_told([memory, wish], [plain], 1_000) == [wish]
    assert without_told([memory, wish], [replaced], 1_000) == [memory, wish]


def test_what_confirms_a_choice_outlasts_what_was_told_in_passing() -> None:
    asides = "\n".join(f"- user: my train was {n} minutes late [#{n}]" for n in range(20, 60))
    leaf = ChildSummary(
        first_seq=1,
        last_seq=60,
        text=f"## Decisions\n- assistant: Hotel Linde, two nights. [#6]\n## Facts\n{asides}",
    )
    assert "Hotel Linde, two nights." in condense([leaf], max_tokens=120, count_tokens=word_count)
