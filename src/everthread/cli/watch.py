"""`everthread watch`: keep the histories of the coding agents on this machine."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
from collections import Counter
from contextlib import aclosing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from xml.sax.saxutils import escape

import typer

from everthread.cli.app import app, command
from everthread.cli.import_history import print_counts
from everthread.cli.invocation import Invocation
from everthread.core.errors import Conflict

if TYPE_CHECKING:
    from everthread.imports.watch import FileChange, Watcher

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
    once: Annotated[bool, typer.Option("--once", help="Read what there is, and stop.")] = False,
    install: Annotated[
        bool, typer.Option("--install", help="Start with this machine: write a systemd user unit or a launchd agent.")
    ] = False,
) -> None:
    """Keep the histories of Claude Code, Codex, Gemini CLI and opencode: find their sessions, and follow them."""
    from everthread.imports.watch import Watcher, agent_folders  # noqa: PLC0415 - startup

    if install:
        _install(cli)
        return
    folders = agent_folders(Path.home(), os.environ)
    async with cli.open(create=True, worker=not once) as et:
        watcher = Watcher(et, cli.owner, folders)
        _print_found(cli, watcher, [(folder.agent, folder.path) for folder in folders])
        stopped = asyncio.Event()
        for one in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(one, stopped.set)
        with cli.out.progress("reading", len(watcher.files())) as step:
            async with aclosing(watcher.sweep()) as changes:
                async for _ in changes:
                    step(1)
                    if stopped.is_set():
                        return
        print_counts(cli, watcher.counts)
        if once:
            return
        cli.out.note("following; stop with Ctrl-C. To browse: everthread serve. To find: everthread search WORDS")
        cli.out.flush()
        reported = watcher.counts.problem_count
        async with aclosing(watcher.follow(stopped)) as changes:
            async for change in changes:
                _print_change(cli, change)
                for problem in watcher.counts.problems[reported:]:
                    cli.out.note(f"not read: {problem}")
                reported = watcher.counts.problem_count


def _print_found(cli: Invocation, watcher: Watcher, folders: list[tuple[str, Path]]) -> None:
    if cli.out.json:
        return
    counted = Counter(folder.path for folder in watcher.files().values())
    rows = [(agent, counted[path], str(path)) for agent, path in folders if counted[path]]
    if rows:
        cli.out.table(("agent", ">sessions", "where"), rows)
    else:
        cli.out.text("no sessions of a known agent yet; looked in " + ", ".join(str(path) for _, path in folders))


def _print_change(cli: Invocation, change: FileChange) -> None:
    if cli.out.json:
        cli.out.document(asdict(change))
    elif change.is_gone:
        cli.out.text(f"{change.agent}: {change.path.name} was deleted; its messages are kept")
    else:
        said = [f"{change.messages:,} new messages"] if change.messages else []
        said += [f"{change.revised:,} revised"] if change.revised else []
        said += [f"{change.removed:,} removed there and kept here"] if change.removed else []
        cli.out.text(f"{change.agent}: {change.path.name}: {', '.join(said)}")
    cli.out.flush()


def _install(cli: Invocation) -> None:
    """Write the file that starts it, and say how to load it; loading is left to the user."""
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
