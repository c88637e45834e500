"""Memories of an owner, and the knowledge documents that agents may search."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, UploadFile
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.core.errors import NotFound
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.core.memories import Memory, MemoryKind, MemoryScope
from everthread.http.dependencies import (
    MAX_SEARCH_CHARACTERS,
    CallerDep,
    ConversationId,
    Cursor,
    EverthreadDep,
    Limit,
    PathId,
    RequestModel,
)
from everthread.http.responses import JsonResponse

router = APIRouter()

ConversationFilter = Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)]
SearchText = Annotated[str, Query(min_length=1, max_length=MAX_SEARCH_CHARACTERS)]
Collection = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARACTERS)]


class MemoryIn(RequestModel):
    """Something to remember."""

    text: str = Field(min_length=1, max_length=20_000)
    kind: MemoryKind = MemoryKind.FACT
    scope: MemoryScope = MemoryScope.USER
    conversation_id: ConversationId | None = None
    seq: int | None = Field(default=None, ge=1, le=2**32 - 1, description="The message it comes from.")
    subject: str | None = Field(default=None, min_length=1, max_length=200)
    confidence: float = Field(default=1.0, ge=0, le=1)
    pinned: bool | None = None


class MemoryChanges(RequestModel):
    """The fields to change."""

    text: str | None = Field(default=None, min_length=1, max_length=20_000)
    kind: MemoryKind | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    pinned: bool | None = None


class SourceOut(BaseModel):
    """Where a memory comes from."""

    conversation_id: str
    seq: int = Field(description="The message; 0 if it is not a single one.")


class MemoryOut(BaseModel):
    """A memory."""

    id: str
    text: str
    kind: str
    scope: str
    conversation_id: str | None
    subject: str | None
    source: SourceOut | None
    origin: str
    trust: str = Field(description="user, model or data; one of `data` is shown in its own conversation only.")
    confidence: float
    tokens: int
    supersedes: str | None
    superseded_by: str | None
    state: str
    is_pinned: bool
    created_at: datetime
    updated_at: datetime


class MemoryPage(BaseModel):
    """Memories, newest first."""

    items: list[MemoryOut]
    next_cursor: str | None


class MemoryHits(BaseModel):
    """Matching memories, best first."""

    items: list[dict[str, Any]]


class DocumentIn(RequestModel):
    """A text for a collection."""

    collection: Collection
    text: str = Field(min_length=1)
    id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)
    title: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)


class DocumentOut(BaseModel):
    """A document."""

    collection: str
    document: dict[str, Any]


class Documents(BaseModel):
    """The documents of a collection, newest first."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class Collections(BaseModel):
    """Named collections of documents."""

    items: list[dict[str, Any]]


class Passages(BaseModel):
    """Matching passages, best first."""

    items: list[dict[str, Any]]


class RemovedCount(BaseModel):
    """How many documents were removed."""

    removed: int


def memory_out(one: Memory) -> dict[str, Any]:
    fields = {name: value for name, value in asdict(one).items() if name in MemoryOut.model_fields}
    source = one.source and {"conversation_id": one.source.conversation, "seq": one.source.seq}
    return {**fields, "source": source, "is_pinned": one.is_pinned}


@router.post("/memories", status_code=201, response_model=MemoryOut, tags=["memories"])
async def add_memory(new: MemoryIn, et: EverthreadDep, caller: CallerDep) -> Response:
    """Add a memory. A newer one of the same subject supersedes the older one, which stays readable."""
    memory = await et.memories.add(
        caller.owner,
        new.text,
        kind=new.kind,
        scope=new.scope,
        conversation=new.conversation_id,
        seq=new.seq,
        subject=new.subject,
        confidence=new.confidence,
        pinned=new.pinned,
    )
    return JsonResponse(memory_out(memory), 201)


@router.get("/memories", response_model=MemoryPage, tags=["memories"])
async def list_memories(
    et: EverthreadDep,
    caller: CallerDep,
    conversation_id: ConversationFilter = None,
    pinned: bool = False,
    include_past: bool = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Your memories, newest first; or those that apply in a conversation."""
    page = await et.memories.list(
        caller.owner,
        conversation=conversation_id,
        pinned=pinned,
        include_past=include_past,
        limit=limit,
        cursor=cursor,
    )
    return JsonResponse({"items": [memory_out(one) for one in page.items], "next_cursor": page.next_cursor})


@router.get("/memories/search", response_model=MemoryHits, tags=["memories"])
async def search_memories(
    et: EverthreadDep, caller: CallerDep, q: SearchText, conversation_id: ConversationFilter = None, limit: Limit = 10
) -> Response:
    """Search your memories by words; best first."""
    hits = await et.memories.search(caller.owner, q, conversation=conversation_id, limit=limit)
    return JsonResponse({"items": [{"memory": memory_out(hit.memory), "score": hit.score} for hit in hits]})


@router.get("/memories/{memory_id}", response_model=MemoryOut, tags=["memories"])
async def get_memory(memory_id: PathId, et: EverthreadDep, caller: CallerDep) -> Response:
    """One memory, also a superseded or forgotten one."""
    return JsonResponse(memory_out(await et.memories.get(caller.owner, memory_id)))


@router.get("/memories/{memory_id}/history", response_model=MemoryPage, tags=["memories"])
async def memory_history(memory_id: PathId, et: EverthreadDep, caller: CallerDep) -> Response:
    """A memory with all that it superseded and that superseded it, oldest first."""
    versions = await et.memories.history(caller.owner, memory_id)
    return JsonResponse({"items": [memory_out(one) for one in versions], "next_cursor": None})


@router.patch("/memories/{memory_id}", response_model=MemoryOut, tags=["memories"])
async def update_memory(memory_id: PathId, changes: MemoryChanges, et: EverthreadDep, caller: CallerDep) -> Response:
    """Update a memory. A new text makes a new memory, which is returned; the old one stays readable."""
    await et.memories.get(caller.owner, memory_id)
    changed = await et.memories.update(
        caller.owner,
        memory_id,
        text=changes.text,
        kind=changes.kind,
        confidence=changes.confidence,
        pinned=changes.pinned,
    )
    return JsonResponse(memory_out(changed))


@router.post("/memories/{memory_id}/confirm", response_model=MemoryOut, tags=["memories"])
async def confirm_memory(memory_id: PathId, et: EverthreadDep, caller: CallerDep) -> Response:
    """Confirm a memory of trust `data` as the user's own. The new one is returned; the unconfirmed one is its past."""
    return JsonResponse(memory_out(await et.memories.confirm(caller.owner, memory_id)))


@router.delete("/memories/{memory_id}", response_model=MemoryOut, tags=["memories"])
async def forget_memory(memory_id: PathId, et: EverthreadDep, caller: CallerDep) -> Response:
    """Hide it from every search and context; restore undoes it."""
    return JsonResponse(memory_out(await et.memories.forget(caller.owner, memory_id)))


@router.post("/memories/{memory_id}/restore", response_model=MemoryOut, tags=["memories"])
async def restore_memory(memory_id: PathId, et: EverthreadDep, caller: CallerDep) -> Response:
    """Undo a forget."""
    return JsonResponse(memory_out(await et.memories.restore(caller.owner, memory_id)))


@router.get("/knowledge", response_model=Collections, tags=["knowledge"])
async def list_collections(et: EverthreadDep, caller: CallerDep) -> Response:
    """Your collections of documents."""
    return JsonResponse({"items": [asdict(one) for one in await et.knowledge.collections(caller.owner)]})


@router.post("/knowledge/documents", status_code=201, response_model=DocumentOut, tags=["knowledge"])
async def add_document(new: DocumentIn, et: EverthreadDep, caller: CallerDep) -> Response:
    """Add a text to a collection, which is created if missing. The same id replaces a changed text."""
    document = await et.knowledge.add(caller.owner, new.collection, new.text, id=new.id, title=new.title)
    return JsonResponse({"collection": new.collection, "document": asdict(document)}, 201)


@router.post("/knowledge/files", status_code=201, response_model=DocumentOut, tags=["knowledge"])
async def add_document_file(
    et: EverthreadDep,
    caller: CallerDep,
    file: UploadFile,
    collection: Annotated[str, Form(min_length=1, max_length=MAX_ID_CHARACTERS)],
) -> Response:
    """Add a file (text, Markdown, PDF) to a collection; its name is its id."""
    document = await et.knowledge.add(caller.owner, collection, await file.read(), id=file.filename or None)
    return JsonResponse({"collection": collection, "document": asdict(document)}, 201)


@router.get("/knowledge/{collection}/documents", response_model=Documents, tags=["knowledge"])
async def list_documents(
    collection: PathId, et: EverthreadDep, caller: CallerDep, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The documents of a collection, newest first."""
    page = await et.knowledge.list(caller.owner, collection, limit=limit, cursor=cursor)
    if not page.items and cursor is None:
        raise NotFound(f"no collection {collection!r}")
    return JsonResponse({"items": [asdict(one) for one in page.items], "next_cursor": page.next_cursor})


@router.get("/knowledge/{collection}/search", response_model=Passages, tags=["knowledge"])
async def search_documents(
    collection: PathId,
    et: EverthreadDep,
    caller: CallerDep,
    q: SearchText,
    limit: Annotated[int, Query(ge=1, le=100)] = 5,
) -> Response:
    """Search a collection for passages that answer a question; best first."""
    hits = await et.knowledge.search(caller.owner, collection, q, limit=limit)
    return JsonResponse({"items": [asdict(hit) for hit in hits]})


@router.delete("/knowledge/{collection}", response_model=RemovedCount, tags=["knowledge"])
async def remove_collection(collection: PathId, et: EverthreadDep, caller: CallerDep) -> Response:
    """Remove a collection with all its documents."""
    return JsonResponse({"removed": await et.knowledge.remove(caller.owner, collection)})


@router.delete("/knowledge/{collection}/documents/{document_id}", response_model=RemovedCount, tags=["knowledge"])
async def remove_document(collection: PathId, document_id: PathId, et: EverthreadDep, caller: CallerDep) -> Response:
    """Remove a document."""
    return JsonResponse({"removed": await et.knowledge.remove(caller.owner, collection, document_id)})
