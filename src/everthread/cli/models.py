"""Commands about the weights of local models: models fetch, models ls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import format_bytes

if TYPE_CHECKING:
    from everthread.settings import Settings

LOCAL = "smollm2"
"""What answers when no model is set."""

models = typer.Typer(no_args_is_help=True, help="Weights of local models.")
app.add_typer(models, name="models")


@command(models)
def fetch(
    cli: Invocation,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Which models; if none, all that are for everybody.")
    ] = None,
) -> None:
    """Fetch weights by hash, with the package client of this machine. What is here already stays."""
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    chosen = [weights.named(name) for name in names] if names else weights.for_everybody()
    for model in chosen:
        is_new = weights.fetch(cli.settings.models_dir, model, say=cli.out.note)
        folder = weights.folder_of(cli.settings.models_dir, model)
        if cli.out.json:
            cli.out.document({"name": model.name, "version": model.version, "path": str(folder), "fetched": is_new})
        else:
            cli.out.text(f"{model.name} {model.version}: {folder}{'' if is_new else ' (was here)'}")


def is_local_absent(settings: Settings) -> bool:
    """Whether the small model of this machine is the one that answers, and its weights were never fetched."""
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    return settings.model is None and not weights.folder_of(settings.models_dir, weights.named(LOCAL)).is_dir()


def fetch_local(cli: Invocation) -> None:
    """The weights of the small model, where nobody named another one."""
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    if is_local_absent(cli.settings):
        cli.out.note("no model is set: fetching a small one for this machine (EVERTHREAD_MODEL names a better one)")
        weights.fetch(cli.settings.models_dir, weights.named(LOCAL), say=cli.out.note)


@command(models, "ls")
def list_models(cli: Invocation) -> None:
    """List the models, and read those that are here through."""
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    rows = [(model, weights.state_of(cli.settings.models_dir, model)) for model in weights.CATALOGUE.values()]
    if cli.out.json:
        for model, state in rows:
            folder = str(weights.folder_of(cli.settings.models_dir, model))
            cli.out.document(
                {
                    "name": model.name,
                    "version": model.version,
                    "state": state,
                    "bytes": model.bytes,
                    "licence": model.licence,
                    "use": model.use,
                    "path": folder,
                }
            )
    else:
        cli.out.table(
            ("name", "state", ">size", "licence", "use"),
            [(model.name, state, format_bytes(model.bytes), model.licence, model.use) for model, state in rows],
        )
