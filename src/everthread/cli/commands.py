"""All commands. Importing this module registers them with the app, in the order in which the help lists them."""

from __future__ import annotations

from importlib import import_module

from everthread.cli.app import app, built_command, run

__all__ = ["app", "built_command", "run"]

MODULES = (
    "chat",
    "conversations",  # ls, show, search, append, fork, pin, delete
    "context",
    "why",
    "recall",  # recall, usage
    "compaction",  # compact, compactions, diff
    "replay",
    "verify",  # heads, verify
    "memories",
    "kb",
    "erase",  # erase, erasures
    "export",
    "import_history",  # import
    "watch",
    "resume",
    "blame",
    "mcp",
    "database",  # stats, migrate, backup, restore
    "sql",
    "clean",  # clean, sweep
    "adopt",
    "jobs",  # worker, jobs, reindex
    "serve",  # serve, key
    "doctor",
    "config",
    "demo",
    "models",
)

for name in MODULES:
    import_module(f"everthread.cli.{name}")
