"""Every command, by family: importing this module fills the app, in the order of the help."""

from __future__ import annotations

from importlib import import_module

from everthread.cli.app import app, run, whole_command

__all__ = ["app", "run", "whole_command"]

for family in (
    "chat",
    "reading",
    "viewing",
    "why",
    "compacting",
    "replay",
    "writing",
    "proving",
    "remembering",
    "knowing",
    "erasing",
    "exporting",
    "keeping",
    "cleaning",
    "adopting",
    "working",
    "serving",
    "doctor",
    "setup",
    "models",
):
    import_module(f"everthread.cli.{family}")
