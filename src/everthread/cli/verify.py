"""Prove that nothing was lost or changed: heads, verify."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted
from everthread.cli.prove import NEEDS_EXTRA, KeyOption, read_key, signed
from everthread.core.errors import Invalid, MissingExtra
from everthread.core.nouns import Head, Ref, VerifyReport
from everthread.core.plain_words import not_json
from everthread.core.ports import Log, Store
from everthread.prove import Wrong, check_signature, public_key_of

if TYPE_CHECKING:
    from everthread.core.entries import Entry


@command(app)
async def heads(cli: Invocation, key: KeyOption = None) -> None:
    """Print the head of every log, to be kept elsewhere: one JSON line each, for `verify --against`."""
    pem = None if key is None else read_key(key)
    async with cli.open() as et:
        for head in await et.heads():
            cli.out.document(asdict(head) if pem is None else signed(asdict(head), pem))


@command(app)
async def verify(
    cli: Invocation,
    against: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Output of an earlier `heads`: nothing in it may be missing.")
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The public key (PEM) that must have signed each head."),
    ] = None,
) -> None:
    """Recompute every hash and follow every chain. Exit code 5 if something is wrong."""
    from everthread.history import verify as verifying  # noqa: PLC0415 - startup

    if key is not None and against is None:
        raise Invalid("is for the heads of --against; name their file", field="key")
    earlier = None if against is None else _read_heads(against, None if key is None else _public_key(key))
    async with cli.open() as et:
        total = sum(info.entry_count for info in await et.store.maintenance.heads())
        with cli.out.progress("verifying", total) as step:
            report = await verifying.verify(with_progress(et.store, step), earlier)
    if cli.out.json:
        cli.out.document(as_json(report, earlier))
    else:
        print_report(cli, report)
        if earlier is not None:
            cli.out.text(f"compared with {counted(len(earlier), 'earlier head')}")
    if not report.ok:
        raise typer.Exit(ExitCode.INTEGRITY)


def as_json(report: VerifyReport, earlier: Sequence[Head] | None = None) -> dict[str, Any]:
    """A report for programs."""
    compared = {} if earlier is None else {"heads": len(earlier)}
    return {"ok": report.ok, **asdict(report), **compared}


def print_report(cli: Invocation, report: VerifyReport) -> None:
    """A report for people."""
    found = "all chains hold" if report.conversations else "there is nothing to verify"
    cli.out.text(
        f"{counted(report.conversations, 'conversation')}, {counted(report.entries, 'entry', 'entries')}, "
        f"{counted(report.messages, 'message')}, {report.erased:,} erased: "
        f"{found if report.ok else counted(len(report.problems), 'problem')}"
    )
    if report.problems:
        cli.out.table(
            ("problem", "owner", "conversation", ">seq", "what"),
            [(p.kind, p.owner, p.conversation_id, "" if p.seq is None else p.seq, p.detail) for p in report.problems],
        )


def _public_key(file: Path) -> str:
    try:
        return public_key_of(read_key(file))
    except ImportError as problem:
        raise MissingExtra(NEEDS_EXTRA) from problem
    except (ValueError, TypeError, Wrong) as problem:
        raise Invalid(f"must be an Ed25519 public key: {problem}", field="key") from problem


def _read_heads(file: Path, signer: str | None) -> list[Head]:
    heads = []
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        try:
            heads.append(_head(json.loads(line), signer))
        except (ValueError, RecursionError) as problem:
            raise Invalid(
                f"{file}, line {number} is not a line of `everthread heads`: it is {not_json(problem)}"
            ) from problem
        except TypeError as problem:
            raise Invalid(
                f"{file}, line {number} is not a line of `everthread heads`: it has other fields"
            ) from problem
        except Wrong as problem:
            raise Invalid(f"{file}, line {number} is not a line of `everthread heads`: {problem}") from problem
    return heads


def _head(fields: dict[str, Any], signer: str | None) -> Head:
    if signer is not None and "signature" not in fields:
        raise Wrong("it is not signed")
    if "signature" in fields:
        if signer not in (None, check_signature(fields)):
            raise Wrong("it is not signed by the given key")
        fields = {name: value for name, value in fields.items() if name in Head.__slots__}
    head = Head(**fields)
    if not all(isinstance(number, int) for number in (head.count, head.changes)) or not all(
        isinstance(text, str) for text in (head.owner, head.conversation_id, head.chain, head.changes_chain)
    ):
        raise TypeError("its fields have the wrong types")
    return head


class _ProgressLog:
    """A log that reports the progress of reading it."""

    def __init__(self, log: Log, step: Callable[[int], None]) -> None:
        self._log = log
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def scan(self, ref: Ref, *, after: int, limit: int, with_tokens: bool = True) -> Sequence[Entry]:
        page = await self._log.scan(ref, after=after, limit=limit, with_tokens=with_tokens)
        self._step(len(page))
        return page


class _ProgressStore:
    """A store with such a log."""

    def __init__(self, store: Store, step: Callable[[int], None]) -> None:
        self._store = store
        self.log = _ProgressLog(store.log, step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def with_progress(store: Store, step: Callable[[int], None]) -> Store:
    """The same store; `step` is called with the size of each page that is scanned."""
    return cast(Store, _ProgressStore(store, step))
