"""What histories of agents cost: importing, watching idle files, and how soon a new line is found.

`import`: a folder of Claude Code sessions with 100,000 messages, by `everthread import` in a process of its own.
`again`: the same once more.
`idle`: the CPU time that `everthread watch` takes while none of 5,000 files changes, as a share of one core, after it
has read them all. What that reading takes is in `import`.
`found`: from the write of a line to the answer of a search that finds it, each search in this process.

    python -m benchmarks.imports --out imports.json

runs them all; `--small` with a tenth of the sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from random import Random

import psutil

import everthread
from benchmarks import report
from benchmarks.report import Row

_WORDS = (
    "the login test fails because cookie name session token file reads 数据库 迁移 完成 error returned value".split()
)
_PER_SESSION = 200
_LINE_SAMPLES = 10


def _line(session: str, number: int, parent: str | None, chance: Random) -> tuple[str, bytes]:
    id = str(uuid.UUID(int=chance.getrandbits(128)))
    text = " ".join(chance.choices(_WORDS, k=60))
    role = ("user", "assistant")[number % 2]
    content: object = text if role == "user" else [{"type": "text", "text": text}]
    line = {
        "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": "/srv/ada/project",
        "sessionId": session, "version": "2.0.1", "gitBranch": "main", "type": role,
        "message": {"role": role, "content": content}, "uuid": id, "timestamp": "2026-03-01T10:00:00.000Z",
    }  # fmt: skip
    return id, json.dumps(line, ensure_ascii=False).encode() + b"\n"


def write_sessions(home: Path, sessions: int, per_session: int) -> int:
    """Write sessions of Claude Code below a home, and return their bytes."""
    chance, size = Random(1), 0
    for number in range(sessions):
        session = str(uuid.UUID(int=chance.getrandbits(128)))
        folder = home / ".claude" / "projects" / f"p{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        lines, parent = [], None
        for at in range(per_session):
            parent, line = _line(session, at, parent, chance)
            lines.append(line)
        content = b"".join(lines)
        (folder / f"{session}.jsonl").write_bytes(content)
        size += len(content)
    return size


def _program(home: Path, *arguments: str) -> psutil.Popen:
    environment = {**os.environ, "HOME": str(home), "EVERTHREAD_DATABASE": f"sqlite:///{home / 'et.db'}"}
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        environment.pop(name, None)
    return psutil.Popen(
        [sys.executable, "-m", "everthread", *arguments], env=environment, stdout=subprocess.PIPE, cwd=home
    )


def _watch(home: Path) -> psutil.Popen:
    """`everthread watch` as it is on every day but the first: what is there was read and indexed before it starts.
    Returns once it has looked at all files."""
    first = _program(home, "watch", "--once", "--json")
    first.communicate()
    process = _program(home, "watch", "--json")
    while "messages" not in json.loads(process.stdout.readline()):  # where the page is comes before that
        pass
    time.sleep(5)  # the look that follows the start, and what is left to be indexed
    return process


def measure_import(home: Path, messages: int) -> list[Row]:
    """Import the same folder twice."""
    size = write_sessions(home, messages // _PER_SESSION, _PER_SESSION)
    rows: list[Row] = []
    for system in ("import", "again"):
        started, peak, cpu = time.perf_counter(), 0, 0.0
        process = _program(home, "import", str(home / ".claude"), "--json")
        while process.poll() is None:
            try:
                used = process.cpu_times()
                cpu = used.user + used.system
                peak = max(peak, process.memory_info().rss)
            except psutil.Error:
                break
            time.sleep(0.05)
        counts = json.loads(process.stdout.read())
        rows.append({
            "system": system, "messages": counts["messages"], "known": counts["known"], "source_mb": size / 1e6,
            "seconds": time.perf_counter() - started, "cpu_seconds": cpu, "peak_mb": peak / 1e6,
            "database_mb": (home / "et.db").stat().st_size / 1e6,
        })  # fmt: skip
    return rows


def measure_idle(home: Path, files: int, seconds: float) -> list[Row]:
    """Watch files that do not change."""
    write_sessions(home, files, 4)
    process = _watch(home)
    try:
        before, started = process.cpu_times(), time.perf_counter()
        time.sleep(seconds)
        after, lasted = process.cpu_times(), time.perf_counter() - started
        used = after.user + after.system - before.user - before.system
        memory = process.memory_info().rss
    finally:
        process.terminate()
        process.wait()
    share = {"files": files, "seconds": lasted, "cpu_seconds": used, "percent_of_a_core": 100 * used / lasted}
    return [{"system": "idle", **share, "resident_mb": memory / 1e6}]


async def measure_found(home: Path) -> list[Row]:
    """Write lines to a watched file, and search until each is found."""
    write_sessions(home, 200, 20)
    path = next((home / ".claude").rglob("*.jsonl"))
    process = await asyncio.to_thread(_watch, home)
    taken = []
    try:
        async with everthread.open(f"sqlite:///{home / 'et.db'}", worker=False) as et:
            for number in range(_LINE_SAMPLES):
                word = f"needle{number}x{os.getpid()}"
                _, line = _line(path.stem, number, None, Random(1000 + number))
                started = time.perf_counter()
                with path.open("ab") as file:
                    file.write(line.replace(b'"content": ', b'"content": "' + word.encode() + b'", "was": '))
                while not await et.search(word):  # noqa: ASYNC110 - another process writes it
                    await asyncio.sleep(0.02)
                taken.append(time.perf_counter() - started)
                await asyncio.sleep(1.5)
    finally:
        process.terminate()
        process.wait()
    taken.sort()
    return [{"system": "found", "samples": len(taken), "median_s": taken[len(taken) // 2], "max_s": taken[-1]}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    scale = 10 if given.small else 1
    results: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        homes = [Path(folder) / name for name in ("import", "idle", "found")]
        for home in homes:
            home.mkdir()
        results["import"] = measure_import(homes[0], 100_000 // scale)
        report.show("import", results["import"])
        results["found"] = asyncio.run(measure_found(homes[2]))
        report.show("found", results["found"])
        results["idle"] = measure_idle(homes[1], 5_000 // scale, 150.0 / scale)
        report.show("idle", results["idle"])
    if given.out is not None:
        report.write(given.out, results)


if __name__ == "__main__":
    main()
