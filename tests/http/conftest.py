"""The service as its callers meet it: real requests through all its doors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from everthread import Everthread
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.http.app import create_app
from everthread.settings import Settings

BASE = "http://127.0.0.1"


@pytest.fixture(autouse=True)
def _no_certificates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody asks beyond this machine: a client of httpx need not read the certificates of the world, in 25 ms."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


def client_of(app: FastAPI, key: str | None = None) -> httpx.AsyncClient:
    """Somebody who asks, with a key or without."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers)


async def key_for(et: Everthread, owner: str, *, is_admin: bool = False) -> str:
    """A key as its owner holds it."""
    made = new_key(owner, is_admin=is_admin, now=system_clock())
    await et.store.api_keys.add(made.key)
    return made.written


@pytest.fixture
def settings() -> Settings:
    return Settings(database="memory://", requests_per_minute=0)


@pytest.fixture
def app(et: Everthread, settings: Settings) -> FastAPI:
    """The service where everybody needs a key."""
    return create_app(et, settings)


@pytest.fixture
async def alice(app: FastAPI, et: Everthread) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app, await key_for(et, "alice")) as client:
        yield client


@pytest.fixture
async def bob(app: FastAPI, et: Everthread) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app, await key_for(et, "bob")) as client:
        yield client


@pytest.fixture
async def admin(app: FastAPI, et: Everthread) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app, await key_for(et, "root", is_admin=True)) as client:
        yield client
