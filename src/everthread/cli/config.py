"""`everthread config`: the settings in effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation

if TYPE_CHECKING:
    from everthread.settings import Settings


@command(app)
def config(cli: Invocation) -> None:
    """Show the settings in effect and where each came from. Passwords are hidden."""
    values = _settings_as_text(cli.settings)
    if cli.out.json:
        cli.out.document(
            {
                "settings": {
                    name: {"value": value or None, "from": cli.origins[name]} for name, value in values.items()
                },
                "files": [{"path": str(file), "exists": file.is_file()} for file in cli.files],
            }
        )
        return
    cli.out.table(("setting", "value", "from"), [(name, value, cli.origins[name]) for name, value in values.items()])
    for file in cli.files:
        cli.out.note(f"{'read' if file.is_file() else 'not there'}: {file}")


def _settings_as_text(settings: Settings) -> dict[str, str]:
    """Every setting as text, those of compaction with their full names."""
    from everthread.compaction.policy import policy_as_dict  # noqa: PLC0415 - startup
    from everthread.settings import COMPACTION, masked  # noqa: PLC0415

    values = {name: _as_text(value) for name, value in settings.model_dump(exclude={COMPACTION}).items()}
    policy = {f"{COMPACTION}.{name}": _as_text(value) for name, value in policy_as_dict(settings.compaction).items()}
    return {**values, **{name: masked(values[name]) for name in ("database", "vectors")}, **policy}


def _as_text(value: object) -> str:
    """As in a configuration file; empty for None."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
