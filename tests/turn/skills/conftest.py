"""The same desk as the tools' tests have."""

from __future__ import annotations

from tests.turn.tools.conftest import hands, make_hands, memory_et

__all__ = ["hands", "make_hands", "memory_et"]
