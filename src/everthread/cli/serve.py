"""The HTTP service: serve, and the API keys it accepts (key create, ls, revoke)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from everthread.adapters.stores.database_url import is_postgres
from everthread.cli import leave_quickly
from everthread.cli.app import app, command
from everthread.cli.errors import ExitCode, configure_logging, exit_code, print_error, report_crash
from everthread.cli.invocation import Invocation
from everthread.cli.models import fetch_local_model, is_local_model_missing
from everthread.cli.output import format_time
from everthread.core.access import ApiKey, new_key
from everthread.core.clock import system_clock
from everthread.core.errors import EverthreadError, Invalid, MissingExtra, ModelError
from everthread.core.jobs import Pace

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from socket import socket
    from types import ModuleType

    from everthread.http.server import OnListening
    from everthread.http.v1.about import Demo
    from everthread.http.v1.agent_sessions import Following
    from everthread.instance import Everthread

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
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=256, help="Processes that serve it; several need PostgreSQL.")
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
        for name, value in (
            ("host", host),
            ("port", port),
            ("langgraph_config", langgraph),
            ("serve_workers", workers),
        )
        if value is not None
    }
    cli = replace(cli, settings=cli.settings.model_copy(update=given))
    if cli.settings.serve_workers > 1:
        _serve_with_workers(cli, serving, with_worker=not no_worker)
    else:
        serving.run(_serve(cli, None, with_worker=not no_worker))


async def _serve(
    cli: Invocation,
    on_listening: OnListening | None,
    *,
    with_worker: bool,
    sockets: Sequence[socket] | None = None,
) -> None:
    """Serve; without `on_listening` the address is printed."""
    from everthread.settings import seconds_to_go_on  # noqa: PLC0415 - startup

    pace = Pace(stop_seconds=seconds_to_go_on(cli.settings.stop_seconds))
    async with cli.open(create=True, worker=pace if with_worker else False) as et:
        if with_worker:
            et.start_worker()
        if on_listening is None:
            asks_for_key = await _import_server().asks_for_key(et, cli.settings)
            await serve_http(cli, et, lambda server: _print_address(cli, server.address, asks_for_key))
        else:
            await serve_http(cli, et, on_listening, sockets=sockets)


async def serve_http(
    cli: Invocation,
    et: Everthread,
    on_listening: OnListening,
    *,
    watcher: Following | None = None,
    sockets: Sequence[socket] | None = None,
) -> None:
    """Run the service over an open database."""
    serving = _import_server()
    mcp = import_module("everthread.mcp.over_http").McpOverHttp(et) if find_spec("mcp") is not None else None
    await serving.serve(et, cli.settings, on_listening, demo=_demo(), mcp=mcp, watcher=watcher, sockets=sockets)


def _demo() -> Demo:
    """Prepare the demo, imported here because it runs the agent, which is an extra."""
    demo: Demo = import_module("everthread.http.v1.about").Demo(
        load=import_module("everthread.demo.load").load, replay=import_module("everthread.demo.replay").replay
    )
    return demo


def _serve_with_workers(cli: Invocation, serving: ModuleType, *, with_worker: bool) -> None:
    settings = cli.settings
    if not is_postgres(cli.url):
        raise Invalid(
            f"{settings.serve_workers} processes need PostgreSQL: a SQLite file or memory:// is served by one process; "
            "leave --workers out, or name a PostgreSQL database with --database",
            field="serve_workers",
        )
    supervisor = import_module("everthread.http.supervisor")
    asks_for_key = serving.run(_prepare(cli, serving))
    sockets = serving.listen(settings.host, settings.port)
    supervisor.supervise(
        partial(_serve_as_worker, cli, with_worker),
        sockets,
        count=settings.serve_workers,
        stop_seconds=settings.stop_seconds,
        on_listening=lambda: _print_address(cli, serving.address_of(sockets[0]), asks_for_key),
    )


async def _prepare(cli: Invocation, serving: ModuleType) -> bool:
    """Create or migrate the tables once for all processes, and check what each of them would refuse; whether callers
    on this machine need a key."""
    async with cli.open(create=True) as et:
        await serving.needs_key(et, cli.settings)
        asks_for_key: bool = await serving.asks_for_key(et, cli.settings)
        return asks_for_key


def _serve_as_worker(cli: Invocation, with_worker: bool, sockets: Sequence[socket], pipe: Connection) -> None:
    """Run one of several worker processes."""
    leave_quickly()
    configure_logging(cli.settings)
    serving = _import_server()
    report_listening = import_module("everthread.http.supervisor").report_listening
    try:
        serving.run(
            _serve(
                cli,
                lambda server: report_listening(pipe, server.stop),
                with_worker=with_worker,
                sockets=sockets,
            )
        )
    except EverthreadError as problem:
        print_error(str(problem), code=problem.code, retryable=problem.retryable, as_json=cli.out.json)
        sys.exit(exit_code(problem))
    except Exception as problem:  # noqa: BLE001 - the edge of a process: even a bug of ours is one line
        report_crash(type(problem), problem, problem.__traceback__)
        sys.exit(ExitCode.ERROR)


def _import_server() -> ModuleType:
    try:
        return import_module("everthread.http.server")
    except ModuleNotFoundError as problem:
        raise MissingExtra(
            f"the service needs {problem.name}; install it: pip install 'everthread[server]'"
        ) from problem


def _fetch(cli: Invocation) -> None:
    """Fetch the local model if it is needed; without a network everything but answers can still be served."""
    try:
        fetch_local_model(cli)
    except (ModelError, MissingExtra) as problem:
        cli.out.note(str(problem))


def _print_address(cli: Invocation, address: str, asks_for_key: bool) -> None:
    """Printed once it listens: programs that start the service wait for this line."""
    if cli.out.json:
        cli.out.document({"listening": address, "database": cli.shown_url})
    else:
        serving = _import_server()
        outside = serving.outside_address(cli.settings, urlsplit(address).port)
        key_header = " -H 'Authorization: Bearer KEY'" if asks_for_key else ""
        cli.out.text(f"everthread serves {cli.shown_url} at {address}; stop with Ctrl-C")
        cli.out.text(f"open {address} in a browser" + (f", or {outside} from another machine" if outside else ""))
        if asks_for_key:
            cli.out.text("sign in with a key; to make one: everthread key create --owner NAME")
        cli.out.text(
            f"or try: curl {address}/api/v1/chat{key_header} -H 'Content-Type: application/json' -d '{_HELLO}'"
        )
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
        is_first = all(one.revoked_at is not None for one in await et.store.api_keys.list(None))
        await et.store.api_keys.add(made.key)
    if cli.out.json:
        cli.out.document({**_as_json(made.key), "key": made.written})
    else:
        cli.out.text(made.written)
        cli.out.note(f"it acts for {cli.owner!r}; only its hash is stored, so keep it safe")
        if is_first and cli.settings.require_key is None:
            cli.out.note("from now on `everthread serve` answers only requests with a key: all others get 401")


@command(key, "ls")
async def list_keys(
    cli: Invocation, everybody: Annotated[bool, typer.Option("--all", help="Keys of all owners.")] = False
) -> None:
    """List keys, without their secrets."""
    async with cli.open() as et:
        every = await et.store.api_keys.list(None)
    found = [one for one in every if everybody or one.owner == cli.owner]
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
        if hidden := len(every) - len(found):
            cli.out.note(f"and {hidden:,} of other owners: list them with --all, or those of one with --owner NAME")


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
