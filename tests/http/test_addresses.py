"""The addresses that a server prints can be opened."""

from __future__ import annotations

import socket

import pytest

from everthread.http.server import address_of, outside_address
from everthread.settings import Settings


@pytest.mark.parametrize(("host", "shown"), [("0.0.0.0", "http://127.0.0.1"), ("127.0.0.1", "http://127.0.0.1")])
def test_an_address_that_stands_for_all_is_shown_as_one_that_can_be_opened(host: str, shown: str) -> None:
    with socket.create_server((host, 0)) as listener:
        address = address_of(listener)
        assert address == f"{shown}:{listener.getsockname()[1]}"
        with socket.create_connection(("127.0.0.1", listener.getsockname()[1])):
            pass


def test_only_a_server_on_all_addresses_has_one_for_other_machines() -> None:
    assert outside_address(Settings(database="memory://", host="127.0.0.1"), 8123) is None
    assert "0.0.0.0" not in (outside_address(Settings(database="memory://", host="0.0.0.0"), 8123) or "")
