"""The project's own tree, as the house tests see it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder that holds pyproject.toml."""
    return Path(__file__).parents[2]


@pytest.fixture(scope="session")
def tracked(root: Path) -> tuple[Path, ...]:
    """Every file git tracks that is on disk; skips visibly where the tree came without git."""
    # A checkout that belongs to another account is read, not trusted with anything.
    command = ("git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z")
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    if listing.returncode != 0:
        pytest.skip("no git checkout: " + listing.stderr.strip())
    files = (root / name for name in listing.stdout.split("\0") if name)
    return tuple(file for file in files if file.is_file())
