"""A server whose processes listen and then die; or die before that. For test_workers."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection

from everthread.core.errors import EverthreadError
from everthread.http import supervisor


def work(listens: bool, sockets: Sequence[socket.socket], pipe: Connection) -> None:
    if listens:
        pipe.send(True)
    os._exit(7)


def main(listens: bool) -> None:
    supervisor.MAX_QUICK_DEATHS = 2
    try:
        supervisor.supervise(
            partial(work, listens), [], count=1, stop_seconds=1, on_listening=lambda: print("listening", flush=True)
        )
    except EverthreadError as problem:
        print(problem, flush=True)


if __name__ == "__main__":
    main(sys.argv[1] == "late")
