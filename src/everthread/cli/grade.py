"""`everthread grade`: whether a conversation's memory had what was needed again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.options import BranchOption, ConversationArgument, ReserveOption, WindowOption, branch_name
from everthread.context.budget import Budget, output_reserve_of
from everthread.core.clock import system_clock
from everthread.core.nouns import Ref
from everthread.imports.find import find_conversation
from everthread.replay import Trial, read_transcript
from everthread.text.printable import one_line

_USUAL_WINDOW = Budget().window
_SHOWN = 20
_LEAST_WINDOW = 2_000
_FAILED = 1


@command(app)
async def grade(
    cli: Invocation,
    conversation: ConversationArgument,
    window: WindowOption = _USUAL_WINDOW,
    reserve: ReserveOption = None,
    branch: BranchOption = None,
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under", min=0, max=100, metavar="PERCENT", help="Exit with 1 if less than this was recalled."
        ),
    ] = None,
) -> None:
    """Show whether rare facts that came up again much later were in the model's view. Writes nothing."""
    budget = Budget(window=window, output_reserve=output_reserve_of(window, reserve))
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        ref = Ref(found.owner, found.id)
        policy = await et.compaction_config.get(found)
        with cli.out.progress("replaying", (await et.store.views.inputs(ref, branch_name(branch))).leaf_depth) as step:
            transcript = await read_transcript(et.store, ref, branch_name(branch))
            trial = Trial(store=et.store, clock=system_clock, ref=ref, budget=budget, step=step)
            graded = await trial.grade(policy, cli.settings.recall, transcript)
    recalled = round(100 * (1 - graded.debt), 1) if graded.beyond_view else None
    if cli.out.json:
        cli.out.document(
            {
                "conversation_id": found.id,
                "requests": graded.requests,
                "used": len(graded.uses),
                "beyond_view": len(graded.beyond_view),
                "missing": len(graded.missing),
                "recalled_percent": recalled,
                "uses": [
                    {**asdict(use), "fact": one_line(use.fact.text), "kind": use.fact.kind} for use in graded.uses
                ],
            }
        )
    else:
        share = "–" if recalled is None else f"{recalled:g} %"
        counts = (graded.requests, len(graded.uses), len(graded.beyond_view), len(graded.missing), share)
        cli.out.table((">requests", ">rare facts used again", ">beyond the view", ">missing", ">recalled"), [counts])
        rows = [(use.seq, one_line(use.fact.text), use.source_seq) for use in graded.missing[:_SHOWN]]
        if rows:
            cli.out.table((">used in", "missing", ">said in"), [(f"#{at}", fact, f"#{of}") for at, fact, of in rows])
            if more := len(graded.missing) - len(rows):
                cli.out.note(f"and {more} more; --json shows all")
            cli.out.note("to bring more back, set EVERTHREAD_RECALL_TOP_K higher or use a larger --window")
        if not graded.uses:
            cli.out.note(
                "nothing to grade: no number, id, date or path that one message alone had said was used again later"
            )
        elif not graded.beyond_view:
            smaller = max(_LEAST_WINDOW, window // 8)
            hint = f"; try a smaller window, such as --window {smaller}" if smaller < window else ""
            cli.out.note(
                f"all were in the model's view, as messages or in a summary, so this says nothing about recall{hint}"
            )
    if fail_under is not None and recalled is not None and recalled < fail_under:
        raise typer.Exit(_FAILED)
