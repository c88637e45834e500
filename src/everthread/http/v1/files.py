"""The files of a conversation: handed in, listed, and given back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Path, UploadFile
from pydantic import BaseModel, BeforeValidator
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.workspaces import Workspace
from everthread.http.dependencies import ConversationDep, EverthreadDep
from everthread.http.middleware import restore_slashes
from everthread.http.responses import JsonResponse
from everthread.instance import Everthread

router = APIRouter(tags=["files"], prefix="/conversations/{conversation_id}/files")
R = TypeVar("R")

FilePath = Annotated[
    str,
    Path(min_length=1, max_length=1000, description="Its path in the conversation's workspace."),
    BeforeValidator(restore_slashes),
]


class UploadOut(BaseModel):
    """A file that was handed in."""

    name: str
    path: str
    size_bytes: int
    sha256: str
    mime: str
    uploaded_at: datetime


class FileOut(BaseModel):
    """A file of the conversation."""

    path: str
    size_bytes: int
    modified_at: datetime


class Files(BaseModel):
    """What there is, and which of it was handed in."""

    items: list[FileOut]
    uploads: list[UploadOut]


async def _at(et: Everthread, conversation: Conversation, work: Callable[[Workspace], R]) -> R:
    """Do something in a workspace, off the loop."""
    workspace = await et.workspaces.open(conversation)
    try:
        return await asyncio.to_thread(work, workspace)
    finally:
        await asyncio.to_thread(workspace.close)


@router.post("", status_code=201, response_model=UploadOut)
async def upload_file(conversation: ConversationDep, et: EverthreadDep, file: UploadFile) -> Response:
    """Hand in a file. 422 when its bytes are not what its name says, 409 when the conversation has no room for it."""
    body = await file.read()
    kept = await _at(et, conversation, lambda at: at.upload(file.filename or "", body, mime=None))
    return JsonResponse(asdict(kept), 201)


@router.get("", response_model=Files)
async def list_files(conversation: ConversationDep, et: EverthreadDep) -> Response:
    """The files of a conversation, its agents' too."""

    def listed(workspace: Workspace) -> dict[str, Any]:
        uploads = [asdict(one) for one in workspace.uploads()]
        return {"items": [asdict(one) for one in workspace.files()], "uploads": uploads}

    return JsonResponse(await _at(et, conversation, listed))


@router.get(
    "/{path:path}",
    response_class=Response,
    responses={200: {"description": "The file.", "content": {"application/octet-stream": {}}}},
)
async def download_file(conversation: ConversationDep, et: EverthreadDep, path: FilePath) -> Response:
    """A file's bytes. Always to be saved, never to be shown: what is in it is nobody's page."""

    def read(workspace: Workspace) -> bytes:
        return workspace.read(path)

    try:
        body = await _at(et, conversation, read)
    except NotFound:
        raise NotFound(f"no file {path!r}") from None
    name = quote(path.rpartition("/")[2].encode("utf-8", "replace"), safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(body, 200, headers, "application/octet-stream")
