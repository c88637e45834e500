"""The ways to an MCP server, none of which takes an answer of any size: what is longer than `MAX_ANSWER_BYTES` is read
away, never kept or parsed, and the call that waits for it fails.

The library's own transport on stdio joins what came and splits it again at each piece, the square of an answer's
length, in the event loop that serves everybody.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from importlib import import_module
from typing import Any, Final

import anyio
import httpx
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectSendStream

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
_TOO_LONG: Final = f"the answer is longer than {MAX_ANSWER_BYTES // 1024**2} MiB and was not read; ask for less"
_EXIT_SECONDS: Final = 2.0
_ID = re.compile(rb'"id"\s{0,4}:\s{0,4}(\d{1,18})\s{0,4}[,}]')
_HEAD_BYTES: Final = 256
"""Where the id of a message that is not read is looked for: at its beginning and its end."""
_EVENT_END = re.compile(rb"\n\r?\n|\r\r")


def open_session(sessions: Any, connection: Mapping[str, Any]) -> AbstractAsyncContextManager[Any]:
    """A session with a server, not yet initialised; `sessions` is the module of langchain-mcp-adapters."""
    if connection["transport"] == "stdio":
        return _stdio_session(connection)
    over_http = connection["transport"] in ("streamable_http", "sse")
    return sessions.create_session({**connection, **({"httpx_client_factory": _http_client} if over_http else {})})  # type: ignore[no-any-return]


# -- stdio -------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _stdio_session(connection: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    client, stdio = import_module("mcp"), import_module("mcp.client.stdio")
    process = await anyio.open_process(
        [connection["command"], *connection["args"]],
        env={**stdio.get_default_environment(), **connection.get("env", {})},
        stderr=sys.stderr,
        cwd=connection.get("cwd"),
        start_new_session=True,
    )
    arrived, arriving = anyio.create_memory_object_stream[Any](0)
    leaving, left = anyio.create_memory_object_stream[Any](0)
    async with process, anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, arrived)
        tasks.start_soon(_write, process, left)
        try:
            async with client.ClientSession(arriving, leaving) as session:
                yield session
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            tasks.cancel_scope.cancel()
            for stream in (arrived, arriving, leaving, left):
                stream.close()


async def _read(process: Process, arrived: MemoryObjectSendStream[Any]) -> None:
    types, shared = import_module("mcp.types"), import_module("mcp.shared.message")
    assert process.stdout is not None, "it was opened with a pipe"
    async with arrived:
        async for line, is_whole in _lines(process.stdout):
            if is_whole:
                try:
                    message = types.JSONRPCMessage.model_validate_json(line)
                except ValueError as problem:
                    await arrived.send(problem)
                    continue
            elif (found := _ID.search(line)) is not None:
                error = types.ErrorData(code=types.INTERNAL_ERROR, message=_TOO_LONG)
                message = types.JSONRPCMessage(types.JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))
            else:
                continue
            await arrived.send(shared.SessionMessage(message))


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[tuple[bytes, bool], None]:
    """Each line and whether it is whole; of one that is too long its beginning and its end."""
    kept = bytearray()
    size = 0
    async for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for part in ended:
            kept += part
            if size + len(part) <= MAX_ANSWER_BYTES:
                yield bytes(kept), True
            else:
                yield bytes(kept[:_HEAD_BYTES] + b" " + kept[-_HEAD_BYTES:]), False
            kept.clear()
            size = 0
        kept += rest
        size += len(rest)
        if size > MAX_ANSWER_BYTES:
            del kept[_HEAD_BYTES:-_HEAD_BYTES]


async def _write(process: Process, left: Any) -> None:
    assert process.stdin is not None, "it was opened with a pipe"
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it has died, which the next ping tells
        async with left:
            async for one in left:
                text = one.message.model_dump_json(by_alias=True, exclude_none=True)
                await process.stdin.send(f"{text}\n".encode())


async def _end(process: Process) -> None:
    """As the protocol wants it: first the input is closed, then the process is asked, then it is ended with its own."""
    utilities = import_module("mcp.os.posix.utilities")
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        if process.stdin is not None:
            await process.stdin.aclose()
    with anyio.move_on_after(_EXIT_SECONDS):
        await process.wait()
        return
    with suppress(ProcessLookupError):
        await utilities.terminate_posix_process_tree(process, _EXIT_SECONDS)


# -- HTTP --------------------------------------------------------------------------------------------------------------


def _http_client(
    headers: dict[str, str] | None = None, timeout: httpx.Timeout | None = None, auth: httpx.Auth | None = None
) -> httpx.AsyncClient:
    """A client that stops reading where an answer gets too long. A redirect is not followed: the address was set by
    whoever runs this, and a server must not send us, with its headers, to another."""
    return httpx.AsyncClient(
        headers={**(headers or {}), "Accept-Encoding": "identity"},
        timeout=timeout or httpx.Timeout(30.0, read=300.0),
        auth=auth,
        event_hooks={"response": [_bound]},
    )


async def _bound(response: httpx.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":  # nobody knows what it unpacks to
        raise httpx.DecodingError("the answer is packed, which was not asked for", request=response.request)
    assert isinstance(response.stream, httpx.AsyncByteStream)
    is_events = response.headers.get("content-type", "").startswith("text/event-stream")
    response.stream = _Bounded(response.stream, is_events=is_events)


class _Bounded(httpx.AsyncByteStream):
    """A body, or each event of one, up to the length that is taken."""

    def __init__(self, body: httpx.AsyncByteStream, *, is_events: bool) -> None:
        self._body = body
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, tail = 0, b""
        async for piece in self._body:
            size += len(piece)
            if self._is_events:
                seen = tail + piece
                for end in _EVENT_END.finditer(seen):
                    size = len(seen) - end.end()
                tail = seen[-3:]
            if size > MAX_ANSWER_BYTES:
                raise httpx.ReadError(_TOO_LONG)
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()
