"""Commands about everthread itself: config, demo."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door
from everthread.cli.errors import ExitCode
from everthread.compaction.policy import as_mapping
from everthread.core.errors import MissingExtra

if TYPE_CHECKING:
    from everthread.settings import Settings


@command(app)
def config(door: Door) -> None:
    """Show the settings in effect, and where each came from. Passwords are hidden."""
    values = _shown(door.settings)
    if door.out.json:
        door.out.document(
            {
                "settings": {name: {"value": value, "from": door.origins[name]} for name, value in values.items()},
                "files": [{"path": str(file), "exists": file.is_file()} for file in door.files],
            }
        )
        return
    door.out.table(("setting", "value", "from"), [(name, value, door.origins[name]) for name, value in values.items()])
    for file in door.files:
        door.out.note(f"{'read' if file.is_file() else 'not there'}: {file}")


def _shown(settings: Settings) -> dict[str, str]:
    """Every setting as text, those of compaction by their full names."""
    from everthread.settings import COMPACTION, masked  # noqa: PLC0415 - startup

    values = {name: str(value) for name, value in settings.model_dump(exclude={COMPACTION}).items()}
    policy = {f"{COMPACTION}.{name}": _as_text(value) for name, value in as_mapping(settings.compaction).items()}
    return {**values, **{name: masked(values[name]) for name in ("database", "vectors")}, **policy}


def _as_text(value: object) -> str:
    """As it stands in a file; nothing for none."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@command(app)
async def demo(
    door: Door,
    load: Annotated[
        bool, typer.Option("--load", help="Keep a long conversation to look at, with tools, a subagent and summaries.")
    ] = False,
) -> None:
    """See a conversation outlive a framework that summarises it. Kept only with --database."""
    if load:
        await _load(door)
        return
    module = _demo_module("everthread.demo")
    # A database that merely happens to be set is not to get the demo's conversation.
    result = await module.run(door.url if door.origins["database"] == "option" else None)
    if door.out.json:
        door.out.document(result.as_json())
    else:
        door.out.drawn(lambda console: module.render(result, console))
    if not result.ok:
        raise typer.Exit(ExitCode.ERROR)


async def _load(door: Door) -> None:
    module = _demo_module("everthread.demo.loading")
    async with door.open(create=True) as et:
        conversation = await module.load(et, door.owner)
    if door.out.json:
        door.out.document({"id": conversation.id, "title": conversation.title})
    else:
        door.out.text(f"{conversation.title}. Look at it: everthread show {conversation.id}")


def _demo_module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        raise MissingExtra(
            f"the demo needs {problem.name}; install it: pip install 'everthread[langchain]'"
        ) from problem
