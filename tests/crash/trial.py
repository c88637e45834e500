"""One script on one database: let a child work, end it, and look at what is left.

What must hold after any end: each lane stands where its last acknowledged step left it, or one step further; every
answer was the right one; the chains hold, also against the heads that were handed out; what is erased has left the
files. And once the script was retried to its end: exactly what a run without crashes leaves, nothing twice.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import everthread
from everthread import Head
from tests.crash.child import read_acks
from tests.crash.script import Lane
from tests.crash.states import Expected, State, erased_words, expected, state_of
from tests.forensics import readable
from tests.forkserver import Child, ForkServer

KILLED = -int(signal.SIGKILL)


class NewTrial(Protocol):
    """Makes trials: of a seed, on a new database that has its tables or is to get them."""

    def __call__(self, seed: int, *, migrated: bool = False) -> Trial: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A database, the script that is worked on it, and what its children were told."""

    forkserver: ForkServer
    url: str
    seed: int
    acks: Path
    erases: int
    """How many messages each lane erases: a matter of milliseconds on SQLite, of a second on PostgreSQL."""
    files: Path | None = None
    """The folder that holds nothing but the database, where a database is files of ours."""

    def start(self, kill: str | None = None, *, patient: bool = False) -> Child:
        """A child that goes on with the script."""
        script = {"url": self.url, "seed": self.seed, "acks": str(self.acks), "erases": self.erases}
        return self.forkserver.start("tests.crash.child:run_script", **script, kill=kill, patient=patient)

    def kill_at(self, point: str, reach: int) -> None:
        """Pull the plug at a fail point; it must be reached that often."""
        child = self.start(f"{point}:{reach}")
        status = child.wait()
        assert status == KILLED, f"{point} was not reached {reach} times (ended with {status}):\n{child.said()}"

    def end_after(self, seconds: float, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal after a while, and say how the child ended; 0 when it had done all its work before."""
        child = self.start()
        time.sleep(seconds)
        child.send(number)
        status = child.wait()
        assert status in (0, -int(number)), f"ended with {status}:\n{child.said()}"
        return status

    def acknowledged(self) -> int:
        """How many steps were, up to now."""
        return self.acks.read_bytes().count(b"\n") if self.acks.exists() else 0

    def finish(self) -> None:
        """Retry to the end, in one go."""
        child = self.start()
        status = child.wait()
        assert status == 0, f"the retry ended with {status}:\n{child.said()}"

    def check(self, *, is_finished: bool = False) -> None:
        """Open what is left, and judge it."""
        lanes = expected(self.seed, self.erases)
        told = read_acks(self.acks)
        states = asyncio.run(self._look([lane.lane for lane in lanes], heads_in(told)))
        for lane in lanes:
            judge(lane, told.get(lane.lane.name, []), states[lane.lane.name], is_finished=is_finished)

    async def _look(self, lanes: Sequence[Lane], heads: Sequence[Head]) -> Mapping[str, State]:
        async with everthread.open(self.url, worker=False) as et:
            report = await et.verify(against=heads)
            assert report.ok, report.problems
            states = {lane.name: await state_of(et, lane) for lane in lanes}
            self._check_erased(erased_words(states, lanes))
            return states

    def _check_erased(self, gone: Collection[str]) -> None:
        """While the database is open: closing it would tidy up, and a program may run for months."""
        for path in self.files.iterdir() if self.files is not None else ():
            content = readable(path.read_bytes())
            assert [word for word in gone if word.encode() in content] == [], f"erased, and still in {path.name}"


def judge(lane: Expected, answers: list[Any], state: State, *, is_finished: bool) -> None:
    """One lane: its answers so far, and its state now."""
    steps = lane.lane.steps
    for step, answer, right in zip(steps, answers, json.loads(json.dumps(lane.answers)), strict=False):
        assert step.verb == "heads" or answer == right, f"a wrong answer to {step}"
    if lane.lane.is_off_record and state.get(lane.lane.name, {}).get("erased"):
        return  # by a child that came to close
    assert not is_finished or len(answers) == len(steps)
    possible = lane.states[len(answers) : len(answers) + 2]
    assert state in possible, difference(state, possible[0])


def difference(state: State, wanted: State) -> str:
    """Where a state is not the one that was acknowledged, in lines that can be read."""
    return "not what was acknowledged, nor one step further:\n" + "\n".join(_differences(state, wanted))


def _differences(state: State, wanted: State) -> Iterator[str]:
    for name in sorted({*state, *wanted}):
        found, right = state.get(name, {}), wanted.get(name, {})
        for part in sorted({*found, *right}):
            if found.get(part) != right.get(part):
                yield f"{name} {part}\n  is     {found.get(part)!r:.2000}\n  should {right.get(part)!r:.2000}"


def heads_in(told: Mapping[str, list[Any]]) -> list[Head]:
    """The longest head of each conversation that any child was handed."""
    longest: dict[str, Head] = {}
    for answers in told.values():
        for given in (item for answer in answers for item in answer if isinstance(item, dict)):
            head = Head(**given)
            if head.conversation_id not in longest or head.count >= longest[head.conversation_id].count:
                longest[head.conversation_id] = head
    return list(longest.values())
