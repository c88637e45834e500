"""`everthread demo`: plays the demo, or stores its longer version to look at."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode
from everthread.cli.invocation import Invocation
from everthread.core.errors import MissingExtra

if TYPE_CHECKING:
    pass


@command(app)
async def demo(
    cli: Invocation,
    load: Annotated[
        bool, typer.Option("--load", help="Store a long conversation to explore, with tools, a subagent and summaries.")
    ] = False,
) -> None:
    """Watch a conversation outlive a framework that summarises it. Stored only with --database."""
    if load:
        await _load(cli)
        return
    module = _demo_module("everthread.demo")
    # Only --database: a database from the environment must not receive the demo's conversation.
    result = await module.run(cli.url if cli.origins["database"] == "option" else None)
    if cli.out.json:
        cli.out.document(result.as_json())
    else:
        cli.out.draw(lambda console: module.render(result, console))
    if not result.ok:
        raise typer.Exit(ExitCode.ERROR)


async def _load(cli: Invocation) -> None:
    module = _demo_module("everthread.demo.load")
    async with cli.open(create=True) as et:
        conversation = await module.load(et, cli.owner)
    if cli.out.json:
        cli.out.document({"id": conversation.id, "title": conversation.title})
    else:
        cli.out.text(f"{conversation.title}. To look at it: everthread show {conversation.id}")


def _demo_module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        raise MissingExtra(
            f"the demo needs {problem.name}; install it: pip install 'everthread[cli,langchain]'"
        ) from problem
