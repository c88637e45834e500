"""Export: conversations as files, for people and for other servers. Import: archives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile
from starlette.responses import Response, StreamingResponse

from everthread.adapters.pdf_export import render_pdf
from everthread.conversation import Conversation
from everthread.core.errors import Invalid
from everthread.history.archive import MEDIA_TYPE
from everthread.history.export import MEDIA_TYPES, SUFFIXES, Parts, check_parts
from everthread.history.import_archive import ImportLimits
from everthread.history.import_archive import import_archive as read_archive
from everthread.http.dependencies import CallerDep, ConversationDep, EverthreadDep
from everthread.http.errors import problem_responses
from everthread.http.responses import JsonResponse
from everthread.http.v1.messages import BranchParameter
from everthread.imports.detect import ARCHIVE_MAGIC
from everthread.imports.importer import Importer
from everthread.settings import Settings

router = APIRouter(tags=["export"])

_PIECE_BYTES = 64 * 1024
"""How much of an archive is read at once; a larger one waits on the disk."""
_UNPACKED = 16
"""How many times as large as an upload may be its files may be together, once they are unpacked."""

Format = Annotated[
    Literal["md", "html", "pdf", "json", "jsonl", "archive"],
    Query(description="`archive` has everything and can be imported again."),
]
Thinking = Annotated[bool, Query(description="Whether to include the model's thinking (`md`, `html`, `pdf`).")]
ToolCalls = Annotated[bool, Query(description="Whether to include tool calls and their results (`md`, `html`, `pdf`).")]


class Imported(BaseModel):
    """The result of an import."""

    imported: list[str] = Field(description="Ids of the conversations that are new.")
    skipped: list[str] = Field(description="Of an archive: ids of those that were here already.")
    entries: int = Field(description="Of an archive: entries that were written.")
    messages: int = Field(description="Messages that are new.")
    revised: int = Field(description="Messages that have a newer version now.")
    known: int = Field(description="Messages that were here already.")
    problems: list[str] = Field(description="What could not be read, each with its place.")


_BYTES = {"schema": {"type": "string", "format": "binary"}}
_FORM = "multipart/form-data"
_FORM_OF = {
    "schema": {
        "type": "object",
        "required": ["file"],
        "properties": {"file": _BYTES["schema"]},
        "additionalProperties": False,
    }
}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The conversation, as a file.",
        "content": {
            **{kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in MEDIA_TYPES.values()},
            MEDIA_TYPES["json"]: {"schema": {"type": "object", "additionalProperties": True}},
        },
    },
    **problem_responses(501),
}


@router.get("/conversations/{conversation_id}/export", response_class=Response, responses=_FILE)
async def export(
    conversation: ConversationDep,
    et: EverthreadDep,
    caller: CallerDep,
    request: Request,
    format: Format = "md",
    branch: BranchParameter = None,
    thinking: Thinking = True,
    tools: ToolCalls = True,
) -> Response:
    """A conversation as Markdown, HTML, PDF, JSON, JSON lines, or an archive that includes its subagents'."""
    parts = Parts(thinking, tools)
    check_parts(format, parts)
    await conversation.tail(1, branch=branch)  # NotFound for a branch that there is not, while it can still be said
    headers = {"Content-Disposition": _disposition(conversation, format)}
    media_type = MEDIA_TYPES[format]
    if format == "pdf":
        settings: Settings = request.app.state.settings
        messages = conversation.messages(branch=branch)
        return Response(
            await render_pdf(conversation.info, messages, settings.models_dir, parts), 200, headers, media_type
        )
    pieces = (
        et.export_archive(owner=caller.owner, conversations=[conversation.id])
        if format == "archive"
        else conversation.export(format, branch=branch, thinking=thinking, tools=tools)
    )
    return StreamingResponse(await _with_first(pieces), 200, headers, media_type)


async def _with_first(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Wait for the first piece before the response starts, so that an early failure still gets its own status."""
    first = await anext(pieces, b"")

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return whole()


def _disposition(conversation: Conversation, format: str) -> str:
    title = (conversation.title or conversation.id)[:80]
    plain = "".join(one if one.isascii() and one.isalnum() else "-" for one in title) + SUFFIXES[format]
    exact = quote((title + SUFFIXES[format]).encode("utf-8", "replace"), safe="")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"


@router.post(
    "/import",
    response_model=Imported,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                MEDIA_TYPE: _BYTES,
                "application/octet-stream": _BYTES,
                "application/zip": _BYTES,
                _FORM: _FORM_OF,
            },
        }
    },
)
async def import_history(request: Request, et: EverthreadDep, caller: CallerDep) -> Response:
    """Import a file as yours: an archive, or an export of another program (`everthread import` lists them). What you
    have already is not written again; 409 if your conversation has other messages than an archive. The file is the
    body, of whatever type, or the one file of a form."""
    settings: Settings = request.app.state.settings
    limits = ImportLimits(
        # A message as large as a body may be, with every quote in it escaped.
        line_bytes=2 * settings.max_body_bytes + _PIECE_BYTES,
        conversation_bytes=settings.max_import_bytes,
    )
    async with _upload(request) as upload:
        is_archive = upload.read(len(ARCHIVE_MAGIC)) == ARCHIVE_MAGIC
        upload.seek(0)
        # One after the other, so that all of them together need the memory of one.
        async with request.app.state.import_lock:
            if is_archive:
                report = await read_archive(et.store, caller.owner, _pieces(upload), limits)
                return JsonResponse({**asdict(report), "revised": 0, "known": 0, "problems": []})
            importer = Importer(et, caller.owner, most_unpacked_bytes=_UNPACKED * settings.max_upload_bytes)
            counts = await importer.import_stream(_pieces(upload))
    named = {name: getattr(counts, name) for name in ("imported", "messages", "revised", "known", "problems")}
    return JsonResponse({**named, "skipped": [], "entries": 0})


@asynccontextmanager
async def _upload(request: Request) -> AsyncIterator[BinaryIO]:
    """The file that came, on disk where it is large: whoever sends slowly keeps nobody waiting."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() == _FORM:
        async with request.form(max_files=1, max_fields=1) as form:
            files = [one for _, one in form.multi_items()]
            if len(files) != 1 or not isinstance(files[0], UploadFile):
                raise Invalid("must be one file, as of curl -F file=@export.zip", field="file")
            yield files[0].file
        return
    with SpooledTemporaryFile(max_size=_PIECE_BYTES) as upload:
        async for piece in request.stream():
            await asyncio.to_thread(upload.write, piece)
        upload.seek(0)
        yield upload  # type: ignore[misc]


async def _pieces(upload: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(upload.read, _PIECE_BYTES):
        yield piece
