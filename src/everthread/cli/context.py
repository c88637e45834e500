"""`everthread context`: what a model would see now, or saw in a turn: as a gauge, a table, and word for word."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.options import (
    BranchOption,
    ConversationArgument,
    ReserveOption,
    branch_name,
)
from everthread.cli.output import counted
from everthread.core.errors import Invalid, MissingExtra, NotFound
from everthread.imports.find import find_conversation
from everthread.text.printable import one_line

if TYPE_CHECKING:
    from everthread.cli.output import Styled
    from everthread.compaction.fullness import ContextPreview
    from everthread.context.assemble import Context, Part, Piece
    from everthread.context.manifest import Omission
    from everthread.conversation import Conversation
    from everthread.core.turns import Turn
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
    question: Annotated[
        str | None,
        typer.Option("--question", metavar="TEXT", help="As if this was asked now, with what it recalls."),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Print the request word for word.")] = False,
    turn: Annotated[
        str | None, typer.Option("--turn", metavar="ID", help="What was really sent in this turn, or in the `last`.")
    ] = None,
    system: Annotated[str | None, typer.Option("--system", metavar="TEXT", help="The system prompt.")] = None,
    model: ModelOption = None,
    window: WindowOption = None,
    reserve: ReserveOption = None,
    factor: FactorOption = None,
    branch: BranchOption = None,
) -> None:
    """Show the request that a model would get now: how full it is, and where each piece comes from. Changes nothing."""
    from everthread.context.budget import Budget, changed_budget  # noqa: PLC0415 - startup

    if turn is not None:
        if any(given is not None for given in (question, system, model, window, reserve, factor, branch)):
            raise Invalid("shows what was sent, so only --whole and --json go with it", field="turn")
        await _show_turn(cli, conversation, turn, whole=whole)
        return
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        answering = await _answering(cli, et, model) if window is None else None
        usual = Budget() if answering is None else answering.budget
        budget = changed_budget(usual, window=window, output_reserve=reserve, factor=factor)
        preview = await found.preview_context(
            system=system, question=question, budget=budget, branch=branch_name(branch)
        )
    if cli.out.json:
        about = {"conversation_id": found.id, "model": answering and answering.name}
        cli.out.document({**about, **_as_json(preview), **_request_as_json(preview.context, whole=whole)})
        return
    if not whole:
        _print(cli, preview, f", for {answering.name}" if answering is not None and answering.name else "")
    _print_request(cli, preview.context, whole=whole)


async def _show_turn(cli: Invocation, conversation: str, turn: str, *, whole: bool) -> None:
    """The requests of a turn, rendered again from what was kept of them."""
    from everthread.cli.why import find_turn, kept_requests  # noqa: PLC0415 - startup

    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        asked = await _last_turn(found) if turn == "last" else (await find_turn(et, cli.owner, found.id, turn))[1]
        seen = [await found.seen_context(id) for id in await kept_requests(found, asked)]
    if not seen:
        raise NotFound(f"no request of turn {asked.id!r} is kept: it ended before an answer, or was erased")
    if cli.out.json:
        requests = [
            {
                "is_same": one.is_same,
                "erased": one.erased,
                **_size_as_json(one.context),
                **_request_as_json(one.context, whole=whole),
            }
            for one in seen
        ]
        cli.out.document({"conversation_id": found.id, "turn_id": asked.id, "requests": requests})
        return
    for number, one in enumerate(seen, start=1):
        same = "byte for byte as it was sent" if one.is_same else "not as it was sent: something was erased since"
        cli.out.text(f"request {number} of {len(seen)} in turn {asked.id}: {one.context.tokens:,} tokens, {same}")
        _print_request(cli, one.context, whole=whole)


async def _last_turn(conversation: Conversation) -> Turn:
    for newest in await conversation.turns(limit=1):
        return newest
    raise NotFound(f"conversation {conversation.id!r} has no turns: nothing was sent by everthread itself")


async def _answering(cli: Invocation, et: Everthread, model: str | None) -> AnsweringModel | None:
    """The model that would answer; None without the extra that models need."""
    from everthread.models import answering_model, named_models  # noqa: PLC0415 - startup

    try:
        models = replace(named_models(cli.settings), calibrations=et.store.calibrations)
    except MissingExtra:
        return None
    return await answering_model(models, model)


def _size_as_json(made: Context) -> dict[str, Any]:
    return {
        "tokens": made.tokens,
        "limit": made.limit,
        "messages": len(made.messages),
        "parts": list(made.parts),
        "omitted": list(made.omitted),
    }


def _request_as_json(made: Context, *, whole: bool) -> dict[str, Any]:
    return {"pieces": list(made.pieces), **({"request": made.messages} if whole else {})}


def _as_json(report: ContextPreview) -> dict[str, Any]:
    made = report.context
    return {
        **_size_as_json(made),
        "window": report.budget.window,
        "output_reserve": report.budget.output_reserve,
        "exact": report.is_exact,
        "wanted_tokens": made.wanted_tokens,
        "threshold": report.policy.threshold,
        "threshold_tokens": report.mark_tokens,
        "due": report.due,
        "uncovered": report.uncovered,
        "max_message_history": report.policy.max_message_history,
    }


def _print(cli: Invocation, report: ContextPreview, whose: str) -> None:
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


def _gauge(report: ContextPreview, signs: GaugeChars) -> Iterator[Styled]:
    parts = [(part.kind, part.tokens) for part in report.context.parts]
    yield from gauge(parts, report.context.limit, report.policy.threshold, width=GAUGE_CELLS, signs=signs)
    yield "\n", ""


def _row(at: int, part: Part, limit: int, signs: GaugeChars) -> tuple[object, ...]:
    span = f"{min(part.seqs)}–{max(part.seqs)}" if part.seqs else ""
    count = len(part.summary_ids)
    summaries = f", {counted(count, 'summary', 'summaries')}" if count else ""
    return legend(at, signs), part.kind, f"{part.tokens:,}", _share(part.tokens, limit), span + summaries


def _ranges(omitted: Sequence[Omission]) -> Iterator[tuple[str, str]]:
    """Neighbouring messages left out for the same reason, as one range."""
    for (reason, memory), run in groupby(omitted, key=lambda one: (one.reason, one.memory_id)):
        found = list(run)
        first, last = found[0].seq, found[-1].last_seq or found[-1].seq
        where = f"memory {memory}" if memory else _span((first, last))
        yield where, _REASONS.get(reason, reason.replace("_", " "))


def _span(seqs: Sequence[int]) -> str:
    first, last = min(seqs), max(seqs)
    return str(first) if first == last else f"{first}–{last}"


_REASONS = {
    "summaries_merged": "their summaries were shortened into one text",
    "recall_over_budget": "the question recalled it, but there was no room",
}
_FORMS = {"whole": "", "in_part": "shown in part", "merged": "shortened into one text"}
_BEGINNING = 60


def _print_request(cli: Invocation, made: Context, *, whole: bool) -> None:
    """The request: a line for each piece, neighbours of the window as one; or all of its words."""
    if whole:
        for at, message in enumerate(made.messages, start=1):
            cli.out.text(f"\n[{at}] {message.get('role')}" + (f" ({name})" if (name := message.get("name")) else ""))
            cli.out.text("\n".join(_words_of(message)))
        return
    if made.pieces:
        cli.out.text("\nthe request, in its order (--whole prints it word for word):")
        cli.out.table(
            ("in message", "what", "from", ">tokens", "begins"), list(_piece_rows(made.pieces, made.messages))
        )


def _piece_rows(pieces: Sequence[Piece], messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[object, ...]]:
    for _, run in groupby(
        enumerate(pieces), key=lambda one: one[0] if one[1].kind != "window" or one[1].form != "whole" else -1
    ):
        found = [piece for _, piece in run]
        first = found[0]
        where = _span([piece.message + 1 for piece in found])
        quoted: Iterable[str] = first.text.split("\n")[1:-1] if first.text else _words_of(messages[first.message])
        if first.kind == "summary":  # they all begin with a heading
            quoted = ()
        tokens = f"{sum(piece.tokens for piece in found):,}"
        yield where, first.kind, _origin(found), tokens, one_line(" ".join(quoted))[:_BEGINNING]


def _origin(pieces: Sequence[Piece]) -> str:
    """Where a piece, or a run of messages of the window, comes from."""
    first = pieces[0]
    seqs = [seq for piece in pieces for seq in piece.seqs]
    said = [f"{'messages' if len(set(seqs)) > 1 else 'message'} {_span(seqs)}"] if seqs else []
    if first.memory_id is not None:
        said.append(f"memory {first.memory_id}")
    if len(first.summary_ids) > 1:
        said.append(f"{len(first.summary_ids):,} summaries")
    return ", ".join([*said, *filter(None, [_FORMS[first.form]])]) or "given with the request"


def _words_of(message: Mapping[str, Any]) -> Iterator[str]:
    """A message of a request as text; what is not text, such as an image, in short."""
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    for block in blocks:
        if isinstance(block.get("text"), str):
            yield block["text"]
        else:
            data = json.dumps(block, ensure_ascii=False)
            yield data if len(data) <= _DATA else f"{data[:_DATA]}… ({len(data):,} characters; --json has them all)"
    for call in message.get("tool_calls") or ():
        yield f"calls {call['function']['name']}({call['function']['arguments']}) [{call['id']}]"
    if "tool_call_id" in message:
        yield f"[answers {message['tool_call_id']}]"


_DATA = 200


def _compaction_line(report: ContextPreview) -> str:
    policy = report.policy
    said = (
        f"\n{counted(report.uncovered, 'message is', 'messages are')} in no summary; "
        f"compaction begins at {policy.message_mark + 1:,} of them "
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
