"""`everthread context`: what a model would see now, as a gauge and a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation, find_conversation
from everthread.cli.options import (
    BranchOption,
    ConversationArgument,
    ReserveOption,
    branch_name,
)
from everthread.core.errors import MissingExtra
from everthread.core.nouns import Ref

if TYPE_CHECKING:
    from everthread.cli.output import Styled
    from everthread.compaction.fullness import Fullness
    from everthread.context.assemble import Part
    from everthread.context.manifest import Omission
    from everthread.instance import Everthread
    from everthread.models import AnsweringModel

GAUGE_CELLS = 60
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The model that is to answer; by default the one set.")
]
WindowOption = Annotated[
    int | None, typer.Option("--window", min=1, metavar="N", help="A context window, instead of the model's.")
]
FactorOption = Annotated[
    float | None,
    typer.Option("--factor", metavar="F", help="The model's tokens per token we count; 1 for OpenAI models."),
]


@command(app)
async def context(
    cli: Invocation,
    conversation: ConversationArgument,
    model: ModelOption = None,
    window: WindowOption = None,
    reserve: ReserveOption = None,
    factor: FactorOption = None,
    branch: BranchOption = None,
) -> None:
    """Show what a model would see now, part by part, and how full its window is. Changes nothing."""
    from everthread.compaction.fullness import measure  # noqa: PLC0415 - startup
    from everthread.context import read_view  # noqa: PLC0415
    from everthread.context.budget import Budget, changed_budget  # noqa: PLC0415

    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        policy = await et.compaction_config.get(found)
        answering = await _answering(cli, et, model) if window is None else None
        usual = Budget() if answering is None else answering.budget
        budget = changed_budget(usual, window=window, output_reserve=reserve, factor=factor)
        ref = Ref(found.owner, found.id)
        view = await read_view.read_view(et.store, ref, branch_name(branch), policy, budget=budget)
    report = measure(view, policy, budget)
    if cli.out.json:
        cli.out.document({"conversation_id": found.id, "model": answering and answering.name, **_as_json(report)})
    else:
        _print(cli, report, f", for {answering.name}" if answering is not None and answering.name else "")


async def _answering(cli: Invocation, et: Everthread, model: str | None) -> AnsweringModel | None:
    """The model that would answer; None without the extra that models need."""
    from everthread.models import answering_model, named_models  # noqa: PLC0415 - startup

    try:
        models = replace(named_models(cli.settings), calibrations=et.store.calibrations)
    except MissingExtra:
        return None
    return await answering_model(models, model)


def _as_json(report: Fullness) -> dict[str, Any]:
    made = report.context
    return {
        "tokens": made.tokens,
        "limit": made.limit,
        "window": report.budget.window,
        "output_reserve": report.budget.output_reserve,
        "exact": report.is_exact,
        "wanted_tokens": made.wanted_tokens,
        "threshold": report.policy.threshold,
        "threshold_tokens": report.mark_tokens,
        "due": report.due,
        "messages": len(made.messages),
        "uncovered": report.uncovered,
        "max_message_history": report.policy.max_message_history,
        "parts": list(made.parts),
        "omitted": list(made.omitted),
    }


def _print(cli: Invocation, report: Fullness, whose: str) -> None:
    made = report.context
    signs = chars_for(getattr(sys.stdout, "encoding", None))
    count = "exact" if report.is_exact else "estimated"
    cli.out.text(f"{made.tokens:,} of {made.limit:,} tokens ({_share(made.tokens, made.limit)}), {count}{whose}")
    cli.out.pieces(_gauge(report, signs))
    cli.out.table(
        ("", "part", ">tokens", ">of the limit", "messages"),
        [_row(at, part, made.limit, signs) for at, part in enumerate(made.parts)],
    )
    if made.omitted:
        cli.out.text("\nnot shown:")
        cli.out.table(("messages", "why"), list(_ranges(made.omitted)))
    cli.out.text(_compaction_line(report))


def _gauge(report: Fullness, signs: GaugeChars) -> Iterator[Styled]:
    parts = [(part.kind, part.tokens) for part in report.context.parts]
    yield from gauge(parts, report.context.limit, report.policy.threshold, width=GAUGE_CELLS, signs=signs)
    yield "\n", ""


def _row(at: int, part: Part, limit: int, signs: GaugeChars) -> tuple[object, ...]:
    span = f"{min(part.seqs)}–{max(part.seqs)}" if part.seqs else ""
    count = len(part.summary_ids)
    summaries = "" if not count else ", 1 summary" if count == 1 else f", {count:,} summaries"
    return legend(at, signs), part.kind, f"{part.tokens:,}", _share(part.tokens, limit), span + summaries


def _ranges(omitted: Sequence[Omission]) -> Iterator[tuple[str, str]]:
    """Neighbouring messages left out for the same reason, as one range."""
    for reason, run in groupby(omitted, key=lambda one: one.reason):
        found = list(run)
        first, last = found[0].seq, found[-1].last_seq or found[-1].seq
        yield (str(first) if first == last else f"{first}–{last}"), reason.replace("_", " ")


def _compaction_line(report: Fullness) -> str:
    policy = report.policy
    said = (
        f"\n{report.uncovered:,} messages are in no summary; compaction begins at {policy.message_mark + 1:,} of them "
        f"or at {policy.threshold:.0%} of the limit ({report.mark_tokens:,} tokens)"
    )
    return f"{said}: one is due" if report.due is not None else said


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


_STYLES = {
    "system": "magenta", "memory": "red", "pinned": "yellow", "summary": "cyan", "recalled": "blue", "window": "green",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeChars:
    """The characters of a gauge: a shade for each part in turn, so that it can be read without colours."""

    shades: str
    free: str
    mark: str


BLOCKS = GaugeChars(shades="█▓▒░", free="·", mark="│")
ASCII = GaugeChars(shades="#=+~", free=".", mark="|")


def chars_for(encoding: str | None) -> GaugeChars:
    """Blocks where the terminal can show them."""
    try:
        (BLOCKS.shades + BLOCKS.free + BLOCKS.mark).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def gauge(
    parts: Sequence[tuple[str, int]], limit: int, mark: float, *, width: int, signs: GaugeChars
) -> Iterator[Styled]:
    """The bar: each part (kind, tokens) as wide as its share of the limit, a part that has any at least one cell."""
    cells = _cells([tokens for _, tokens in parts], limit, width)
    drawn = [(legend(at, signs), _STYLES.get(kind, "")) for at, (kind, _) in enumerate(parts) for _ in range(cells[at])]
    drawn += [(signs.free, "dim")] * (width - len(drawn))
    drawn.insert(min(width, round(mark * width)), (signs.mark, "bold red"))
    for (_, style), run in groupby(drawn):
        yield "".join(sign for sign, _ in run), style


def legend(at: int, signs: GaugeChars) -> str:
    """The character of the part at this index."""
    return signs.shades[at % len(signs.shades)]


def _cells(tokens: Sequence[int], limit: int, width: int) -> list[int]:
    cells = [max(1, round(width * size / limit)) if size else 0 for size in tokens]
    while sum(cells) > width:  # rounding up: the widest part shrinks
        cells[cells.index(max(cells))] -= 1
    return cells
