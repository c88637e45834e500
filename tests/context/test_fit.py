"""Whatever the history, what is sent is within the limit, valid, and says what it left out."""

from __future__ import annotations

import copy

import pytest
from hypothesis import strategies as st

from everthread.context import Budget, Message, cut_window, find_violations, fit, message_tokens, repair, units
from everthread.context.message_format import is_system, is_user_turn
from everthread.core.errors import ContextOverflow
from tests.context.histories import budgets, forall, histories
from tests.context.openai_shape import ai, result, system, user
from tests.context.trajectories import swe_agent_runs, tau_bench_runs

LONG = "word " * 3_000


def limited(limit: int) -> Budget:
    return Budget(window=limit, output_reserve=0)


# --- for every history and budget ------------------------------------------------------------


@forall(histories(), budgets(smallest=60), st.data())
def test_i8_what_is_sent_is_valid_and_within_the_limit(
    history: list[Message], budget: Budget, data: st.DataObject
) -> None:
    view = repair(history)
    pinned = data.draw(st.sets(st.integers(0, max(0, len(view) - 1)), max_size=2))
    fitted = fit(units(view), budget, pinned=pinned)
    assert sum(map(message_tokens, fitted.messages)) == fitted.tokens <= fitted.limit
    assert find_violations(fitted.messages) == []


@forall(histories(), budgets(smallest=60))
def test_every_message_is_sent_or_named_as_left_out(history: list[Message], budget: Budget) -> None:
    view = repair(history)
    fitted = fit(units(view), budget)
    left_out = tuple(omitted.index for omitted in fitted.omitted)
    assert sorted(fitted.indexes + left_out) == list(range(len(view)))
    whole = {clamp.index for clamp in fitted.clamped}
    for index, message in zip(fitted.indexes, fitted.messages, strict=True):
        assert (message == view[index]) != (index in whole)


@forall(histories(), budgets(smallest=60))
def test_it_takes_a_bounded_number_of_steps(history: list[Message], budget: Budget) -> None:
    view = repair(history)
    assert fit(units(view), budget).steps <= 4 * len(view)


@forall(histories(), budgets(smallest=60))
def test_the_users_newest_words_are_always_sent(history: list[Message], budget: Budget) -> None:
    view = repair(history)
    turns = [at for at, message in enumerate(view) if is_user_turn(message)]
    if turns:
        assert turns[-1] in fit(units(view), budget).indexes


@forall(histories(), budgets(smallest=60))
def test_the_same_input_is_fitted_the_same_way_and_not_changed(history: list[Message], budget: Budget) -> None:
    view = repair(history)
    before = copy.deepcopy(view)
    assert fit(units(view), budget) == fit(units(view), budget)
    assert view == before


@forall(histories())
def test_what_fits_is_sent_as_it_is(history: list[Message]) -> None:
    view = repair(history)
    fitted = fit(units(view), Budget(window=1_000_000))
    assert list(fitted.messages) == view
    assert (fitted.clamped, fitted.omitted, fitted.steps) == ((), (), 0)


@forall(histories(), st.integers(1, 40), budgets(smallest=60))
def test_a_window_that_is_fitted_is_valid_too(history: list[Message], keep: int, budget: Budget) -> None:
    window = cut_window(repair(history), keep)
    fitted = fit(units(window.messages), budget)
    assert fitted.tokens <= budget.limit
    assert find_violations(fitted.messages) == []


# --- the order in which things give way ------------------------------------------------------


def test_flaw_003_1_old_tool_output_gives_way_first_and_nothing_else() -> None:
    history = [system(), user("read it"), ai("", "a"), result("a", LONG), ai("done"), user("thanks, and now?")]
    fitted = fit(units(history), limited(1_000), seqs=[1, 2, 3, 4, 5, 6])
    assert [clamp.reason for clamp in fitted.clamped] == ["old"]
    assert "history_open(seq=4)" in fitted.messages[3]["content"]
    assert fitted.omitted == ()


def test_the_oldest_turns_are_left_out_whole() -> None:
    turns = [message for at in range(50) for message in (user(f"question {at}"), ai(f"answer {at} " * 10))]
    fitted = fit(units([system(), *turns]), limited(400))
    assert fitted.messages[0] == system()
    assert is_user_turn(fitted.messages[1])
    assert fitted.messages[-1] == turns[-1]
    assert fitted.clamped == ()


def test_a_long_run_of_tools_keeps_its_question_and_its_newest_step() -> None:
    steps = [message for at in range(50) for message in (ai(f"step {at}", f"c{at}"), result(f"c{at}", "row " * 50))]
    fitted = fit(units([user("fix the bug"), *steps]), limited(500))
    assert fitted.messages[0] == user("fix the bug")
    assert fitted.messages[-1] == steps[-1]
    assert 3 < len(fitted.messages) < 20


def test_a_question_over_the_limit_is_shown_in_part() -> None:
    fitted = fit(units([system(), user(LONG)]), limited(200), seqs=[None, 9])
    assert fitted.tokens <= 200
    assert "history_open(seq=9)" in fitted.messages[1]["content"]
    assert fitted.tokens > 150


def test_pins_stay_longer_than_what_is_newer() -> None:
    turns = [message for at in range(20) for message in (user(f"question {at}"), ai(f"answer {at} " * 10))]
    fitted = fit(units(turns), limited(200), pinned={3})
    assert {2, 3} <= set(fitted.indexes)
    assert {4, 5} <= {omitted.index for omitted in fitted.omitted}


def test_flaw_003_1_the_system_prompt_is_sent_once_and_whole() -> None:
    history = [system("Be brief."), user("a"), ai("b"), user(LONG)]
    fitted = fit(units(history), limited(100))
    assert [message for message in fitted.messages if is_system(message)] == [system("Be brief.")]


def test_flaw_003_2_what_is_left_out_is_left_out_of_the_view_only() -> None:
    history = [user("a"), ai(LONG), user("b")]
    before = copy.deepcopy(history)
    fit(units(history), limited(50))
    assert history == before


def test_a_system_prompt_over_the_limit_is_refused_and_says_so() -> None:
    with pytest.raises(ContextOverflow, match="Shorten it, or give the model a larger window"):
        fit(units([system(LONG), user()]), limited(1_000))


def test_a_refusal_tells_what_the_system_prompt_counts_to_not_the_whole_history() -> None:
    prompt = message_tokens(system(LONG))
    with pytest.raises(ContextOverflow, match=f"system prompt alone is {prompt:,} tokens; the limit is 1,000"):
        fit(units([system(LONG), *[user(LONG)] * 9]), limited(1_000))


def test_known_counts_are_not_made_again() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    fit(units([user("a"), ai("b")]), limited(100), tokens=[5, 5], count=count)
    assert counted == []


@pytest.mark.parametrize("limit", [1_000, 4_000, 8_000])
def test_recorded_runs_fit_any_budget_turn_by_turn(limit: int) -> None:
    for run in tau_bench_runs()[::40]:
        for end in range(2, len(run) + 1):
            if run[end - 1]["role"] != "assistant":
                view = repair([system("short"), *run[1:end]])
                fitted = fit(units(view), limited(limit))
                assert fitted.tokens <= limit
                assert find_violations(fitted.messages) == []


def test_recorded_coding_runs_fit_a_small_budget() -> None:
    for run in swe_agent_runs():
        view = repair([message for message in run if message["role"] != "system"])
        fitted = fit(units(view), limited(2_000))
        assert fitted.tokens <= 2_000
        assert find_violations(fitted.messages) == []
