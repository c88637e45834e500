"""Doors for agent frameworks: their messages into the log, and the log as their messages."""

from __future__ import annotations

from everthread.integrations.opening import opened

__all__ = ["opened"]
