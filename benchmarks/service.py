"""What the service costs and how fast it is: `everthread serve` in a process of its own, a scripted model, SQLite.

`tokens`: CPU of the server for one streamed token at 64 streams, the turn included: all that its process spends from
the first request to the last answer, by the tokens of all answers; beside a bare ASGI app that sends as many events.
`at once` has a model that never waits, `paced` one that gives 50 tokens a second.
`gaps`: 200 streams of 50 tokens a second: how long a reader waits for the next.
`first`: 20 streams begun within a second: how long until the first event is there.
`load`: 64 to 400 clients, each asking again as soon as it is answered, with and without a limit on turns at once:
turns a second, and how long until the first event is there, the time in line included.
`pages`: 50 messages out of 100,000, from anywhere.

    python -m benchmarks.service --out service.json

runs them all; `--small` at sizes for a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import everthread
from benchmarks import report
from benchmarks.context_cost import filled
from benchmarks.report import Row
from benchmarks.served import Server, Stream, bare, reading, serving, streamed

PIECE = "a token "
"""As long as a piece of the scripted model."""
CONVERSATION = "long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much is done."""

    streams: int = 64
    tokens: int = 1_000
    many_streams: int = 200
    many_tokens: int = 500
    begun: int = 20
    clients: Sequence[int] = (64, 200, 400)
    load_seconds: float = 15.0
    load_tokens: int = 100
    rounds: int = 3
    messages: int = 100_000
    pages: int = 400


SMALL = Sizes(
    streams=16,
    tokens=200,
    many_streams=40,
    many_tokens=100,
    begun=5,
    clients=(8, 16),
    load_seconds=2.0,
    rounds=1,
    messages=2_000,
    pages=50,
)
_PACE_SECONDS = 0.02


def tokens(sizes: Sizes) -> Sequence[Row]:
    """CPU of a token, beside the floor."""
    return [
        row for pace, name in ((0.0, "at once"), (_PACE_SECONDS, "paced")) for row in _token_rows(sizes, pace, name)
    ]


def _token_rows(sizes: Sizes, pace_seconds: float, name: str) -> Sequence[Row]:
    """Ours and the floor in turns, so that a busy moment concerns both."""
    with (
        _folder() as folder,
        serving(folder, text=PIECE * sizes.tokens, pace_seconds=pace_seconds) as ours,
        bare(tokens=sizes.tokens, pace_seconds=pace_seconds) as floor,
    ):
        spent: dict[str, list[float]] = {"everthread": [], "bare ASGI": []}
        events: dict[str, int] = {}
        for number in range(-1, sizes.rounds):  # what is imported and compiled in the first round is not a token's
            for system, server in (("everthread", ours), ("bare ASGI", floor)):
                before = server.cpu_seconds()
                streams = asyncio.run(_all(server, sizes.streams, f"round-{number}"))
                spent[system].append(server.cpu_seconds() - before)
                events[system] = sum(stream.events() for stream in streams)
    return [_token_row(f"{system}, {name}", sizes, spent[system][1:], events[system]) for system in spent]


def _token_row(system: str, sizes: Sizes, spent: Sequence[float], events: int) -> Row:
    made = sizes.streams * sizes.tokens
    return {
        "system": system,
        "streams": sizes.streams,
        "tokens an answer": sizes.tokens,
        "events an answer": events / sizes.streams,
        "least CPU us a token": 1e6 * min(spent) / made,
        "median CPU us a token": 1e6 * statistics.median(spent) / made,
    }


async def _all(server: Server, count: int, name: str, *, within_seconds: float = 0.0) -> list[Stream]:
    """So many answers at a time, each in a conversation of its own."""
    waits = [within_seconds * number / count for number in range(count)]
    asked = (streamed(server, f"{name}-{number}", after_seconds=wait) for number, wait in enumerate(waits))
    return await asyncio.gather(*asked)


def gaps(sizes: Sizes) -> Sequence[Row]:
    """How evenly tokens arrive at many readers."""
    with _folder() as folder, serving(folder, text=PIECE * sizes.many_tokens, pace_seconds=_PACE_SECONDS) as server:
        asyncio.run(_all(server, 4, "warm"))
        before, began = server.cpu_seconds(), time.perf_counter()
        streams = asyncio.run(_all(server, sizes.many_streams, "many", within_seconds=2.0))
        share = (server.cpu_seconds() - before) / (time.perf_counter() - began)
    waited = [1e3 * gap for stream in streams for gap in stream.gaps_seconds()]
    row = {"system": "50 tokens/s each", "streams": sizes.many_streams, "tokens an answer": sizes.many_tokens}
    return [{**row, **_percentiles(waited, "gap ms"), "share of a core %": 100 * share}]


def first(sizes: Sizes) -> Sequence[Row]:
    """How soon an answer begins."""
    with _folder() as folder, serving(folder, text=PIECE * 50, pace_seconds=_PACE_SECONDS) as server:
        asyncio.run(_all(server, 4, "warm"))
        waited: list[float] = []
        for number in range(sizes.rounds):
            streams = asyncio.run(_all(server, sizes.begun, f"begun-{number}", within_seconds=1.0))
            waited += [1e3 * stream.first_seconds() for stream in streams]
    return [{"system": "first event", "streams within 1 s": sizes.begun, **_percentiles(waited, "ms")}]


_LIMITS = (0, 64, 200)


def load(sizes: Sizes) -> Sequence[Row]:
    """What a limit on turns at once does when there are more clients than a core can serve."""
    return [
        _load_row(sizes, name, pace, clients, limit)
        for pace, name in ((0.0, "at once"), (_PACE_SECONDS, "paced"))
        for clients in sizes.clients
        for limit in _LIMITS
        if limit < clients
    ]


def _load_row(sizes: Sizes, name: str, pace_seconds: float, clients: int, limit: int) -> Row:
    variables = {
        "EVERTHREAD_MAX_RUNNING_TURNS": str(limit),
        "EVERTHREAD_MAX_WAITING_TURNS": str(clients),
        "EVERTHREAD_MAX_WAIT_SECONDS": "60",
    }
    with (
        _folder() as folder,
        serving(folder, text=PIECE * sizes.load_tokens, pace_seconds=pace_seconds, **variables) as server,
    ):
        asyncio.run(_all(server, 4, "warm"))
        before, began = server.cpu_seconds(), time.perf_counter()
        streams = asyncio.run(_asked_again_and_again(server, clients, sizes.load_seconds))
        seconds = time.perf_counter() - began
        share = (server.cpu_seconds() - before) / seconds
    waited = [1e3 * stream.first_seconds() for stream in streams]
    row = {"system": f"{name}, {clients} clients", "limit": limit or "none", "turns/s": len(streams) / seconds}
    return {**row, **_percentiles(waited, "first ms"), "share of a core %": 100 * share}


async def _asked_again_and_again(server: Server, clients: int, seconds: float) -> list[Stream]:
    """Clients that ask again as soon as they are answered, each in conversations of its own."""
    until = time.perf_counter() + seconds
    streams: list[Stream] = []

    async def ask(client: int) -> None:
        number = 0
        while time.perf_counter() < until:
            streams.append(await streamed(server, f"load-{client}-{number}"))
            number += 1

    await asyncio.gather(*map(ask, range(clients)))
    return streams


def pages(sizes: Sizes) -> Sequence[Row]:
    """How long a page of a long conversation takes."""
    with _folder() as folder:
        asyncio.run(_fill(folder, sizes.messages))
        with serving(folder, text=PIECE) as server:
            return asyncio.run(_paged(server, sizes))


async def _fill(folder: Path, messages: int) -> None:
    async with everthread.open(f"sqlite:///{folder}/et.db", worker=False) as et:
        await filled(et, CONVERSATION, messages)


async def _paged(server: Server, sizes: Sizes) -> Sequence[Row]:
    chosen = random.Random(7)
    place = f"/api/v1/conversations/{CONVERSATION}/messages?limit=50"
    reader, writer = await asyncio.open_connection(server.host, server.port)
    waited: list[float] = []
    before = 0.0
    for number in range(sizes.pages + 20):
        if number == 20:
            waited, before = [], server.cpu_seconds()
        where = chosen.choice(("after", "before"))
        began = time.perf_counter()
        writer.write(reading(server, f"{place}&{where}={chosen.randrange(100, sizes.messages)}"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
        waited.append(1e3 * (time.perf_counter() - began))
    spent = 1e3 * (server.cpu_seconds() - before) / sizes.pages
    writer.close()
    row = {"system": "a page of 50", "messages": sizes.messages, "pages": sizes.pages}
    return [{**row, **_percentiles(waited, "ms"), "mean CPU ms": spent}]


def _percentiles(values: Sequence[float], unit: str) -> dict[str, float]:
    ordered = sorted(values)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "most": 1.0}
    return {
        f"{name} {unit}": ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in shares.items()
    }


class _folder(tempfile.TemporaryDirectory[str]):
    def __enter__(self) -> Path:  # type: ignore[override]
        return Path(super().__enter__())


SCENARIOS: dict[str, Callable[[Sizes], Sequence[Row]]] = {
    "tokens": tokens,
    "gaps": gaps,
    "first": first,
    "load": load,
    "pages": pages,
}


def main() -> None:
    """Parse, run, show, and write when asked to."""
    parser = argparse.ArgumentParser(prog="benchmarks.service", description="What the service costs.")
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
