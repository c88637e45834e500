"""What an append costs on PostgreSQL: `python -m benchmarks.append_postgres [TURNS]`.

Turns of five messages by ids of their own, on a server that this program starts. CPU of the client and of the server's
processes for each turn, and the bytes that a message takes in tables and indexes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import psutil

import everthread
from tests.postgres import OwnServer, own_server

OWNERS = ("local", "3f2b8a54-9c1d-4e7f-8a6b-0d5e4c3b2a19")


def _server_seconds(server: OwnServer) -> float:
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    return float(sum(times.user + times.system for times in (process.cpu_times() for process in processes)))


async def _measure(server: OwnServer, url: str, owner: str, turns: int) -> None:
    async with everthread.open(url, worker=False, embedder=None) as et:
        conversation = await et.conversations.create(owner=owner)
        for measured in (50, turns):  # the first ones warm up
            client, busy = time.process_time(), _server_seconds(server)
            for number in range(measured):
                words = " ".join(f"word{number * step % 997}" for step in range(60))
                await conversation.append(
                    [{"role": "user", "content": f"{words} {part}", "id": str(uuid4())} for part in range(5)]
                )
        client, busy = (time.process_time() - client) / turns, (_server_seconds(server) - busy) / turns
    size = server.run_sql(
        "SELECT sum(pg_total_relation_size(name)) FROM unnest(ARRAY['entries', 'words']) AS name",
        url.partition("@/")[2].partition("?")[0],
    )
    per_message = int(size) / (5 * (turns + 50))
    print(f"owner of {len(owner)}: client {client * 1e3:.2f} ms, server {busy * 1e3:.2f} ms, {per_message:.0f} bytes")


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as folder, own_server(Path(folder)) as server:
        for owner in OWNERS:
            with server.database() as url:
                asyncio.run(_measure(server, url, owner, turns))


if __name__ == "__main__":
    main()
