"""`everthread watch`: keep the histories of the coding agents on this machine."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import webbrowser
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from xml.sax.saxutils import escape

import typer

from everthread.cli.app import app, command
from everthread.cli.import_history import print_counts
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted
from everthread.cli.serve import serve_http
from everthread.core.errors import Conflict, EverthreadError

if TYPE_CHECKING:
    from everthread.http.server import Server
    from everthread.imports.watch import FileChange, Watcher
    from everthread.instance import Everthread

_UNIT = """\
[Unit]
Description=everthread: keep the histories of coding agents

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=10
Nice=10

[Install]
WantedBy=default.target
"""
_PLIST = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>Label</key><string>everthread.watch</string>
  <key>ProgramArguments</key><array>{arguments}</array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>LowPriorityIO</key><true/>
</dict></plist>
"""


@command(app)
async def watch(
    cli: Invocation,
    once: Annotated[bool, typer.Option("--once", help="Read all existing sessions once, then stop.")] = False,
    page: Annotated[
        bool, typer.Option("--page/--no-page", help="Also serve the page, and open it in the browser.")
    ] = True,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=0, max=65535, help="The page's port; 0 for any free one.")
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Start with this machine: write a systemd user unit or a launchd agent.")
    ] = False,
) -> None:
    """Keep the histories of the coding agents on this machine: find their sessions, follow them, and show them."""
    from everthread.imports.watch import Watcher, agent_folders  # noqa: PLC0415 - startup

    if install:
        _install(cli)
        return
    if port is not None:
        cli = replace(cli, settings=cli.settings.model_copy(update={"port": port}))
    folders = agent_folders(Path.home(), os.environ)
    async with AsyncExitStack() as opened:
        et = await opened.enter_async_context(cli.open(create=True, worker=not once))
        watcher = Watcher(et, cli.owner, folders)
        stopped = await opened.enter_async_context(_page(cli, et, watcher, wanted=page and not once))
        _print_found(cli, watcher, [(folder.agent, folder.path) for folder in folders])
        with cli.out.progress("reading", len(watcher.files())) as step:
            async with aclosing(watcher.sweep()) as changes:
                async for _ in changes:
                    step(1)
                    if stopped.is_set():
                        return
        print_counts(cli, watcher.counts)
        if once:
            return
        cli.out.note("following; stop with Ctrl-C. To find something: everthread search WORDS")
        cli.out.flush()
        reported = watcher.counts.problem_count
        async with aclosing(watcher.follow(stopped)) as changes:
            async for change in changes:
                _print_change(cli, change)
                for problem in watcher.counts.problems[reported:]:
                    _print_problem(cli, problem)
                reported = watcher.counts.problem_count


@asynccontextmanager
async def _page(cli: Invocation, et: Everthread, watcher: Watcher, *, wanted: bool) -> AsyncIterator[asyncio.Event]:
    """Serve the page meanwhile, if wanted and possible. Yields an event that is set when it is time to stop."""
    from everthread.http.page import FOLDER  # noqa: PLC0415 - an optional extra

    stopped = asyncio.Event()
    if not wanted:
        _stop_on_signals(stopped)
        yield stopped
        return
    listening: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_http(cli, et, listening.set_result, watcher=watcher))
    await asyncio.wait((serving, listening), return_when=asyncio.FIRST_COMPLETED)
    if not listening.done():
        problem = serving.exception()
        if not isinstance(problem, EverthreadError):
            await serving
        cli.out.note(f"the page is not shown: {problem}")
        _stop_on_signals(stopped)
        yield stopped
        return
    server = listening.result()
    is_built = (FOLDER / "index.html").is_file()
    serving.add_done_callback(lambda _: stopped.set())  # the server hears Ctrl-C, and this from it
    if cli.out.json:
        cli.out.document({"page": server.address, "is_built": is_built})
    else:
        cli.out.text(f"the page: {server.address}")
    if not is_built:
        cli.out.note("the page is not built, so there is nothing to see at this address: run `make web` in the clone")
    cli.out.flush()
    if sys.stdout.isatty():
        with suppress(webbrowser.Error):
            webbrowser.open(server.address)
    try:
        yield stopped
    finally:
        server.stop()
        await serving


def _stop_on_signals(stopped: asyncio.Event) -> None:
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, stopped.set)


def _print_found(cli: Invocation, watcher: Watcher, folders: list[tuple[str, Path]]) -> None:
    if cli.out.json:
        return
    counted = Counter(folder.path for folder in watcher.files().values())
    rows = [(agent, counted[path], str(path)) for agent, path in folders if counted[path]]
    if rows:
        cli.out.table(("agent", ">files", "where"), rows)
    else:
        cli.out.text(
            "no sessions of a known agent yet; looked for " + ", ".join(dict.fromkeys(agent for agent, _ in folders))
        )


def _print_problem(cli: Invocation, problem: str) -> None:
    if cli.out.json:
        cli.out.document({"not_read": problem})
        cli.out.flush()
    else:
        cli.out.note(f"not read: {problem}")


def _print_change(cli: Invocation, change: FileChange) -> None:
    if not (change.messages or change.revised or change.removed or change.is_gone):
        return  # something could not be read
    if cli.out.json:
        cli.out.document(asdict(change))
    elif change.is_gone:
        cli.out.text(f"{change.agent}: {change.path.name} was deleted; its messages are kept")
    else:
        said = [counted(change.messages, "new message")] if change.messages else []
        said += [f"{change.revised:,} revised"] if change.revised else []
        said += [f"{change.removed:,} removed there and kept here"] if change.removed else []
        cli.out.text(f"{change.agent}: {change.path.name}: {', '.join(said)}")
    cli.out.flush()


def _install(cli: Invocation) -> None:
    """Write the service file, and say how to load it; loading is left to the user."""
    program = shutil.which("everthread") or f"{Path(sys.executable).with_name('everthread')}"
    arguments = [program, "watch", "--database", cli.url, "--owner", cli.owner]
    if sys.platform == "darwin":
        path = Path.home() / "Library" / "LaunchAgents" / "everthread.watch.plist"
        text = _PLIST.format(arguments="".join(f"<string>{escape(one)}</string>" for one in arguments))
        then = f"launchctl load {shlex.quote(str(path))}"
    else:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        path = config / "systemd" / "user" / "everthread-watch.service"
        quoted = " ".join(
            '"' + one.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"' for one in arguments
        )
        text = _UNIT.format(command=quoted)
        then = "systemctl --user daemon-reload && systemctl --user enable --now everthread-watch"
    if path.exists() and path.read_text() != text:
        raise Conflict(f"{path} exists and says something else; nothing was written: remove it first")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)  # a database's address can hold a password
    if cli.out.json:
        cli.out.document({"path": str(path), "then": then})
    else:
        cli.out.text(f"{path} was written. To start it now and with every login:\n  {then}")
