"""Conversations out, for people and for other servers, and archives in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from everthread.adapters.pdf_export import render_pdf
from everthread.conversation import Conversation
from everthread.history.archive import MEDIA_TYPE
from everthread.history.export import MEDIA_TYPES, SUFFIXES, Parts, check_parts
from everthread.http.dependencies import CallerDep, ConversationDep, EverthreadDep
from everthread.http.errors import problem_responses
from everthread.http.responses import JsonResponse
from everthread.http.v1.messages import BranchParameter
from everthread.instance import Everthread
from everthread.settings import Settings

router = APIRouter(tags=["export"])

Form = Annotated[
    Literal["md", "html", "pdf", "json", "jsonl", "archive"],
    Query(description="`archive` keeps everything and can be read in again."),
]
Thinking = Annotated[bool, Query(description="Whether to show the model's thinking: in `md`, `html` and `pdf`.")]
Tools = Annotated[bool, Query(description="Whether to show calls of tools and their results: in the same.")]


class Imported(BaseModel):
    """What became of an archive."""

    imported: list[str] = Field(description="Conversations that were written.")
    skipped: list[str] = Field(description="Those that were here already, entry for entry.")
    entries: int
    messages: int


_BYTES = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The conversation, as a file.",
        "content": {kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in MEDIA_TYPES.values()},
    },
    **problem_responses(501),
}


@router.get("/conversations/{conversation_id}/export", response_class=Response, responses=_FILE)
async def export(
    conversation: ConversationDep,
    et: EverthreadDep,
    caller: CallerDep,
    request: Request,
    format: Form = "md",
    branch: BranchParameter = None,
    thinking: Thinking = True,
    tools: Tools = True,
) -> Response:
    """A conversation as Markdown, a page, PDF, JSON, a line for each message, or an archive with its subagents'."""
    parts = Parts(thinking, tools)
    check_parts(format, parts)
    headers = {"Content-Disposition": _disposition(conversation, format)}
    media_type = MEDIA_TYPES[format]
    if format == "pdf":
        settings: Settings = request.app.state.settings
        messages = conversation.messages(branch=branch)
        return Response(
            await render_pdf(conversation.info, messages, settings.models_dir, parts), 200, headers, media_type
        )
    pieces = (
        et.archive(owner=caller.owner, conversations=[conversation.id])
        if format == "archive"
        else conversation.export(format, branch=branch, thinking=thinking, tools=tools)
    )
    return StreamingResponse(await _begun(pieces), 200, headers, media_type)


async def _begun(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same, once the first piece is there: what fails at the start is still an answer of its own."""
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
        "requestBody": {"required": True, "content": {MEDIA_TYPE: _BYTES, "application/octet-stream": _BYTES}}
    },
)
async def import_archive(request: Request, et: EverthreadDep, caller: CallerDep) -> Response:
    """Read an archive in, as yours. What is here already is left as it is; 409 for one that has other messages."""
    return JsonResponse(await _imported(et, caller.owner, request.stream()))


async def _imported(et: Everthread, owner: str, pieces: AsyncIterator[bytes]) -> dict[str, Any]:
    report = await et.read_archive(pieces, owner=owner)
    return {
        "imported": report.imported,
        "skipped": report.skipped,
        "entries": report.entries,
        "messages": report.messages,
    }
