"""`everthread import`: conversations from files of any known format."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted
from everthread.core.errors import Invalid

if TYPE_CHECKING:
    from everthread.history.import_archive import ImportReport
    from everthread.imports.write import ImportCounts

_PIECE_BYTES = 1024 * 1024
_SHOWN_PROBLEMS = 20
_SHOWN_OF_ONE_FILE = 5
_FILE_OF_PROBLEM = re.compile(r"(?::\d+)?: ")
_EXPORTED = re.compile(rb'\{"conversation":\{"id":"|\{"seq":\d+,"id":"(?:[^"\\]|\\.)*","role":"[^"]*","revision":\d')
"""How the first line of our own JSON begins, which `export -f json` or `-f jsonl` wrote."""
_UNPACKED = re.compile(rb'\{"everthread":"archive"')


@command(app, "import")
async def import_history(
    cli: Invocation, path: Annotated[Path, typer.Argument(metavar="PATH", help="A file, a folder, or a zip.")]
) -> None:
    """Import conversations for the owner given by --owner. The format is detected; a second import adds nothing."""
    from everthread.imports.detect import Shape, detect  # noqa: PLC0415 - startup
    from everthread.imports.importer import Importer  # noqa: PLC0415

    if not path.exists():
        raise Invalid(f"{path} does not exist", field="path")
    if not path.is_file() and not path.is_dir():
        raise Invalid(f"{path} is a pipe or a device; only files and folders can be imported", field="path")
    detected = detect(path) if path.is_file() else None
    if path.is_file() and _begins_as(path, _UNPACKED):
        raise Invalid(
            f"is an archive that was unpacked; pack it again and import that: `zstd -o {path}.zst {path}`", field="path"
        )
    if path.is_file() and _begins_as(path, _EXPORTED):
        raise Invalid(
            "is an export of everthread for other programs, without branches and proofs; to import it, export an "
            "archive: `everthread export CONVERSATION -f archive -o FILE`",
            field="path",
        )
    async with cli.open(create=True) as et:
        if detected is not None and detected.shape is Shape.ARCHIVE:
            _print_archive(cli, await et.import_archive(path, owner=cli.owner))
            return
        with cli.out.progress("importing", _size(path)) as step:
            counts = await Importer(et, cli.owner, on_bytes=step).import_path(path)
    print_counts(cli, counts)
    if counts.problem_count and not (counts.messages or counts.known or counts.imported or counts.unchanged):
        raise Invalid(f"nothing in {path} could be read", field="path")


def _begins_as(path: Path, beginning: re.Pattern[bytes]) -> bool:
    with path.open("rb") as file:
        return beginning.match(file.read(_PIECE_BYTES)) is not None


def print_counts(cli: Invocation, counts: ImportCounts) -> None:
    """Print what an import gave, and what it could not read."""
    if cli.out.json:
        cli.out.document(asdict(counts))
        return
    changed = [(counts.revised, "revised"), (counts.removed, "removed by their agent and kept")]
    more = "".join(f", {count:,} {what}" for count, what in changed if count)
    cli.out.text(
        f"{counted(counts.messages, 'new message')} in {counted(len(counts.imported), 'new conversation')}{more}; "
        f"{counted(counts.known, 'message')} {'was' if counts.known == 1 else 'were'} here already "
        f"({counted(counts.files, 'file')} read{f', {counts.unchanged:,} unchanged' if counts.unchanged else ''})"
    )
    for file in counts.passed_over[:_SHOWN_PROBLEMS]:
        cli.out.note(f"passed over: {file}: no conversations")
    shown = _some_of_each_file(counts.problems)[:_SHOWN_PROBLEMS]
    for problem in shown:
        cli.out.note(f"not read: {problem}")
    if counts.problem_count > len(shown):
        cli.out.note(f"… and {counts.problem_count - len(shown):,} more (--json lists them)")


def _some_of_each_file(problems: Sequence[str]) -> list[str]:
    """No more than a few of one file, so that those of another are seen."""
    seen: Counter[str] = Counter()
    some = []
    for problem in problems:
        file = _FILE_OF_PROBLEM.split(problem, maxsplit=1)[0]
        seen[file] += 1
        if seen[file] <= _SHOWN_OF_ONE_FILE:
            some.append(problem)
    return some


def _print_archive(cli: Invocation, report: ImportReport) -> None:
    if cli.out.json:
        cli.out.document(report)
    else:
        cli.out.text(
            f"{counted(len(report.imported), 'conversation')} read in, {counted(report.messages, 'message')} in "
            f"{counted(report.entries, 'entry', 'entries')}; {len(report.skipped):,} already here"
        )


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(
        os.path.getsize(os.path.join(above, name))
        for above, _, names in os.walk(path)
        for name in names
        if os.path.isfile(os.path.join(above, name))
    )
