"""What is remembered of an owner, and the documents that agents may ask."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, UploadFile
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.conversation import MAX_QUERY_CHARACTERS
from everthread.core.errors import NotFound
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.core.memories import Memory, MemoryKind, MemoryScope
from everthread.http.asking import Asker, Body, Cursor, Et, Id, Limit
from everthread.http.json import Json

router = APIRouter()

Conversation = Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)]
Question = Annotated[str, Query(min_length=1, max_length=MAX_QUERY_CHARACTERS)]
Collection = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARACTERS)]


class MemoryIn(Body):
    """Something to remember."""

    text: str = Field(min_length=1, max_length=20_000)
    kind: MemoryKind = MemoryKind.FACT
    scope: MemoryScope = MemoryScope.USER
    conversation_id: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)
    seq: int | None = Field(default=None, ge=1, le=2**32 - 1, description="The message that it is known from.")
    subject: str | None = Field(default=None, min_length=1, max_length=200)
    confidence: float = Field(default=1.0, ge=0, le=1)
    pinned: bool | None = None


class MemoryChanges(Body):
    """What is to be otherwise."""

    text: str | None = Field(default=None, min_length=1, max_length=20_000)
    kind: MemoryKind | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    pinned: bool | None = None


class SourceOut(BaseModel):
    """Where something is known from."""

    conversation_id: str
    seq: int = Field(description="The message; 0: no single one.")


class MemoryOut(BaseModel):
    """One thing that is remembered."""

    id: str
    text: str
    kind: str
    scope: str
    conversation_id: str | None
    subject: str | None
    source: SourceOut | None
    origin: str
    confidence: float
    tokens: int
    supersedes: str | None
    superseded_by: str | None
    state: str
    is_pinned: bool
    created_at: datetime
    updated_at: datetime


class MemoryPage(BaseModel):
    """Memories, the newest first."""

    items: list[MemoryOut]
    next_cursor: str | None


class FoundMemories(BaseModel):
    """Memories by their words, best first."""

    items: list[dict[str, Any]]


class DocumentIn(Body):
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
    """The documents of a collection, the newest first."""

    items: list[dict[str, Any]]
    next_cursor: str | None


class Collections(BaseModel):
    """Named collections of documents."""

    items: list[dict[str, Any]]


class Passages(BaseModel):
    """Passages that fit a question, best first."""

    items: list[dict[str, Any]]


class Removed(BaseModel):
    """How many documents went."""

    removed: int


def memory_out(one: Memory) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(one).items() if name in MemoryOut.model_fields}
    source = one.source and {"conversation_id": one.source.conversation, "seq": one.source.seq}
    return {**shown, "source": source, "is_pinned": one.is_pinned}


@router.post("/memories", status_code=201, response_model=MemoryOut, tags=["memories"])
async def add_memory(new: MemoryIn, et: Et, caller: Asker) -> Response:
    """Remember something. A newer one of the same subject takes the older one's place, which stays readable."""
    made = await et.memories.add(
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
    return Json(memory_out(made), 201)


@router.get("/memories", response_model=MemoryPage, tags=["memories"])
async def list_memories(
    et: Et,
    caller: Asker,
    conversation_id: Conversation = None,
    pinned: bool = False,
    include_past: bool = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """What is remembered of you, the newest first; or what holds in a conversation."""
    page = await et.memories.list(
        caller.owner,
        conversation=conversation_id,
        pinned=pinned,
        include_past=include_past,
        limit=limit,
        cursor=cursor,
    )
    return Json({"items": [memory_out(one) for one in page.items], "next_cursor": page.next_cursor})


@router.get("/memories/search", response_model=FoundMemories, tags=["memories"])
async def search_memories(
    et: Et, caller: Asker, q: Question, conversation_id: Conversation = None, limit: Limit = 10
) -> Response:
    """Memories by their words, best first."""
    hits = await et.memories.search(caller.owner, q, conversation=conversation_id, limit=limit)
    return Json({"items": [{"memory": memory_out(hit.memory), "score": hit.score} for hit in hits]})


@router.get("/memories/{memory_id}", response_model=MemoryOut, tags=["memories"])
async def get_memory(memory_id: Id, et: Et, caller: Asker) -> Response:
    """One memory, whatever became of it."""
    return Json(memory_out(await et.memories.get(caller.owner, memory_id)))


@router.get("/memories/{memory_id}/history", response_model=MemoryPage, tags=["memories"])
async def memory_history(memory_id: Id, et: Et, caller: Asker) -> Response:
    """A memory with all that it superseded and that superseded it, oldest first."""
    told = await et.memories.history(caller.owner, memory_id)
    return Json({"items": [memory_out(one) for one in told], "next_cursor": None})


@router.patch("/memories/{memory_id}", response_model=MemoryOut, tags=["memories"])
async def update_memory(memory_id: Id, changes: MemoryChanges, et: Et, caller: Asker) -> Response:
    """Change a memory. Another text is a memory of its own, which is given; the old one stays readable."""
    await et.memories.get(caller.owner, memory_id)
    changed = await et.memories.update(
        caller.owner,
        memory_id,
        text=changes.text,
        kind=changes.kind,
        confidence=changes.confidence,
        pinned=changes.pinned,
    )
    return Json(memory_out(changed))


@router.delete("/memories/{memory_id}", response_model=MemoryOut, tags=["memories"])
async def forget_memory(memory_id: Id, et: Et, caller: Asker) -> Response:
    """Take it out of every search and context; restore undoes it."""
    return Json(memory_out(await et.memories.forget(caller.owner, memory_id)))


@router.post("/memories/{memory_id}/restore", response_model=MemoryOut, tags=["memories"])
async def restore_memory(memory_id: Id, et: Et, caller: Asker) -> Response:
    """Undo a forget."""
    return Json(memory_out(await et.memories.restore(caller.owner, memory_id)))


@router.get("/knowledge", response_model=Collections, tags=["knowledge"])
async def list_collections(et: Et, caller: Asker) -> Response:
    """Your collections of documents."""
    return Json({"items": [asdict(one) for one in await et.knowledge.collections(caller.owner)]})


@router.post("/knowledge/documents", status_code=201, response_model=DocumentOut, tags=["knowledge"])
async def add_document(new: DocumentIn, et: Et, caller: Asker) -> Response:
    """Keep a text in a collection, which is made if missing. The same again is nothing new; a changed one replaces."""
    made = await et.knowledge.add(caller.owner, new.collection, new.text, id=new.id, title=new.title)
    return Json({"collection": new.collection, "document": asdict(made)}, 201)


@router.post("/knowledge/files", status_code=201, response_model=DocumentOut, tags=["knowledge"])
async def add_document_file(
    et: Et,
    caller: Asker,
    file: UploadFile,
    collection: Annotated[str, Form(min_length=1, max_length=MAX_ID_CHARACTERS)],
) -> Response:
    """Keep a file (text, Markdown, PDF) in a collection, by its name."""
    made = await et.knowledge.add(caller.owner, collection, await file.read(), id=file.filename or None)
    return Json({"collection": collection, "document": asdict(made)}, 201)


@router.get("/knowledge/{collection}/documents", response_model=Documents, tags=["knowledge"])
async def list_documents(collection: Id, et: Et, caller: Asker, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """The documents of a collection, the newest first."""
    page = await et.knowledge.list(caller.owner, collection, limit=limit, cursor=cursor)
    if not page.items and cursor is None:
        raise NotFound(f"no collection {collection!r}")
    return Json({"items": [asdict(one) for one in page.items], "next_cursor": page.next_cursor})


@router.get("/knowledge/{collection}/search", response_model=Passages, tags=["knowledge"])
async def search_documents(
    collection: Id, et: Et, caller: Asker, q: Question, limit: Annotated[int, Query(ge=1, le=100)] = 5
) -> Response:
    """Passages that fit a question, best first."""
    hits = await et.knowledge.search(caller.owner, collection, q, limit=limit)
    return Json({"items": [asdict(hit) for hit in hits]})


@router.delete("/knowledge/{collection}", response_model=Removed, tags=["knowledge"])
async def remove_collection(collection: Id, et: Et, caller: Asker) -> Response:
    """Take out a collection with all its documents."""
    return Json({"removed": await et.knowledge.remove(caller.owner, collection)})


@router.delete("/knowledge/{collection}/documents/{document_id}", response_model=Removed, tags=["knowledge"])
async def remove_document(collection: Id, document_id: Id, et: Et, caller: Asker) -> Response:
    """Take out a document."""
    return Json({"removed": await et.knowledge.remove(caller.owner, collection, document_id)})
