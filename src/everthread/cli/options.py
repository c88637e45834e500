"""Arguments and options that several commands take, and how their values are read."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from everthread.cli.errors import ExitCode
from everthread.core.errors import Invalid

ConversationArgument = Annotated[
    str, typer.Argument(metavar="CONVERSATION", help="The conversation's id, or its beginning.")
]
BranchOption = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="A branch (main, b1 …) or the seq of its last message.")
]


def branch_name(given: str | None) -> str | int | None:
    """The option's value: a branch's id, or the seq of a message."""
    return int(given) if given is not None and given.isdecimal() else given


WindowOption = Annotated[int, typer.Option("--window", min=1, metavar="N", help="The model's context window.")]
ReserveOption = Annotated[
    int | None,
    typer.Option("--reserve", min=0, metavar="N", help="Tokens kept free for the answer: 4,096, or a quarter of less."),
]
SecretsOption = Annotated[bool, typer.Option("--show-secrets", help="Do not mask what looks like a credential.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def confirm(question: str, yes: bool) -> None:
    """Ask on the terminal, before the event loop runs, so that Ctrl-C works."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Invalid("nothing was erased: without a terminal to confirm on, pass --yes")
    print(f"{question} It cannot be undone. [y/N]", end=" ", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        print("nothing was erased", file=sys.stderr)
        raise typer.Exit(ExitCode.ERROR)
