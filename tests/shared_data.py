"""Recorded conversations that are no part of the project: found beside it, or where EVERTHREAD_SHARED says.

Tests that need them skip visibly where they are absent; `tests/README.md` says what belongs there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Read once: some tests remove the variable from their environment.
_SHARED = Path(os.environ.get("EVERTHREAD_SHARED", Path(__file__).parents[2] / "shared"))


def shared_folder(inside: str = "") -> Path:
    """The folder of recorded conversations, or a file or folder in it; skips the test where that is absent."""
    path = _SHARED / inside
    if not path.exists():
        pytest.skip(f"needs recorded conversations: {inside or 'a folder'} in EVERTHREAD_SHARED (see tests/README.md)")
    return path
