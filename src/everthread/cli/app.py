"""The options that every command takes, how a command runs, and where its errors end."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer
from typer.main import get_command

from everthread.cli.door import Door
from everthread.cli.errors import ExitCode, exit_code, listen, tell
from everthread.cli.output import Output, let_go_of_stdout, prepare_streams
from everthread.core.errors import EverthreadError

P = ParamSpec("P")
Body = Callable[Concatenate[Door, P], Coroutine[Any, Any, None] | None]

DatabaseOption = Annotated[
    str | None, typer.Option("--database", metavar="URL", help="The database: sqlite:///file or postgresql://…")
]
OwnerOption = Annotated[str | None, typer.Option("--owner", metavar="NAME", help="Whose conversations are meant.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The settings, in the place of everthread.toml.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]

app = typer.Typer(
    name="everthread",
    help="Conversations of LLM agents that never end and never forget.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich help takes twice the time to appear
    context_settings={"help_option_names": ["--help", "-h"]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the command line says, before or after the command's name; what stands after wins."""

    database: str | None = None
    owner: str | None = None
    config: Path | None = None
    json: bool = False

    def over(self, earlier: Given) -> Given:
        return Given(
            database=earlier.database if self.database is None else self.database,
            owner=earlier.owner if self.owner is None else self.owner,
            config=earlier.config if self.config is None else self.config,
            json=self.json or earlier.json,
        )

    def door(self) -> Door:
        from everthread.settings import load  # noqa: PLC0415 - startup

        named = {"database": self.database, "owner": self.owner}
        loaded = load({name: value for name, value in named.items() if value is not None}, self.config)
        listen(loaded.settings)
        return Door(settings=loaded.settings, origins=loaded.origins, files=loaded.files, out=Output(json=self.json))


@app.callback()
def everthread(
    context: typer.Context,
    database: DatabaseOption = None,
    owner: OwnerOption = None,
    config: ConfigOption = None,
    json_output: JsonOption = False,
    version_asked: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=lambda asked: _show_version(asked), help="Show it.")
    ] = False,
) -> None:
    """Conversations of LLM agents that never end and never forget."""
    context.obj = Given(database=database, owner=owner, config=config, json=json_output)


def _show_version(asked: bool) -> None:
    if asked:
        print(f"everthread {version('everthread')}")
        raise typer.Exit


def command(group: typer.Typer, name: str | None = None) -> Callable[[Body[P]], Body[P]]:
    """Make a function that takes a `Door` first, async or not, a command that takes the common options too."""

    def register(body: Body[P]) -> Body[P]:
        def entry(
            context: typer.Context,
            database: DatabaseOption = None,
            owner: OwnerOption = None,
            config: ConfigOption = None,
            json_output: JsonOption = False,
            **own: Any,
        ) -> None:
            given = Given(database=database, owner=owner, config=config, json=json_output)
            _execute(body, given.over(context.obj), own)

        _describe(entry, body)
        group.command(name)(entry)
        return body

    return register


def _describe(entry: Callable[..., None], body: Callable[..., object]) -> None:
    """Show typer the parameters of both, which it reads from the signature."""
    common = inspect.signature(entry, eval_str=True).parameters.values()
    own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*common, *own)]
    named = [parameter for parameter in parameters if parameter.name != "own"]
    entry.__name__, entry.__doc__ = body.__name__, body.__doc__
    entry.__signature__ = inspect.Signature(_in_order(named))  # type: ignore[attr-defined]
    entry.__annotations__ = {parameter.name: parameter.annotation for parameter in named}


def _in_order(parameters: Sequence[inspect.Parameter]) -> Sequence[inspect.Parameter]:
    """The common options stand last in the help."""
    common = ("database", "owner", "config", "json_output")
    return sorted(parameters, key=lambda parameter: parameter.name in common)


def _execute(body: Callable[..., Coroutine[Any, Any, None] | None], given: Given, own: dict[str, Any]) -> None:
    try:
        result = body(given.door(), **own)
        if inspect.iscoroutine(result):
            asyncio.run(result)
        sys.stdout.flush()
    except BrokenPipeError:
        let_go_of_stdout()
        raise typer.Exit(ExitCode.BROKEN_PIPE) from None
    except EverthreadError as problem:
        tell(str(problem), code=problem.code, retryable=problem.retryable, as_json=given.json)
        raise typer.Exit(exit_code(problem)) from None
    except OSError as problem:
        tell(str(problem), code="os_error", as_json=given.json)
        raise typer.Exit(ExitCode.ERROR) from None


@cache
def whole_command() -> Any:
    """All commands, built from their functions: that takes 40 ms, and who runs several command lines pays it once."""
    return get_command(app)


def run(arguments: Sequence[str]) -> int:
    """Run one command line, and give its exit code."""
    prepare_streams()
    try:
        code = whole_command().main(args=list(arguments), prog_name="everthread", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as problem:  # what is wrong with the command line itself
        if message := problem.format_message():  # empty when the help was shown instead
            tell(f"{message} (see --help)", code="usage", as_json="--json" in arguments)
        return problem.exit_code
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        let_go_of_stdout()
        return ExitCode.BROKEN_PIPE
    return code if isinstance(code, int) else ExitCode.OK
