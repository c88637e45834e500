"""Two servers on one PostgreSQL: how soon each knows what happens on the other.

`follow`: from when a client of A has an event to when a follower on B has it (both clocks are this process's).
`cancel`: from asking B to cancel a turn on A to the end event at A's client.
`next`: from the end of a turn on A to the first event of the turn that waited for it on B.
`interrupt`: from asking B with `when_busy=interrupt` to the end event of A's turn, and to the first event of B's.
`death`: from `kill -9` of A to the end event of its turn, at a follower on B.

    python -m benchmarks.servers --out servers.json

runs them all; `--small` with few samples.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import tempfile
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import report
from benchmarks.report import Row
from benchmarks.served import CHAT, Server, Stream, serving, written
from tests.postgres import OwnServer, own_server

PIECE = "a token "
PACE_SECONDS = 0.02
_EVENT = re.compile(rb"id: (\d+)\nevent: (\w+)\n")
_TURN = re.compile(rb"content-location: (\S+)/stream\r\n", re.IGNORECASE)
_SOON_SECONDS = 0.005
LONGEST_SECONDS = 60.0
"""A turn whose server is dead and that is not closed by then is counted as not closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is done."""

    samples: int = 200
    deaths: int = 20
    at_a_time: int = 5
    """So many conversations, so that what takes seconds does not take an hour."""


SMALL = Sizes(samples=4, deaths=1, at_a_time=2)


class Pair(NamedTuple):
    """Two servers, and what they share."""

    a: Server
    b: Server


Sample = Callable[[Pair, str], Awaitable[dict[str, list[float]]]]


class Arrived(NamedTuple):
    """An event, and when it was there."""

    number: int
    kind: str
    at: float


def arrivals(stream: Stream) -> list[Arrived]:
    """The events that a stream has brought so far."""
    ends = list(accumulate(len(data) for _, data in stream.arrived))
    whole = b"".join(data for _, data in stream.arrived)
    return [
        Arrived(int(found[1]), found[2].decode(), stream.arrived[bisect_right(ends, found.end() - 1)][0])
        for found in _EVENT.finditer(whole)
    ]


@asynccontextmanager
async def _requested(server: Server, method: str, path: str, body: Any = None) -> AsyncIterator[Stream]:
    """A response as it comes."""
    request = written(server, method, path, b"" if body is None else json.dumps(body).encode())
    transport, stream = await asyncio.get_running_loop().create_connection(
        lambda: Stream(request), server.host, server.port
    )
    try:
        yield stream
    finally:
        if not stream.ended.cancel() and not stream.ended.cancelled():
            stream.ended.exception()  # of a server that was killed: nobody else asks for it
        transport.close()


def _chat(server: Server, conversation: str, **options: Any) -> Any:
    return _requested(server, "POST", CHAT, {"message": "Go on.", "conversation_id": conversation, **options})


async def _until(stream: Stream, is_there: Callable[[Arrived], bool], count: int = 1) -> Arrived:
    """The event that is the first of this kind, or the one after so many of them."""
    while True:
        found = [event for event in arrivals(stream) if is_there(event)]
        if len(found) >= count:
            return found[count - 1]
        if stream.ended.done():
            raise ConnectionError(f"ended without it: {arrivals(stream)[-3:]} {stream.arrived[-1:]}")
        await asyncio.sleep(_SOON_SECONDS)  # when it arrived is noted by the stream, so this costs no precision


def _is_token(event: Arrived) -> bool:
    return event.kind == "token"


def _is_end(event: Arrived) -> bool:
    return event.kind in ("done", "failed")


def _is_begun(event: Arrived) -> bool:
    """Something of the turn itself: that it was accepted is said while it waits."""
    return event.kind != "accepted"


def _some() -> int:
    """So many tokens, a different number each time: what a server looks for every so often, it must not always see at
    the same moment of its turn."""
    return random.randint(5, 45)


async def _place(stream: Stream) -> str:
    """Where the turn is."""
    await _until(stream, lambda _: True)
    found = _TURN.search(stream.arrived[0][1])
    assert found is not None, stream.arrived[0]
    return found[1].decode()


# -- one sample each ---------------------------------------------------------------------------------------------


async def follow(pair: Pair, name: str) -> dict[str, list[float]]:
    """Each event that both get live: those from before B was asked come at once, and say nothing."""
    async with _chat(pair.a, name) as own:
        place = await _place(own)
        async with _requested(pair.b, "GET", f"{place}/stream") as other:
            first = await _until(other, _is_token)
            await asyncio.gather(_until(own, _is_end), _until(other, _is_end))
            there = {event.number: event.at for event in arrivals(other)}
            live = [event for event in arrivals(own) if event.at > first.at]
    return {"follow": [there[event.number] - event.at for event in live]}


async def cancel(pair: Pair, name: str) -> dict[str, list[float]]:
    async with _chat(pair.a, name) as own:
        place = await _place(own)
        await _until(own, _is_token, _some())
        asked_at = time.perf_counter()
        async with _requested(pair.b, "POST", f"{place}/cancel", {}):
            end = await _until(own, _is_end)
    return {"cancel": [end.at - asked_at]}


async def next_turn(pair: Pair, name: str) -> dict[str, list[float]]:
    async with _chat(pair.a, name) as own:
        await _until(own, _is_token, 5)
        async with _chat(pair.b, name, when_busy="enqueue") as waiting:
            end = await _until(own, _is_end)
            begun = await _until(waiting, _is_begun)
            await _until(waiting, _is_end)
    return {"next": [begun.at - end.at]}


async def interrupt(pair: Pair, name: str) -> dict[str, list[float]]:
    async with _chat(pair.a, name) as own:
        await _until(own, _is_token, _some())
        asked_at = time.perf_counter()
        async with _chat(pair.b, name, when_busy="interrupt") as other:
            end = await _until(own, _is_end)
            begun = await _until(other, _is_begun)
            await _until(other, _is_end)
    return {"interrupt: A's turn ends": [end.at - asked_at], "interrupt: B's turn begins": [begun.at - asked_at]}


async def death(pair: Pair, name: str) -> dict[str, list[float]]:
    async with _chat(pair.a, name) as own:
        place = await _place(own)
        async with _requested(pair.b, "GET", f"{place}/stream") as other:
            await _until(other, _is_token, _some())
            killed_at = time.perf_counter()
            os.kill(pair.a.pid, signal.SIGKILL)
            try:
                async with asyncio.timeout(LONGEST_SECONDS):
                    end = await _until(other, _is_end)
            except TimeoutError:
                return {"death": []}
    return {"death": [end.at - killed_at]}


# -- all of them -------------------------------------------------------------------------------------------------

SAMPLES: dict[str, tuple[Sample, int]] = {
    "follow": (follow, 50),
    "cancel": (cancel, 400),
    "next": (next_turn, 20),
    "interrupt": (interrupt, 100),
    "death": (death, 2_000),
}
"""How a sample is made, and how many tokens a model says for it: enough not to be done before."""


def measure(name: str, sizes: Sizes, postgres: OwnServer) -> Sequence[Row]:
    """All samples of one kind."""
    sample, tokens = SAMPLES[name]
    with tempfile.TemporaryDirectory() as folder, postgres.database() as url, ExitStack() as stack:

        def start() -> Server:
            return stack.enter_context(
                serving(Path(folder), text=PIECE * tokens, pace_seconds=PACE_SECONDS, database=url)
            )

        if name == "death":
            return asyncio.run(_deaths(start, sizes))
        return [_row(what, values) for what, values in asyncio.run(_samples(start, sample, sizes)).items()]


async def _samples(start: Callable[[], Server], sample: Sample, sizes: Sizes) -> dict[str, list[float]]:
    """Some lanes beside each other, both ways in turns, until there are enough."""
    one, other = start(), start()
    found: dict[str, list[float]] = {}

    async def lane(number: int) -> None:
        count = 0
        while not found or min(map(len, found.values())) < sizes.samples:
            pair = Pair(one, other) if count % 2 else Pair(other, one)
            for what, values in (await sample(pair, f"lane{number}-{count}")).items():
                found.setdefault(what, []).extend(values)
            count += 1

    for server in (one, other):  # what is imported and compiled at first is no lag
        await sample(Pair(server, other if server is one else one), f"warm-{server.port}")
    await asyncio.gather(*map(lane, range(sizes.at_a_time)))
    return found


async def _deaths(start: Callable[[], Server], sizes: Sizes) -> list[Row]:
    """Some servers beside each other, each killed once, and one that lives and is asked."""
    living = start()
    found: list[float] = []
    for first in range(0, sizes.deaths, sizes.at_a_time):
        numbers = range(first, min(first + sizes.at_a_time, sizes.deaths))
        pairs = [Pair(await asyncio.to_thread(start), living) for _ in numbers]
        samples = await asyncio.gather(*(death(pair, f"death{n}") for pair, n in zip(pairs, numbers, strict=True)))
        found += [seconds for sample in samples for seconds in sample["death"]]
    never = {f"not closed in {LONGEST_SECONDS:.0f} s": sizes.deaths - len(found)}
    return [{**(_row("death", found) if found else {"system": "death", "samples": 0}), **never}]


def _row(what: str, values: Sequence[float]) -> Row:
    ordered = sorted(1e3 * value for value in values)
    shares = {"p50 ms": 0.5, "p95 ms": 0.95, "p99 ms": 0.99, "most ms": 1.0}
    return {
        "system": what,
        "samples": len(ordered),
        "least ms": ordered[0],
        **{name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in shares.items()},
    }


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks.servers", description="How soon one server knows of another.")
    parser.add_argument("scenario", nargs="*", choices=[*SAMPLES, []], help="which (all when none is named)")
    parser.add_argument("--out", type=Path, help="write JSON here")
    parser.add_argument("--small", action="store_true", help="with few samples")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder, own_server(Path(folder)) as postgres:
        for name in options.scenario or SAMPLES:
            results[name] = measure(name, SMALL if options.small else Sizes(), postgres)
            report.show(name, results[name])
    if options.out:
        report.write(options.out, results)


if __name__ == "__main__":
    main()
