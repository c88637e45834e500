"""The same context as the tools' tests have."""

from __future__ import annotations

from tests.turn.tools.conftest import make_toolbox, memory_et, toolbox

__all__ = ["make_toolbox", "memory_et", "toolbox"]
