"""The typer application: the options every command takes, how a command runs, and where its errors end."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Concatenate, Final, ParamSpec

import typer
from typer._click.exceptions import NoArgsIsHelpError
from typer.core import TyperGroup

from everthread.cli.errors import ExitCode, configure_logging, exit_code, print_error
from everthread.cli.invocation import Invocation
from everthread.cli.output import Output, discard_stdout, prepare_streams
from everthread.core.errors import EverthreadError
from everthread.core.plain_words import plain_words

P = ParamSpec("P")
CommandFunction = Callable[Concatenate[Invocation, P], Coroutine[Any, Any, None] | None]

DatabaseOption = Annotated[
    str | None, typer.Option("--database", metavar="URL", help="The database: sqlite:///file or postgresql://…")
]
OwnerOption = Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Whose conversations to use.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read settings from this file, not everthread.toml.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Conversations": {
        "chat": "Chat with a model; every word is kept.",
        "ls": "List conversations, newest first.",
        "show": "Show the messages of a conversation.",
        "search": "Search messages by words.",
        "recall": "Show what would be recalled for a question, and why.",
        "append": "Append messages from stdin.",
        "fork": "Start a branch at a message.",
        "copy": "Copy a conversation to go on in the copy.",
        "pin": "Keep a message in the model's view.",
        "delete": "Hide a conversation or a message.",
        "usage": "Show turns, tokens and cost.",
    },
    "What a model sees": {
        "context": "Show what a model would see now.",
        "why": "Show whether a model saw a text when it answered.",
        "compact": "Summarise old messages in the model's view.",
        "compactions": "List the summaries of a conversation.",
        "diff": "Show a summary next to the messages it covers.",
        "grade": "Show whether facts needed again were in view.",
        "replay": "Try a compaction policy on a conversation.",
    },
    "Memories and documents": {
        "memories": "What is remembered about a user.",
        "kb": "Named collections of documents.",
    },
    "Proof and erasure": {
        "verify": "Recompute every hash and follow every chain.",
        "heads": "Print the head of every log, to be kept elsewhere.",
        "prove": "Prove a conversation to somebody else.",
        "spread": "List what a message reached.",
        "quarantine": "Take a message out of every view.",
        "hold": "Protect data from erasure (legal hold).",
        "erase": "Destroy text for good.",
        "erasures": "Print what was erased, to be kept elsewhere.",
    },
    "Import and export": {
        "import": "Import conversations of other programs.",
        "export": "Export a conversation.",
        "watch": "Keep the histories of coding agents.",
        "resume": "Write a session file that an agent opens.",
        "blame": "List the tool calls that named a file.",
        "mcp": "Serve history to an MCP client.",
        "adopt": "Archive the threads of a LangGraph checkpointer.",
    },
    "Service": {
        "serve": "Serve the HTTP API and the page.",
        "key": "API keys of the service.",
        "worker": "Run background jobs.",
        "jobs": "List background jobs, or retry dead ones.",
        "models": "Weights of local models.",
    },
    "Database": {
        "migrate": "Upgrade or create the database.",
        "backup": "Copy the database while it is in use.",
        "restore": "Replace the database with a backup.",
        "stats": "Show counts and sizes.",
        "sql": "Query the database, read-only.",
        "reindex": "Make missing vectors.",
        "clean": "Remove files of idle workspaces.",
        "sweep": "Delete blobs that nothing refers to.",
    },
    "This program": {
        "demo": "Watch a conversation outlive its framework.",
        "doctor": "Check the installation and the database.",
        "config": "Show the settings in effect.",
        "completion": "Print the completion script of your shell.",
    },
}
"""What the help lists, without importing any command."""


class CommandGroup(TyperGroup):
    """All commands: listed by GROUPS, whether they are imported or not."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for commands in GROUPS.values() for name in commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.list_commands(ctx)))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415 - only here

        known = {name: text for commands in GROUPS.values() for name, text in commands.items()}
        return [CompletionItem(name, help=text) for name, text in known.items() if name.startswith(incomplete)]


app = typer.Typer(
    cls=CommandGroup,
    name="everthread",
    help="Conversations of LLM agents that never end and never forget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich help takes twice as long to appear
    context_settings={"help_option_names": ["--help", "-h"]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """The options that may stand before or after the command's name; those after it win."""

    database: str | None = None
    owner: str | None = None
    config: Path | None = None
    json: bool = False

    def overriding(self, earlier: CommonOptions) -> CommonOptions:
        return CommonOptions(
            database=earlier.database if self.database is None else self.database,
            owner=earlier.owner if self.owner is None else self.owner,
            config=earlier.config if self.config is None else self.config,
            json=self.json or earlier.json,
        )

    def invocation(self) -> Invocation:
        from everthread.settings import load  # noqa: PLC0415 - startup

        given = {"database": self.database, "owner": self.owner}
        loaded = load({name: value for name, value in given.items() if value is not None}, self.config)
        configure_logging(loaded.settings)
        return Invocation(
            settings=loaded.settings, origins=loaded.origins, files=loaded.files, out=Output(json=self.json)
        )


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"everthread {version('everthread')}")
        raise typer.Exit


@app.callback()
def everthread(
    context: typer.Context,
    database: DatabaseOption = None,
    owner: OwnerOption = None,
    config: ConfigOption = None,
    json_output: JsonOption = False,
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Conversations of LLM agents that never end and never forget."""
    context.obj = CommonOptions(database=database, owner=owner, config=config, json=json_output)


def command(group: typer.Typer, name: str | None = None) -> Callable[[CommandFunction[P]], CommandFunction[P]]:
    """Register a function, async or not, whose first parameter is an `Invocation`. The command takes the function's
    own parameters and the common options."""

    def register(function: CommandFunction[P]) -> CommandFunction[P]:
        def entry(
            context: typer.Context,
            database: DatabaseOption = None,
            owner: OwnerOption = None,
            config: ConfigOption = None,
            json_output: JsonOption = False,
            **own: Any,
        ) -> None:
            options = CommonOptions(database=database, owner=owner, config=config, json=json_output)
            _execute(function, options.overriding(context.obj), own)

        _set_signature(entry, function)
        group.command(name)(entry)
        return function

    return register


def _set_signature(entry: Callable[..., None], function: Callable[..., object]) -> None:
    """Give `entry` the parameters of both functions: typer reads them from the signature. The common options come last
    in the help."""
    common = [
        parameter
        for parameter in inspect.signature(entry, eval_str=True).parameters.values()
        if parameter.name != "own"
    ]
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (common[0], *own, *common[1:])
    ]
    entry.__name__, entry.__doc__ = function.__name__, function.__doc__
    entry.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    entry.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _execute(
    function: Callable[..., Coroutine[Any, Any, None] | None], options: CommonOptions, own: dict[str, Any]
) -> None:
    try:
        result = function(options.invocation(), **own)
        if inspect.iscoroutine(result):
            asyncio.run(result)
        sys.stdout.flush()
    except BrokenPipeError:
        discard_stdout()
        raise typer.Exit(ExitCode.BROKEN_PIPE) from None
    except EverthreadError as problem:
        print_error(str(problem), code=problem.code, retryable=problem.retryable, as_json=options.json)
        raise typer.Exit(exit_code(problem)) from None
    except OSError as problem:
        print_error(str(problem), code="os_error", as_json=options.json)
        raise typer.Exit(ExitCode.ERROR) from None


def run_command(command: Any, arguments: Sequence[str]) -> int:
    """Run one command line with a built command and return its exit code."""
    prepare_streams()
    try:
        code = command.main(args=list(arguments), prog_name="everthread", standalone_mode=False)
        sys.stdout.flush()
    except NoArgsIsHelpError as problem:  # a group without its command: its help, as people read it
        if "--json" in arguments:
            print_error("a command is missing (see --help)", code="usage", as_json=True)
        else:
            print(problem.ctx.get_help(), file=sys.stderr)
        return problem.exit_code
    except typer.TyperException as problem:  # the command line itself is wrong
        if message := problem.format_message():  # empty if the help was shown instead
            print_error(f"{plain_words(message)} (see --help)", code="usage", as_json="--json" in arguments)
        return problem.exit_code
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        discard_stdout()
        return ExitCode.BROKEN_PIPE
    return code if isinstance(code, int) else ExitCode.OK
