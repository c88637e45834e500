"""Commands about everthread itself: config, demo."""

from __future__ import annotations

from importlib import import_module

import typer

from everthread.cli.app import app, command
from everthread.cli.door import Door
from everthread.cli.errors import ExitCode
from everthread.core.errors import MissingExtra


@command(app)
def config(door: Door) -> None:
    """Show the settings in effect, and where each came from. Passwords are hidden."""
    from everthread.settings import files, masked  # noqa: PLC0415 - startup

    values = {name: str(value) for name, value in door.settings.model_dump().items()}
    values["database"] = masked(values["database"])
    if door.out.json:
        door.out.document(
            {
                "settings": {name: {"value": value, "from": door.origins[name]} for name, value in values.items()},
                "files": [{"path": str(file), "exists": file.is_file()} for file in files()],
            }
        )
        return
    door.out.table(("setting", "value", "from"), [(name, value, door.origins[name]) for name, value in values.items()])
    for file in files():
        door.out.note(f"{'read' if file.is_file() else 'not there'}: {file}")


@command(app)
async def demo(door: Door) -> None:
    """See a conversation outlive a framework that summarises it. Kept only with --database."""
    try:
        module = import_module("everthread.demo")
    except ModuleNotFoundError as problem:
        raise MissingExtra(
            f"the demo needs {problem.name}; install it: pip install 'everthread[langchain]'"
        ) from problem
    # A database that merely happens to be set is not to get the demo's conversation.
    result = await module.run(door.url if door.origins["database"] == "option" else None)
    if door.out.json:
        door.out.document(result.as_json())
    else:
        door.out.drawn(lambda console: module.render(result, console))
    if not result.ok:
        raise typer.Exit(ExitCode.ERROR)
