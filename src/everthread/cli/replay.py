"""`everthread replay`: try a compaction policy on a conversation's own history."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.options import (
    BranchOption,
    ConversationArgument,
    ReserveOption,
    WindowOption,
    branch_name,
)
from everthread.cli.output import counted
from everthread.compaction.policy import CompactionPolicy, apply_settings, policy_as_dict
from everthread.context.budget import Budget, output_reserve_of
from everthread.core.clock import system_clock
from everthread.core.errors import Invalid
from everthread.core.nouns import Ref
from everthread.imports.find import find_conversation
from everthread.replay import Figures, Prices, Trial, fixed_window, full_history, read_transcript

if TYPE_CHECKING:
    from everthread.instance import Everthread

PriceInput = Annotated[
    float | None, typer.Option("--price-in", min=0, metavar="X", help="Price of a million input tokens.")
]
PriceOutput = Annotated[
    float | None, typer.Option("--price-out", min=0, metavar="Y", help="Price of a million output tokens.")
]
PriceCached = Annotated[
    float | None,
    typer.Option("--price-cached", min=0, metavar="Z", help="Price of a million cached input tokens."),
]


_USUAL_WINDOW = Budget().window


@command(app)
async def replay(
    cli: Invocation,
    conversation: ConversationArgument,
    policy: Annotated[
        Path,
        typer.Option("--policy", metavar="FILE", help="The settings to try, as TOML or JSON; others stay as they are."),
    ],
    window: WindowOption = _USUAL_WINDOW,
    reserve: ReserveOption = None,
    price_in: PriceInput = None,
    price_out: PriceOutput = None,
    price_cached: PriceCached = None,
    branch: BranchOption = None,
) -> None:
    """Try a compaction policy on this conversation's history and compare it with the present one. Writes nothing."""
    changes = _read_policy(policy)
    prices = _prices(price_in, price_out, price_cached)
    budget = Budget(window=window, output_reserve=output_reserve_of(window, reserve))
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        present = await et.compaction_config.get(found)
        policies = {policy.name: apply_settings(present, changes), "present policy": present}
        rows = await _figures(cli, et, Ref(found.owner, found.id), branch_name(branch), policies, budget)
    if cli.out.json:
        ways = [_as_json(row, prices, policies.get(row.way)) for row in rows]
        cli.out.document({"conversation_id": found.id, "limit": budget.limit, "ways": ways})
    else:
        _print(cli, rows, prices)


async def _figures(
    cli: Invocation,
    et: Everthread,
    ref: Ref,
    branch: str | int | None,
    policies: Mapping[str, CompactionPolicy],
    budget: Budget,
) -> list[Figures]:
    total = (await et.store.views.inputs(ref, branch)).leaf_depth
    with cli.out.progress("replaying", total * (1 + len(policies))) as step:
        transcript = await read_transcript(et.store, ref, branch, step)
        trial = Trial(store=et.store, clock=system_clock, ref=ref, budget=budget, step=step)
        tried = [await trial.run(way, policy, transcript) for way, policy in policies.items()]
    return [*tried, fixed_window(transcript, budget.limit), full_history(transcript, budget.limit)]


def _read_policy(file: Path) -> Mapping[str, Any]:
    """The fields a file sets: at its top, or in its table `compaction`, as in everthread.toml."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not UTF-8"
        raise Invalid(f"{file} cannot be read: {reason}", field="policy") from problem
    try:
        given = json.loads(text) if file.suffix == ".json" else tomllib.loads(text)
    except ValueError as problem:  # of both readers
        raise Invalid(f"{file} cannot be read: {problem}", field="policy") from problem
    found = given.get("compaction", given) if isinstance(given, dict) else given
    if not isinstance(found, dict) or not found:
        raise Invalid(f"{file} sets nothing: write lines such as threshold = 0.6", field="policy")
    return found


def _prices(price_in: float | None, price_out: float | None, cached: float | None) -> Prices | None:
    """None without prices; without a price for cached tokens they cost as much as others."""
    if price_in is None:
        if price_out is not None or cached is not None:
            raise typer.BadParameter("--price-out and --price-cached require --price-in")
        return None
    return Prices(input=price_in, output=price_out or 0.0, cached=price_in if cached is None else cached)


def _as_json(row: Figures, prices: Prices | None, policy: CompactionPolicy | None) -> dict[str, Any]:
    return {
        **asdict(row),
        "tokens_per_turn": row.tokens_per_turn,
        "stability": row.stability,
        "cost": None if prices is None else row.cost(prices),
        "policy": None if policy is None else policy_as_dict(policy),
    }


def _print(cli: Invocation, rows: list[Figures], prices: Prices | None) -> None:
    head = ["", ">tokens/turn", ">cached", ">facts kept", ">compactions", ">too long"]
    costs = [] if prices is None else [">cost/turn", ">cost"]
    cli.out.table([*head, *costs], [tuple(_cells(row, prices)) for row in rows])
    first = rows[0]
    cli.out.note(
        f"{counted(first.turns, 'turn')}, {counted(first.requests, 'request')}; "
        f"cached: what a prompt cache would have had; facts kept: "
        f"of {first.facts_total:,}, in the last request; too long: requests that the model would have refused"
    )


def _cells(row: Figures, prices: Prices | None) -> Iterator[str]:
    yield row.way
    yield f"{row.tokens_per_turn:,.0f}"
    yield f"{row.stability:.1%}"
    yield f"{row.facts_kept / max(1, row.facts_total):.1%}"
    yield f"{row.compactions:,}"
    yield f"{row.over_limit:,}"
    if prices is not None:
        yield f"{row.cost(prices) / max(1, row.turns):.6f}"
        yield f"{row.cost(prices):.4f}"
