"""A tool call is one line: what was called, with what, and what came of it."""

from __future__ import annotations

import pytest
from hypothesis import given

from everthread.compaction.sources import Source, SourceCall
from everthread.compaction.tool_calls import acts, call_outcomes, outcome_line
from tests.compaction.spans import assistant, result, spans


def _lines(*sources: Source) -> list[str]:
    return [outcome_line(outcome) for outcome in call_outcomes(sources)]


def _call(name: str, arguments: str, call_id: str | None = None) -> SourceCall:
    return SourceCall(name=name, arguments=arguments, call_id=call_id)


def test_arguments_and_result_are_told_by_their_fields() -> None:
    call = _call("book", '{"user": "mia_li", "bags": 2}')
    answer = '{"id": "HATHAT", "user": "mia_li", "flights": [{"no": "HAT041"}], "tags": ["a1", "b2"]}'
    assert _lines(assistant(1, "", call), result(2, "book", answer)) == [
        "book(user=mia_li, bags=2) → id=HATHAT, tags=a1/b2, no=HAT041"
    ]


def test_parallel_calls_find_their_results_by_id_in_any_order() -> None:
    calls = (_call("add", '{"n": 1}', "x"), _call("add", '{"n": 2}', "y"))
    lines = _lines(assistant(1, "", *calls), result(2, "add", "two", "y"), result(3, "add", "one", "x"))
    assert lines == ["add(n=2) → two", "add(n=1) → one"]


def test_without_ids_results_come_in_the_order_of_the_calls() -> None:
    calls = (_call("add", '{"n": 1}'), _call("add", '{"n": 2}'))
    lines = _lines(assistant(1, "", *calls), result(2, "add", "one"), result(3, "add", "two"))
    assert lines == ["add(n=1) → one", "add(n=2) → two"]


def test_a_call_without_a_result_says_so() -> None:
    (outcome,) = call_outcomes([assistant(1, "", _call("deploy", "{}"))])
    assert outcome.unanswered
    assert outcome_line(outcome) == "deploy() → ?"


def test_a_result_without_a_call_is_told_too() -> None:
    assert _lines(result(4, "search", "3 rows")) == ["search → 3 rows"]


def test_the_same_call_with_the_same_result_is_told_once() -> None:
    pairs = [(assistant(seq, "", _call("ping", "{}")), result(seq + 1, "ping", "pong")) for seq in (1, 3, 5)]
    (outcome,) = call_outcomes([source for pair in pairs for source in pair])
    assert outcome_line(outcome) == "ping() ×3 → pong"
    assert (outcome.first_seq, outcome.last_seq) == (5, 6)


def test_a_traceback_is_told_by_its_last_line() -> None:
    text = "Traceback (most recent call last):\n  File 'x.py', line 3, in f\nKeyError: 'seq'\n"
    assert _lines(result(1, "run", text)) == ["run → KeyError: 'seq'"]


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("Error: no such flight", True),
        ('{"error": "denied"}', True),
        ("exit code: 2", True),
        ("查询失败", True),
        ("no errors found", False),
        ('{"error": null, "rows": 3}', False),
        ("exit code: 0", False),
    ],
)
def test_a_failure_is_told_from_a_result(text: str, failed: bool) -> None:
    (outcome,) = call_outcomes([result(1, "run", text)])
    assert outcome.failed is failed


def test_json_nested_beyond_reason_is_told_as_text() -> None:
    (line,) = _lines(result(1, "dump", "[" * 5_000))
    assert line.startswith("dump → [[[")


def test_a_long_result_is_one_short_line() -> None:
    (line,) = _lines(result(1, "ls", "\n".join(f"file_{n}.txt" for n in range(5_000))))
    assert len(line) < 200
    assert "\n" not in line


@given(spans())
def test_every_call_and_result_of_any_span_is_told_on_one_line(sources: list[Source]) -> None:
    told = call_outcomes(sources)
    events = sum(len(source.calls) + source.is_tool_result for source in sources)
    assert sum(outcome.repeats for outcome in told) <= events <= 2 * sum(outcome.repeats for outcome in told)
    assert all(len(outcome_line(outcome).splitlines()) == 1 for outcome in told)


@pytest.mark.parametrize(
    "called",
    [
        "bash(command=ls && rm -rf build)",
        "bash(command=pytest -q; git commit -am done) → 3 passed",
        "shell(cmd=cd web && npm install)",
        "run_sql(query=SELECT 1; DELETE FROM t)",
    ],
)
def test_a_command_that_first_looks_and_then_changes_something_acts(called: str) -> None:
    assert acts(called)


@pytest.mark.parametrize(
    "called", ["bash(command=cd web && ls)", "bash(command=git status && git log)", "bash(command=ls) → a; rm is there"]
)
def test_a_command_that_only_looks_does_not_act(called: str) -> None:
    assert not acts(called)
