"""The judge of killed streams finds what it is there to find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.crash.stream_judge import Ending, Reading, Run, judge
from tests.http.served import Event

QUESTION = "Question?"


def _told() -> list[Event]:
    pieces = [Event(number, "token", {"message_id": "m", "text": f"{number} "}) for number in range(2, 6)]
    end = Event(6, "done", {"state": "complete", "answer_id": "m", "text": "2 3 4 5 "})
    return [Event(1, "accepted", {"turn_id": "t"}), *pieces, end]


def _read(after: int, to: int, ending: Ending = Ending.ENDED) -> Reading:
    return Reading(after=after, events=_told()[after:to], ending=ending)


def _good_run() -> Run:
    """Broken once, left once, followed to the end; read again as a whole, and after its end."""
    whole = _read(0, 6)
    return Run(
        path="/stream",
        conversation="c",
        ends=frozenset({"done", "failed"}),
        question=QUESTION,
        readings=[_read(0, 3, Ending.BROKEN), _read(3, 5, Ending.LEFT), _read(5, 6), whole, _read(6, 6)],
        whole=whole,
        state="complete",
        texts={"m": "2 3 4 5 "},
        questions=[QUESTION],
    )


def _kinds(run: Run) -> set[str]:
    return {violation.kind for violation in judge(run)}


def test_a_run_that_keeps_all_promises_is_not_blamed() -> None:
    assert judge(_good_run()) == []


def _another_event(run: Run) -> None:
    run.readings[0].events[1] = Event(2, "done", {})


def _a_number_again(run: Run) -> None:
    run.readings[0].events.append(_told()[2])


def _one_left_out(run: Run) -> None:
    del run.readings[0].events[1]


def _one_beyond_the_whole(run: Run) -> None:
    run.readings[0].events.append(Event(7, "token", {"message_id": "m", "text": "x"}))


def _no_end(run: Run) -> None:
    run.readings[2].events.clear()


def _no_end_in_the_whole(run: Run) -> None:
    assert run.whole is not None
    run.whole.events.pop()


def _two_ends(run: Run) -> None:
    run.readings[2].events.append(Event(7, "failed", {}))


def _something_after_the_end(run: Run) -> None:
    run.readings[-1].events.append(_told()[-1])


def _other_text_stored(run: Run) -> None:
    run.texts = {"m": "2 3 4 "}


def _still_running(run: Run) -> None:
    run.state = "running"


def _question_gone(run: Run) -> None:
    run.questions = ["Another?"]


def _question_twice(run: Run) -> None:
    run.questions = [QUESTION, QUESTION]


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (_another_event, "two meanings"),
        (_a_number_again, "order"),
        (_one_left_out, "gap"),
        (_one_beyond_the_whole, "vanished"),
        (_no_end, "end"),
        (_no_end_in_the_whole, "end"),
        (_two_ends, "end"),
        (_something_after_the_end, "order"),
        (_other_text_stored, "text"),
        (_still_running, "state"),
        (_question_gone, "lost"),
        (_question_twice, "twice"),
    ],
)
def test_each_broken_promise_is_found(spoil: Callable[[Run], Any], kind: str) -> None:
    run = _good_run()
    spoil(run)
    assert kind in _kinds(run)
