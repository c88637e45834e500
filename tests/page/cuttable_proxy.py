"""A proxy to a server that can be cut: its connections break at once, and it accepts none until it is mended."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class CuttableProxy:
    """Listens on a port of its own and hands everything on, both ways."""

    def __init__(self, port: int) -> None:
        self._far = ("127.0.0.1", port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._is_cut = False
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> CuttableProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        self._is_cut = True
        for end in self._ends:
            _closed(end)
        self._ends.clear()

    def mend(self) -> None:
        self._is_cut = False

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed while it waits
            while True:
                near, _ = self._listening.accept()
                if self._is_cut:
                    _closed(near)
                    continue
                far = socket.create_connection(self._far)
                self._ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=_hand_on, args=(one, other), daemon=True).start()


def _hand_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):  # either end may be closed at any time
        while piece := one.recv(65_536):
            other.sendall(piece)
    _closed(other)


def _closed(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
