"""Ctrl-C, and a supervisor that says it is time: what was acknowledged is there, and a retry brings the rest."""

from __future__ import annotations

import random
from signal import SIGINT, SIGTERM, Signals

import pytest

from tests.crash.trial import NewTrial

SIGNALS = 5


@pytest.mark.parametrize("number", [SIGINT, SIGTERM], ids=lambda number: str(number.name))
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_i1_acknowledged_calls_survive_a_signal(store: str, number: Signals, new_trial: NewTrial) -> None:
    dice = random.Random(number)
    sent = 0
    while sent < SIGNALS:
        trial = new_trial(300)
        while sent < SIGNALS and trial.end_after(dice.uniform(0, 0.4), number) == -number:
            sent += 1
            trial.check()
        trial.finish()
        trial.check(is_finished=True)
