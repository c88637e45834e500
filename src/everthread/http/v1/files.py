"""The files of a conversation: upload, list, download."""

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
from everthread.core.errors import Invalid, NotFound
from everthread.core.workspaces import Workspace
from everthread.http.dependencies import ConversationDep, EverthreadDep
from everthread.http.middleware import restore_slashes
from everthread.http.responses import JsonResponse
from everthread.instance import Everthread
from everthread.workspaces.mime import BYTES, check_mime

router = APIRouter(tags=["files"], prefix="/conversations/{conversation_id}/files")
R = TypeVar("R")
_ACTIVE = frozenset({"text/html", "text/xml", "application/xml", "text/javascript", "application/javascript"})

FilePath = Annotated[
    str,
    Path(min_length=1, max_length=1000, description="The path in the conversation's workspace."),
    BeforeValidator(restore_slashes),
]


class UploadOut(BaseModel):
    """An uploaded file."""

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
    """All files, and which of them were uploaded."""

    items: list[FileOut]
    uploads: list[UploadOut]


async def _in_workspace(et: Everthread, conversation: Conversation, work: Callable[[Workspace], R]) -> R:
    """Work in a workspace, in a thread: it reads and writes files."""
    workspace = await et.workspaces.open(conversation)
    try:
        return await asyncio.to_thread(work, workspace)
    finally:
        await asyncio.to_thread(workspace.close)


@router.post("", status_code=201, response_model=UploadOut)
async def upload_file(conversation: ConversationDep, et: EverthreadDep, file: UploadFile) -> Response:
    """Upload a file. 422 if its content does not match its name, 409 if the workspace has no room for it."""
    body = await file.read()
    uploaded = await _in_workspace(
        et, conversation, lambda workspace: workspace.upload(file.filename or "", body, mime=None)
    )
    return JsonResponse(asdict(uploaded), 201)


@router.get("", response_model=Files)
async def list_files(conversation: ConversationDep, et: EverthreadDep) -> Response:
    """The files of a conversation, including those the agent wrote."""

    def list_all(workspace: Workspace) -> dict[str, Any]:
        uploads = [asdict(one) for one in workspace.uploads()]
        return {"items": [asdict(one) for one in workspace.files()], "uploads": uploads}

    return JsonResponse(await _in_workspace(et, conversation, list_all))


@router.get(
    "/{path:path}",
    response_class=Response,
    responses={200: {"description": "The file.", "content": {"application/octet-stream": {}}}},
)
async def download_file(conversation: ConversationDep, et: EverthreadDep, path: FilePath) -> Response:
    """Download a file, with its media type. Always as an attachment: a browser must not show what somebody uploaded as
    a page of ours."""

    try:
        body = await _in_workspace(et, conversation, lambda workspace: workspace.read(path))
    except NotFound:
        raise NotFound(f"no file {path!r}") from None
    name = quote(path.rpartition("/")[2].encode("utf-8", "replace"), safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(body, 200, headers, _media_type(path, body))


def _media_type(path: str, body: bytes) -> str:
    """What a file is by its name, if its bytes agree; nothing that a browser would run."""
    try:
        found = check_mime(path, body)
    except Invalid:
        return BYTES
    return BYTES if found in _ACTIVE or found.endswith("+xml") else found
