"""Many conversations at once, over HTTP with the defaults, beside an app of sse-starlette that keeps nothing.

`conversations`: 1, 16, 64, 200 and 1,000 at a time on SQLite, answers of 100 tokens by a model that never waits: turns
a second, CPU of the server for a turn and for a token, how soon the first event is there, how often it syncs to disk.
A client that is told to come back later (503 with Retry-After, beyond `max_running_turns`) does; its waiting counts.
`processes`: the same work by 1, 2 and 4 processes on PostgreSQL (`serve --workers`), CPU of the servers and of the
database.

    python -m benchmarks.load --out load.json

runs both; `--small` at sizes for a busy machine. Syncs are counted in rounds of their own, by strace on all threads of
the server (fsync and fdatasync), or not at all where there is no strace or it may not look.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import report
from benchmarks.report import Row
from benchmarks.served import Server, Stream, bare_sse, processes_cpu_seconds, serving, streamed
from tests.postgres import OwnServer, own_server

PIECE = "a token "
"""As long as a piece of the scripted model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is done."""

    conversations: Sequence[int] = (1, 16, 64, 200, 1_000)
    tokens: int = 100
    turns: int = 200
    """In a round, at least; each conversation has one at least, and one after the other."""
    rounds: int = 3
    processes: Sequence[int] = (1, 2, 4)
    at_processes: int = 64
    """Conversations at a time, where processes are compared."""


SMALL = Sizes(conversations=(1, 16, 64), turns=32, rounds=1, processes=(1, 2), at_processes=16)


@dataclass(slots=True)
class Measured:
    """The rounds of one system."""

    turns: int = 0
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    database_cpu_seconds: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    wholes: list[float] = field(default_factory=list)
    refusals: int = 0
    syncs: float | None = None

    def row(self, system: str, tokens: int) -> Row:
        cpu = statistics.median(self.cpu_seconds) / self.turns
        database: Row = {}
        if self.database_cpu_seconds:
            database = {"database CPU ms a turn": 1e3 * statistics.median(self.database_cpu_seconds) / self.turns}
        return {
            "system": system,
            "turns a round": self.turns,
            "turns/s": self.turns / statistics.median(self.seconds),
            "CPU ms a turn": 1e3 * cpu,
            "CPU us a token": 1e6 * cpu / tokens,
            **database,
            "first p50 ms": 1e3 * _share(self.firsts, 0.5),
            "first p99 ms": 1e3 * _share(self.firsts, 0.99),
            "answer p99 ms": 1e3 * _share(self.wholes, 0.99),
            "told to wait, a turn": self.refusals / (self.turns * len(self.seconds)),
            "syncs a turn": self.syncs,
        }


def conversations(sizes: Sizes) -> Sequence[Row]:
    """Ours and the floor in turns, so that a busy moment concerns both."""
    rows: list[Row] = []
    with (
        _folder() as folder,
        serving(folder, text=PIECE * sizes.tokens) as ours,
        bare_sse(tokens=sizes.tokens) as floor,
    ):
        systems = {"everthread": ours, "sse-starlette": floor}
        for server in systems.values():
            _round(server, Measured(), 8, 2, "warm")  # what is imported and compiled at first is not a turn's
        for count in sizes.conversations:
            measured = {system: Measured() for system in systems}
            for number in range(sizes.rounds):
                for system, server in systems.items():
                    _round(server, measured[system], count, _turns_each(sizes, count), f"c{count}-{number}")
            measured["everthread"].syncs = _syncs_a_turn(ours, count, _turns_each(sizes, count), folder / "syncs")
            rows += [{"at a time": count, **one.row(system, sizes.tokens)} for system, one in measured.items()]
    return rows


def processes(sizes: Sizes) -> Sequence[Row]:
    """What more processes of one server cost and give."""
    counts = sizes.processes
    if not _can_have_workers():
        print("skipped: more than one process, because this `everthread serve` has no option --workers")
        counts = (1,)
    rows: list[Row] = []
    with _folder() as folder, own_server(folder) as postgres:
        for count in counts:
            options = ("--workers", str(count)) if count > 1 else ()
            with (
                postgres.database() as url,
                serving(folder, *options, text=PIECE * sizes.tokens, database=url) as server,
            ):
                each = _turns_each(sizes, sizes.at_processes)
                for number in range(2 * count):  # each process has to get warm
                    _round(server, Measured(), 8 * count, 2, f"warm{number}")
                measured = Measured()
                for number in range(sizes.rounds):
                    _round(server, measured, sizes.at_processes, each, f"p{number}", database=postgres)
            at = {"processes": count, "at a time": sizes.at_processes}
            rows.append({**at, **measured.row("everthread", sizes.tokens)})
    return rows


def _round(
    server: Server, measured: Measured, count: int, each: int, name: str, *, database: OwnServer | None = None
) -> None:
    """So many conversations at a time, each with so many turns, and what that took."""
    before, began = server.cpu_seconds(), time.perf_counter()
    database_before = processes_cpu_seconds(database.pid) if database else 0.0
    streams = asyncio.run(_talk(server, count, each, name))
    measured.seconds.append(time.perf_counter() - began)
    measured.cpu_seconds.append(server.cpu_seconds() - before)
    if database:
        measured.database_cpu_seconds.append(processes_cpu_seconds(database.pid) - database_before)
    measured.turns = len(streams)
    measured.firsts += [stream.first_seconds() for stream in streams]
    measured.wholes += [stream.whole_seconds() for stream in streams]
    measured.refusals += sum(stream.refusals for stream in streams)


async def _talk(server: Server, count: int, each: int, name: str) -> list[Stream]:
    async def one(number: int) -> list[Stream]:
        return [await streamed(server, f"{name}-{number}") for _ in range(each)]

    return [stream for streams in await asyncio.gather(*map(one, range(count))) for stream in streams]


def _turns_each(sizes: Sizes, count: int) -> int:
    return max(1, sizes.turns // count)


def _syncs_a_turn(server: Server, count: int, each: int, out: Path) -> float | None:
    """Of a round that nothing else is measured in, because being watched costs time."""
    program = shutil.which("strace")
    if program is None:
        print("skipped: syncs, because there is no strace")
        return None
    out.unlink(missing_ok=True)
    command = (program, "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", str(out), "-p", str(server.pid))
    watching = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert watching.stderr is not None
    said = watching.stderr.readline()
    if "attached" not in said:
        watching.kill()
        watching.communicate()
        print(f"skipped: syncs, because strace says {said.strip()!r}")
        return None
    asyncio.run(_talk(server, count, each, f"watched{count}"))
    watching.send_signal(signal.SIGINT)
    watching.communicate()
    return _calls(out.read_text()) / (count * each)


def _calls(table: str) -> int:
    """The sum of what `strace -c` counted: % time, seconds, usecs/call, calls, maybe errors, and the name."""
    rows = (line.split() for line in table.splitlines())
    return sum(int(row[3]) for row in rows if row and row[-1] in ("fsync", "fdatasync"))


def _can_have_workers() -> bool:
    asked = subprocess.run(
        (sys.executable, "-m", "everthread", "serve", "--help"), capture_output=True, text=True, check=True
    )
    return "--workers" in asked.stdout


def _share(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


SCENARIOS: dict[str, Callable[[Sizes], Sequence[Row]]] = {"conversations": conversations, "processes": processes}


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks.load", description="Many conversations at once.")
    parser.add_argument("scenario", nargs="*", choices=[*SCENARIOS, []], help="which (all when none is named)")
    parser.add_argument("--out", type=Path, help="write JSON here")
    parser.add_argument("--small", action="store_true", help="at sizes for a busy machine")
    options = parser.parse_args()
    results = {}
    for name in options.scenario or SCENARIOS:
        results[name] = SCENARIOS[name](SMALL if options.small else Sizes())
        report.show(name, results[name])
    if options.out:
        report.write(options.out, results)


if __name__ == "__main__":
    main()
