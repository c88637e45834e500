"""Acknowledged is present, whenever the plug is pulled: at every fail point, and at any time."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from everthread.core.failpoints import FAILPOINTS
from tests.crash.trial import KILLED, Trial

NewTrial = Callable[[int], Trial]

REACHES = {"migrate.begun": (1,), "migrate.before_commit": (1,), "migrate.step_done": (2,)}
"""A database is migrated once; at all other fail points the child is killed three times (see `reaches`)."""
RANDOM_SEEDS = range(100, 108)
RANDOM_KILLS = 8
"""Kills per seed, each at a random time of what is left of the script."""


def reaches(point: str) -> tuple[int, ...]:
    """Which reach ends the first child, which one ends the child that retries, and which one its successor."""
    return REACHES.get(point, (1, 2, 3))


@pytest.mark.parametrize("point", FAILPOINTS)
@pytest.mark.parametrize("store", ["sqlite"])
def test_i1_acknowledged_calls_survive_a_kill_at(point: str, store: str, sqlite_trial: NewTrial) -> None:
    trial = sqlite_trial(FAILPOINTS.index(point))
    for reach in reaches(point):
        trial.kill_at(point, reach)
        trial.check()
    trial.finish()
    trial.check(is_finished=True)


@pytest.mark.parametrize("seed", RANDOM_SEEDS)
@pytest.mark.parametrize("store", ["sqlite"])
def test_i1_acknowledged_calls_survive_kills_at_any_time(seed: int, store: str, sqlite_trial: NewTrial) -> None:
    kill_at_random(sqlite_trial, seed, RANDOM_KILLS)


def kill_at_random(new_trial: NewTrial, seed: int, kills: int) -> None:
    """Kill, look, retry and kill again, until the script is done; then begin anew."""
    dice = random.Random(seed)
    done = 0
    while done < kills:
        trial = new_trial(seed)
        while done < kills and trial.end_after(dice.uniform(0, 0.3)) == KILLED:
            done += 1
            trial.check()
        trial.finish()
        trial.check(is_finished=True)


def test_a_hundred_children_are_killed_on_sqlite() -> None:
    assert sum(len(reaches(point)) for point in FAILPOINTS) + len(RANDOM_SEEDS) * RANDOM_KILLS >= 100
