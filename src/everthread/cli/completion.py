"""`everthread completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation

Shell = Annotated[Literal["bash", "zsh", "fish", "powershell"], typer.Argument(metavar="SHELL", help="Your shell.")]


@command(app)
def completion(cli: Invocation, shell: Shell) -> None:
    """Print the script with which your shell completes commands and options.

    bash: eval "$(everthread completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: everthread completion
    fish > ~/.config/fish/completions/everthread.fish
    """
    from typer._completion_shared import get_completion_script  # noqa: PLC0415 - startup

    script = get_completion_script(prog_name="everthread", complete_var="_EVERTHREAD_COMPLETE", shell=shell)
    if cli.out.json:
        cli.out.document({"shell": shell, "script": script})
    else:
        cli.out.text(script)
