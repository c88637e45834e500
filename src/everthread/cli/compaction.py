"""Summaries that stand for old messages: compact, compactions, diff."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.conversations import folded
from everthread.cli.invocation import Invocation
from everthread.cli.options import BranchOption, ConversationArgument, branch_name
from everthread.cli.output import counted, format_time
from everthread.core import payloads
from everthread.core.compactions import FRAMEWORK, Compaction
from everthread.imports.find import find_conversation, only_one
from everthread.text.printable import printable

if TYPE_CHECKING:
    from everthread.compaction.compactor import CompactionDiff, CompactionOutcome
    from everthread.conversation import Conversation

CompactionArgument = Annotated[
    str, typer.Argument(metavar="COMPACTION", help="Its number in `compactions`, or its id or a prefix of it.")
]
SHOWN_FACTS = 40
SHOWN_SPANS = 20
_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


@command(app)
async def compact(
    cli: Invocation,
    conversation: ConversationArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be summarised.")] = False,
    undo: Annotated[
        str | None, typer.Option("--undo", metavar="COMPACTION", help="Remove this summary from the view.")
    ] = None,
    branch: BranchOption = None,
) -> None:
    """Summarise old messages in the model's view. The log does not change; --undo restores the former view."""
    if undo is not None and (dry_run or branch is not None):
        raise typer.BadParameter("--undo cannot be combined with --dry-run or --branch")
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        if undo is not None:
            chosen = await _find_compaction(found, undo)
            _print_undone(cli, await found.undo_compaction(chosen.id))
            return
        outcome = await _compact(cli, found, dry_run, branch_name(branch))
    _print_outcome(cli, outcome, dry_run)


async def _compact(
    cli: Invocation, conversation: Conversation, dry_run: bool, branch: str | int | None
) -> CompactionOutcome:
    """Each summary is stored as soon as it is made, so an interruption loses none."""
    total = conversation.info.entry_count
    made: list[CompactionOutcome] = []
    with cli.out.progress("compacting", total) as step:

        def on_each(one: CompactionOutcome) -> None:
            made.append(one)
            step(one.original_count - one.new_count + 1)

        try:
            return await conversation.compact(dry_run=dry_run, branch=branch, on_each=on_each)
        except asyncio.CancelledError:  # Ctrl-C
            kept = f"{_summaries_made(len(made))} kept" if made else "no summary was made yet"
            cli.out.note(f"interrupted: {kept}; the log is as it was, and the same command goes on")
            raise


def _summaries_made(count: int) -> str:
    return "the 1 summary made so far is" if count == 1 else f"the {count:,} summaries made so far are"


def _print_outcome(cli: Invocation, outcome: CompactionOutcome, dry_run: bool) -> None:
    if cli.out.json:
        cli.out.document({**asdict(outcome), "dry_run": dry_run})
    elif outcome.compacted:
        cli.out.text(
            f"{outcome.original_count:,} messages are {outcome.new_count:,} now in the model's view; what was "
            f"summarised counts {outcome.tokens_after:,} tokens instead of {outcome.tokens_before:,}"
        )
    else:
        cli.out.text(outcome.error or outcome.reason or "nothing to do")
        _print_plan(cli, outcome)
    for failure in outcome.failures:
        cli.out.note(f"{failure.stage}: {failure.reason}")


def _print_plan(cli: Invocation, outcome: CompactionOutcome) -> None:
    """What a dry run would do, span by span, and what would be left."""
    if not outcome.planned:
        return
    for one in outcome.planned[:SHOWN_SPANS]:
        cli.out.text(f"  {one.first_seq} to {one.last_seq}: {counted(one.messages, 'message')}, {one.tokens:,} tokens")
    if len(outcome.planned) > SHOWN_SPANS:
        cli.out.text(f"  … and {len(outcome.planned) - SHOWN_SPANS:,} more (--json names them)")
    cli.out.text(
        f"{outcome.original_count:,} messages would be {outcome.new_count:,} in the model's view; what is summarised "
        f"would count {outcome.tokens_after:,} tokens at most instead of {outcome.tokens_before:,}"
    )


def _print_undone(cli: Invocation, undone: Compaction) -> None:
    if cli.out.json:
        cli.out.document(undone)
    else:
        span = f"messages {undone.first_seq} to {undone.last_seq}"
        shown = f"the {counted(len(undone.children), 'summary', 'summaries')} of {span}" if undone.children else span
        cli.out.text(f"undone {undone.id}: the model's view has {shown} again")


async def _find_compaction(conversation: Conversation, given: str) -> Compaction:
    """A compaction by its number in the list, its id, or a unique prefix of the id."""
    every = [one async for one in conversation.compactions()]
    if _NUMBER.fullmatch(given) and 1 <= int(given) <= len(every):
        return every[int(given) - 1]
    by_id = {one.id: one for one in every}
    return by_id[only_one(given, by_id, "compaction", f"`everthread compactions {conversation.id}` lists them")]


@command(app)
async def compactions(cli: Invocation, conversation: ConversationArgument) -> None:
    """List the summaries of a conversation, oldest first, with what each covers."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        known = [one async for one in found.compactions()]
        in_view = {one.id for one in await found.summaries()}
    condensed = {child for one in known if one.is_live for child in one.children}
    states = [(one, _state(one, in_view, condensed)) for one in known]
    if cli.out.json:
        for number, (one, state) in enumerate(states, start=1):
            cli.out.document({"number": number, **asdict(one), "state": state})
    else:
        cli.out.table(
            (">nr", "?id", ">level", "messages", "tokens", "facts kept", "?written by", "why", ">?s", "?made", "state"),
            [_row(number, one, state) for number, (one, state) in enumerate(states, start=1)],
        )


def _state(one: Compaction, in_view: set[str], condensed: set[str]) -> str:
    """`waiting`: of another branch, or after a gap that is still to be summarised again. `by` a
    framework or an agent: in its own state, which views of ours do not use."""
    if one.trigger == FRAMEWORK:
        return f"by {one.strategy}"
    if one.undone_at is not None:
        return "undone"
    if one.invalid_at is not None:
        return "invalid"
    return "in use" if one.id in in_view else "condensed" if one.id in condensed else "waiting"


def _row(number: int, one: Compaction, state: str) -> tuple[object, ...]:
    return (
        number,
        one.id,
        one.level,
        f"{one.first_seq}–{one.last_seq}",
        f"{one.tokens_before:,} → {one.tokens_after:,}",
        f"{one.facts_kept:,} of {one.facts_total:,}",
        one.model or one.strategy,
        one.trigger,
        f"{one.seconds:.1f}",
        format_time(one.created_at),
        state,
    )


@command(app)
async def diff(
    cli: Invocation,
    conversation: ConversationArgument,
    compaction: CompactionArgument,
    full: Annotated[bool, typer.Option("--full", help="Do not shorten messages or the list of facts.")] = False,
) -> None:
    """Show a summary next to the messages it covers, and the facts only they contain."""
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        chosen = await _find_compaction(found, compaction)
        compared = await found.compaction_diff(chosen.id)
    if cli.out.json:
        cli.out.document(_diff_as_json(compared))
    else:
        _print_diff(cli, compared, full)


def _diff_as_json(compared: CompactionDiff) -> dict[str, Any]:
    return {
        "compaction": asdict(compared.compaction),
        "originals": [
            {"seq": one.seq, "id": one.id, "role": one.role, "name": one.name, "text": one.text, "tokens": one.tokens}
            for one in compared.originals
        ],
        "summary": compared.summary,
        "facts_kept": list(compared.facts_kept),
        "facts_only_in_originals": list(compared.facts_only_in_originals),
    }


def _print_diff(cli: Invocation, compared: CompactionDiff, full: bool) -> None:
    one = compared.compaction
    cli.out.pieces([(f"{counted(len(compared.originals), 'message')}, {one.tokens_before:,} tokens\n", "bold")])
    for message in compared.originals:
        text = payloads.searchable(message.payload).lstrip("\n")
        text = text if full else folded(text)
        said = printable(text).replace("\n", "\n  ")
        cli.out.pieces([(f"- {message.seq} {message.name or message.role}\n", "red"), (f"  {said}\n", "")])
    cli.out.pieces([(f"\ntheir summary, {one.tokens_after:,} tokens\n", "bold")])
    cli.out.pieces((f"+ {line}\n", "green") for line in printable(compared.summary).split("\n"))
    if one.struck:
        struck = counted(len(one.struck), "sentence")
        cli.out.pieces([(f"\nstruck from it, {struck} that the messages do not say\n", "bold")])
        cli.out.pieces((f"× {line}\n", "yellow") for line in one.struck)
    _print_facts(cli, "facts in both", compared.facts_kept, full)
    _print_facts(cli, "facts only in the originals", compared.facts_only_in_originals, full)


def _print_facts(cli: Invocation, head: str, facts: Sequence[str], full: bool) -> None:
    some = facts if full else facts[:SHOWN_FACTS]
    left = f" … and {len(facts) - len(some):,} more (--full shows them)" if len(some) < len(facts) else ""
    cli.out.pieces([(f"\n{head}, {len(facts):,}\n", "bold")])
    if facts:
        cli.out.text("  " + " · ".join(" ".join(fact.split()) for fact in some) + left)
