"""The front door over HTTP, and an import: what they cost until all background work is done.

`front_door_http`: an append of five messages and a streamed turn of 100 tokens, in a conversation that begins and in
one that has gone on for long, beside an app of sse-starlette that keeps nothing. `front_door_import`: 100,000 messages.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson
import psutil

import everthread
from benchmarks.front_door import PlainSqlite, new_file, until_idle
from benchmarks.report import Row
from benchmarks.seeded_talk import Talk
from benchmarks.served import CHAT, Server, bare_sse, serving

_TOKENS = 100
_PIECE = "a token "
_QUIET_SECONDS = 0.4
"""How often it is looked whether the server still works."""
_IDLE_SHARE = 0.03
"""Of a core; so much a server takes that has nothing to do."""
_IMPORT_BATCH = 500


def over_http(options: argparse.Namespace) -> Sequence[Row]:
    """Ours and the bare app."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        rows = []
        embedder = "none" if options.front_without_weights else "auto"
        with serving(Path(folder), text=_PIECE * _TOKENS, EVERTHREAD_EMBEDDER=embedder) as ours:
            client = _Client(ours)
            rows.append(_row("append of 5 messages of 0.4 KB", ours, _appends(client), options))
            turns = _turns(client, "c")
            rows.append(_row("streamed turn, at the beginning", ours, turns, options))
            for more in options.front_turns:
                for _ in range(more):
                    turns()
                rows.append(_row(f"streamed turn, after {more} more", ours, turns, options))
        with bare_sse(tokens=_TOKENS) as floor:
            rows.append(_row("sse-starlette that keeps nothing", floor, _turns(_Client(floor), "c"), options))
    return rows


class _Client:
    """One connection, kept as long as the server keeps it."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=60)

    def post(self, path: str, body: Any) -> bytes:
        try:
            self._connection.request("POST", path, orjson.dumps(body), {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
        except (ConnectionError, http.client.RemoteDisconnected):  # it was closed while the server was waited for
            self._connection.close()
            self._connection.request("POST", path, orjson.dumps(body), {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
        said = answer.read()
        assert answer.status < 300, said[:300]
        return said


def _appends(client: _Client) -> Callable[[], object]:
    talk = Talk(3)
    client.post("/api/v1/conversations", {"id": "appended"})
    return lambda: client.post("/api/v1/conversations/appended/messages", {"messages": talk.turn(5, 400)})


def _turns(client: _Client, conversation: str) -> Callable[[], object]:
    talk = Talk(4)
    return lambda: client.post(CHAT, {"conversation_id": conversation, "message": talk.prose(200)})


def _row(name: str, server: Server, call: Callable[[], object], options: argparse.Namespace) -> Row:
    calls, rounds = options.front_calls, []
    for number in range(options.front_rounds + 1):  # the first warms up
        before = _idle_cpu_seconds(server)
        for _ in range(calls):
            call()
        asked = server.cpu_seconds()
        done = _idle_cpu_seconds(server)
        if number:
            rounds.append(((asked - before) / calls * 1e3, (done - before) / calls * 1e3))
    return {
        "system": name,
        "calls": calls,
        "CPU ms in the calls": statistics.median(one for one, _ in rounds),
        "CPU ms to the end": statistics.median(other for _, other in rounds),
        "least": min(other for _, other in rounds),
        "RSS MB": psutil.Process(server.pid).memory_info().rss / 1e6,
    }


def _idle_cpu_seconds(server: Server) -> float:
    """What it has spent, once it spends hardly anything more."""
    before = server.cpu_seconds()
    while True:
        time.sleep(_QUIET_SECONDS)
        now = server.cpu_seconds()
        if now - before <= _IDLE_SHARE * _QUIET_SECONDS:
            return now
        before = now


def large_import(options: argparse.Namespace) -> Sequence[Row]:
    """Appended in batches, as an importer does, with defaults."""
    return asyncio.run(_large_import(options.front_import))


async def _large_import(count: int) -> list[Row]:
    talk, bare = Talk(5), PlainSqlite()
    batches = [
        [message for _ in range(_IMPORT_BATCH // 5) for message in talk.turn(5, 400)]
        for _ in range(count // _IMPORT_BATCH)
    ]
    cpu = time.process_time()
    for batch in batches:
        bare.append(batch)
    plain = time.process_time() - cpu
    async with everthread.open(f"sqlite:///{new_file()}") as et:
        conversation = await et.conversations.create(id="long")
        cpu, began = time.process_time(), time.perf_counter()
        for batch in batches:
            await conversation.append(batch)
        await until_idle(et)
        await et.search("nothing")
        spent, took = time.process_time() - cpu, time.perf_counter() - began
    return [
        {
            "system": f"{count} messages",
            "CPU s to the end": spent,
            "seconds": took,
            "plain CPU s": plain,
            "times plain": spent / plain,
        }
    ]
