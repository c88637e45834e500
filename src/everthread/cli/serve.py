"""The HTTP service: serve, and the API keys it accepts (key create, ls, revoke)."""

from __future__ import annotations

from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.models import fetch_local_model, is_local_model_missing
from everthread.cli.output import format_time
from everthread.core.access import ApiKey, new_key
from everthread.core.clock import system_clock
from everthread.core.errors import MissingExtra, ModelError
from everthread.core.jobs import Pace

if TYPE_CHECKING:
    from types import ModuleType

    from everthread.settings import Settings


_STOP_SECONDS = 10.0
"""Process managers send SIGKILL after 10 to 30 seconds."""
_HELLO = '{"message": "hello"}'
key = typer.Typer(no_args_is_help=True, help="API keys of the service; each acts for one owner.")


@command(app)
def serve(
    cli: Invocation,
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The address to listen on; beyond 127.0.0.1 API keys are required."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 for any free one.")
    ] = None,
    langgraph: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve the graphs of this langgraph.json.")
    ] = None,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Leave background jobs to `everthread worker`.")
    ] = False,
    with_model: Annotated[
        bool, typer.Option("--fetch-model", help="First fetch the small local model, unless another one is set.")
    ] = False,
) -> None:
    """Serve conversations over HTTP until interrupted by Ctrl-C or SIGTERM."""
    serving = _import_server()
    if with_model:
        _fetch(cli)
    given = {
        name: value
        for name, value in (("host", host), ("port", port), ("langgraph_config", langgraph))
        if value is not None
    }
    settings = cli.settings.model_copy(update=given)
    serving.run(_serve(cli, serving, settings, with_worker=not no_worker))


async def _serve(cli: Invocation, serving: ModuleType, settings: Settings, *, with_worker: bool) -> None:
    async with cli.open(create=True, worker=Pace(stop_seconds=_STOP_SECONDS) if with_worker else False) as et:
        if with_worker:
            et.start_worker()
        load_demo = import_module("everthread.demo.load").load
        await serving.serve(et, settings, lambda address: _print_address(cli, address), load_demo=load_demo)


def _import_server() -> ModuleType:
    try:
        return import_module("everthread.http.server")
    except ModuleNotFoundError as problem:
        raise MissingExtra(
            f"the service needs {problem.name}; install it: pip install 'everthread[server]'"
        ) from problem


def _fetch(cli: Invocation) -> None:
    """Without a network everything but answers can still be served."""
    try:
        fetch_local_model(cli)
    except (ModelError, MissingExtra) as problem:
        cli.out.note(str(problem))


def _print_address(cli: Invocation, address: str) -> None:
    """Printed once it listens: programs that start the service wait for this line."""
    if cli.out.json:
        cli.out.document({"listening": address, "database": cli.shown_url})
    else:
        cli.out.text(f"everthread serves {cli.shown_url} at {address}; stop with Ctrl-C")
        cli.out.text(f"open {address} in a browser")
        cli.out.text(f"or try: curl {address}/api/v1/chat -H 'Content-Type: application/json' -d '{_HELLO}'")
        if is_local_model_missing(cli.settings):
            cli.out.note("no model yet: run `everthread models fetch smollm2`, or set EVERTHREAD_MODEL")
    cli.out.flush()


@command(key, "create")
async def create_key(
    cli: Invocation,
    name: Annotated[str, typer.Option(metavar="TEXT", help="A label for lists.")] = "",
    admin: Annotated[bool, typer.Option("--admin", help="Also allow what concerns all owners.")] = False,
) -> None:
    """Create a key for the owner given by --owner and print it. It cannot be shown again."""
    made = new_key(cli.owner, name=name, is_admin=admin, now=system_clock())
    async with cli.open(create=True) as et:
        await et.store.api_keys.add(made.key)
    if cli.out.json:
        cli.out.document({**_as_json(made.key), "key": made.written})
    else:
        cli.out.text(made.written)
        cli.out.note(f"it acts for {cli.owner!r}; only its hash is stored, so keep it safe")


@command(key, "ls")
async def list_keys(
    cli: Invocation, everybody: Annotated[bool, typer.Option("--all", help="Keys of all owners.")] = False
) -> None:
    """List keys, without their secrets."""
    async with cli.open() as et:
        found = await et.store.api_keys.list(None if everybody else cli.owner)
    if cli.out.json:
        for one in found:
            cli.out.document(_as_json(one))
    else:
        cli.out.table(
            ("id", "owner", "name", "admin", "made", "revoked"),
            [
                (
                    one.id,
                    one.owner,
                    one.name,
                    "yes" if one.is_admin else "",
                    format_time(one.created_at),
                    format_time(one.revoked_at),
                )
                for one in found
            ],
        )


@command(key, "revoke")
async def revoke_key(
    cli: Invocation, id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id, as `key ls` shows it.")]
) -> None:
    """Revoke a key, from the next request on."""
    async with cli.open() as et:
        revoked = await et.store.api_keys.revoke(id)
    if cli.out.json:
        cli.out.document(_as_json(revoked))
    else:
        cli.out.text(f"revoked {revoked.id} of {revoked.owner!r}")


def _as_json(one: ApiKey) -> dict[str, Any]:
    return {name: value for name, value in asdict(one).items() if name != "digest"}


app.add_typer(key, name="key")
