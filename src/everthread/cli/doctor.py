"""`everthread doctor`: what is in order, what is not, and what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from everthread.adapters.stores.database_url import is_postgres, sqlite_file
from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode
from everthread.cli.invocation import Invocation, require_postgres
from everthread.cli.output import format_age, format_bytes
from everthread.core.errors import EverthreadError

if TYPE_CHECKING:
    from everthread.core.workspaces import Workspaces
    from everthread.history.blob_check import BlobReport
    from everthread.settings import Settings


OLDEST_SQLITE = (3, 36, 0)
EXTRAS = {
    "postgres": "asyncpg",
    "s3": "s3fs",
    "langgraph": "langgraph",
    "langchain": "langchain",
    "meaning": "onnxruntime",
    "milvus": "pymilvus",
}
"""Each extra, and the module that shows it is installed."""
SPARE_BYTES = 100_000_000
SAMPLE = 25
SAMPLE_WORDS = 8
"""How many messages are drawn, and by how many of its words each must be found."""


class CheckState(StrEnum):
    """The result of a check."""

    OK = "ok"
    ABSENT = "absent"
    """Not there, and needed only by those who want it."""
    WARN = "warn"
    FAIL = "fail"
    DAMAGED = "damaged"
    """Failed, and stored data are not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check and its result."""

    name: str
    state: CheckState
    found: str
    advice: str = ""
    """What to do about it."""


def check_machine(settings: Settings) -> Iterator[Check]:
    """All checks that need no database."""
    yield Check(name="python", state=CheckState.OK, found=".".join(map(str, sys.version_info[:3])))
    yield check_sqlite()
    yield check_environment()
    yield check_extras()
    yield from check_weights(settings)
    yield check_meaning(settings)


def check_sqlite() -> Check:
    import sqlite3  # noqa: PLC0415 - startup

    found = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        return Check(
            name="sqlite", state=CheckState.FAIL, found=found, advice=f"use a Python with SQLite {oldest} or newer"
        )
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(text)")
    except sqlite3.OperationalError:
        return Check(
            name="sqlite",
            state=CheckState.FAIL,
            found=f"{found} without FTS5",
            advice="use a Python whose SQLite has FTS5",
        )
    finally:
        connection.close()
    return Check(name="sqlite", state=CheckState.OK, found=f"{found} with FTS5")


def check_environment() -> Check:
    """A mistyped variable would otherwise go unnoticed."""
    from everthread.settings import CONFIG_VARIABLE, PREFIX, variables  # noqa: PLC0415 - startup

    known = {CONFIG_VARIABLE, *variables().values()}
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)
    if unknown:
        return Check(
            name="environment",
            state=CheckState.WARN,
            found=f"unknown variables: {', '.join(unknown)}",
            advice="`everthread config` lists all settings",
        )
    return Check(name="environment", state=CheckState.OK, found="every EVERTHREAD_ variable is a setting")


def check_extras() -> Check:
    installed = [extra for extra, module in EXTRAS.items() if find_spec(module) is not None]
    missing = [extra for extra in EXTRAS if extra not in installed]
    return Check(
        name="extras",
        state=CheckState.OK,
        found=f"installed: {', '.join(installed) or 'none'}; not installed: {', '.join(missing) or 'none'}",
        advice=f"if you need one: pip install 'everthread[{missing[0]}]'" if missing else "",
    )


def check_weights(settings: Settings) -> Iterator[Check]:
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    for model in weights.CATALOGUE.values():
        state = weights.state_of(settings.models_dir, model)
        is_to_answer = settings.model is None and model.name == weights.SMALL_MODEL
        checked = {
            weights.WeightsState.ABSENT: CheckState.WARN if is_to_answer else CheckState.ABSENT,
            weights.WeightsState.DAMAGED: CheckState.WARN,
        }
        needed = "no other model is set" if is_to_answer else "if you need it"
        advice = {
            weights.WeightsState.ABSENT: f"{needed}: everthread models fetch {model.name}",
            weights.WeightsState.DAMAGED: f"everthread models fetch {model.name}",
        }
        yield Check(
            name=f"model {model.name}",
            state=checked.get(state, CheckState.OK),
            found=str(state),
            advice=advice.get(state, ""),
        )


def check_meaning(settings: Settings) -> Check:
    """Which embedder search by meaning uses; whether it works shows when it is first asked."""
    from everthread.adapters.embedders import AUTO, embedder_from  # noqa: PLC0415 - startup
    from everthread.core.errors import EverthreadError  # noqa: PLC0415

    try:
        embedder = embedder_from(settings.embedder, lambda: settings.models_dir)
    except EverthreadError as problem:
        return Check(name="meaning", state=CheckState.FAIL, found="the embedder cannot be used", advice=str(problem))
    if embedder is not None:
        return Check(name="meaning", state=CheckState.OK, found=f"{embedder.name} ({settings.embedder})")
    how = "pip install 'everthread[meaning]', then everthread models fetch minilm"
    advice = f"if you need it: {how}" if settings.embedder == AUTO else ""
    return Check(name="meaning", state=CheckState.OK, found="search by words only", advice=advice)


def check_vectors(about: str, parts: Mapping[str, int]) -> Check:
    """How many vectors each embedder made; only those of the present one are searched."""
    held = ", ".join(f"{count:,} by {name}" for name, count in parts.items()) or "none yet"
    return Check(name="vectors", state=CheckState.OK, found=f"{about}: {held}")


def check_disk(folder: Path, database_bytes: int) -> Check:
    """An erase rewrites the whole file next to itself, so it needs as much space again."""
    free = shutil.disk_usage(folder).free
    wanted = 2 * database_bytes + SPARE_BYTES
    return Check(
        name="disk",
        state=CheckState.OK if free >= wanted else CheckState.WARN,
        found=f"{format_bytes(free)} free",
        advice="" if free >= wanted else f"free some space: erase and restore need {format_bytes(wanted)}",
    )


# --- a database of either kind, once the figures are read --------------------------------------------------------


def check_tables(version: int | None, newest: int) -> Check:
    found = "none" if version is None else f"version {version}"
    if version is None or version < newest:
        return Check(name="tables", state=CheckState.WARN, found=found, advice="everthread migrate")
    if version > newest:
        return Check(name="tables", state=CheckState.FAIL, found=found, advice="upgrade everthread")
    return Check(name="tables", state=CheckState.OK, found=found)


def check_erasures(unfinished: int, done: Iterable[Sequence[Any]], workspaces: Workspaces) -> Check:
    """Whether the database has no trace of what was erased, and no erased conversation has files."""
    from everthread.core.clock import from_micros  # noqa: PLC0415 - startup

    erased = ((owner, id, from_micros(at)) for owner, id, message, at in done if message is None and id is not None)
    if left := sum(1 for _ in workspaces.used_before(erased)):
        return Check(
            name="erasures",
            state=CheckState.WARN,
            found=f"files of {left} erased conversations are still in {workspaces.root}",
            advice="any command that opens the database removes them, or says what stands in the way",
        )
    if unfinished:
        return Check(
            name="erasures",
            state=CheckState.WARN,
            found=f"{unfinished} unfinished: their text may still be in the files",
            advice="any command that opens the database completes them, such as everthread stats",
        )
    return Check(name="erasures", state=CheckState.OK, found="all finished")


def check_holds(values: Iterable[bytes]) -> Check:
    """The legal holds. They are reported, and are not a problem."""
    from everthread.history.holds import standing  # noqa: PLC0415 - startup

    count = standing(values)
    found = f"{count} stand (everthread hold ls --all); an erase of what they are on is refused" if count else "none"
    return Check(name="legal holds", state=CheckState.OK, found=found)


def check_jobs(*, waiting: int, dead: int, oldest_at: int | None) -> Check:
    """Dead jobs stay until somebody looks; `oldest_at` is when the oldest was put that waits."""
    age_seconds = 0.0 if oldest_at is None else max(0.0, time.time() - oldest_at / 1e6)
    oldest = "" if oldest_at is None else f", the oldest for {format_age(age_seconds)}"
    found = f"{waiting:,} waiting{oldest}, {dead:,} dead"
    advice = "everthread jobs --dead shows their errors; everthread jobs --retry ID or --retry-all tries again"
    return Check(
        name="jobs", state=CheckState.WARN if dead else CheckState.OK, found=found, advice=advice if dead else ""
    )


def check_index(*, indexed: int, wanted: int, waiting: int = 0) -> Check:
    """Waiting messages are indexed by the next search, so they are not missing."""
    wait = f"; {waiting:,} wait for the next search" if waiting else ""
    return _index_check("search index", indexed == wanted, f"{indexed:,} messages of {wanted:,}{wait}")


def check_sample(*, found: int, drawn: int) -> Check:
    """A message must be found by its own words."""
    return _index_check("search sample", found == drawn, f"{found} of {drawn} are found by their own words")


def check_blobs(report: BlobReport) -> Check:
    """A missing blob is a message whose text is gone."""
    lost = [*report.missing, *report.damaged]
    if lost:
        return Check(
            name="blobs",
            state=CheckState.DAMAGED,
            found=f"{len(report.missing)} missing and {len(report.damaged)} damaged of {report.referred}: {lost[0]} …",
            advice="restore the blob store from its copy; `everthread verify` names every message",
        )
    if report.unused:
        return Check(
            name="blobs",
            state=CheckState.WARN,
            found=f"{report.referred} in order; {len(report.unused)} that nothing refers to",
            advice="everthread sweep deletes those that are older than a day",
        )
    return Check(name="blobs", state=CheckState.OK, found=f"{report.referred} in order")


def _index_check(name: str, is_good: bool, found: str) -> Check:
    if is_good:
        return Check(name=name, state=CheckState.OK, found=found)
    advice = "the log itself is whole if `everthread verify` says so; restore a backup to have the index back"
    return Check(name=name, state=CheckState.DAMAGED, found=found, advice=advice)


@command(app)
async def doctor(cli: Invocation) -> None:
    """Check the installation and the database, changing nothing. Exit code 5 if stored data are damaged, 1 if another
    check fails."""

    checks = [*check_machine(cli.settings), *[check async for check in _check_database(cli)]]
    if cli.settings.blobs is not None and not any(
        check.state in (CheckState.FAIL, CheckState.DAMAGED) for check in checks
    ):
        async with cli.open() as et:
            checks.append(check_blobs(await et.check_blobs()))
    if cli.settings.vectors is not None:
        checks.append(await _check_external_vectors(cli.settings.vectors))
    if cli.out.json:
        for check in checks:
            cli.out.document(asdict(check))
    else:
        cli.out.table(("", "what", "found", "what to do"), [(c.state, c.name, c.found, c.advice) for c in checks])
    states = {check.state for check in checks}
    if CheckState.DAMAGED in states:
        raise typer.Exit(ExitCode.INTEGRITY)
    if CheckState.FAIL in states:
        raise typer.Exit(ExitCode.ERROR)


async def _check_external_vectors(address: str) -> Check:
    """Vectors outside the database; those inside are checked with it."""
    from everthread.adapters.vectors import vectors_at  # noqa: PLC0415 - startup

    try:
        vectors = vectors_at(address)
        try:
            return check_vectors(vectors.about, await vectors.models())
        finally:
            await vectors.close()
    except EverthreadError as problem:
        advice = "check that it can be reached; until then search is by words only"
        return Check(name="vectors", state=CheckState.FAIL, found=str(problem), advice=advice)


async def _check_database(cli: Invocation) -> AsyncIterator[Check]:
    from everthread.bootstrap import workspaces_of  # noqa: PLC0415 - startup

    workspaces = workspaces_of(cli.url, cli.settings)
    file = sqlite_file(cli.url)
    if file is not None:
        from everthread.cli.doctor_sqlite import check_file  # noqa: PLC0415 - startup

        for check in check_file(file, workspaces):
            yield check
    elif is_postgres(cli.url):
        require_postgres()
        from everthread.cli.doctor_postgres import check_server  # noqa: PLC0415 - an extra

        async for check in check_server(cli.url, workspaces):
            yield check
    else:
        async with cli.open():
            yield Check(name="database", state=CheckState.OK, found="in memory")
