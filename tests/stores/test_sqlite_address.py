"""Where a SQLite address leads."""

from __future__ import annotations

from pathlib import Path

import pytest

import everthread
from everthread.adapters.stores.database_url import sqlite_file


@pytest.mark.parametrize("url", ["sqlite:///~/data/et.db", "sqlite:///%7E/data/et.db"])
async def test_a_tilde_is_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    async with everthread.open(url, worker=False) as et:
        await et.conversations.create()
    assert (home / "data" / "et.db").is_file()
    assert sqlite_file(url) == home / "data" / "et.db"
    assert list(here.iterdir()) == []
