"""Messages: read page by page, append, edit, delete, pin, search, recall."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.core import payloads
from everthread.core.errors import Invalid
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.core.nouns import MatchStrength
from everthread.http.dependencies import (
    MAX_SEARCH_CHARACTERS,
    CallerDep,
    ConversationDep,
    EverthreadDep,
    Limit,
    PathId,
    RequestModel,
)
from everthread.http.responses import JsonResponse
from everthread.http.v1.schemas import MessageOut, MessagePage, Receipts, message_out, receipt_out
from everthread.instance import Everthread, found_messages
from everthread.recall.policy import Scope
from everthread.recall.provenance import ReachedRequest, Spread
from everthread.recall.search import RecallHit
from everthread.text.secrets import redact_secrets

router = APIRouter(tags=["messages"], prefix="/conversations/{conversation_id}/messages")
search_router = APIRouter(tags=["search"])
recall_router = APIRouter(tags=["search"], prefix="/conversations/{conversation_id}")

ShowSecrets = Annotated[bool, Query(description="Do not mask what looks like a credential.")]
MAX_SEQ = 2**32 - 1
MAX_RECALL_TOKENS = 1_000_000
MAX_AROUND = 50
BranchParameter = Annotated[
    str | None,
    Query(min_length=1, max_length=MAX_ID_CHARACTERS, description="The id of a branch; by default the active one."),
]
Before = Annotated[
    int | None, Query(ge=1, le=MAX_SEQ, description="Only messages before this seq, the newest of them.")
]
After = Annotated[int | None, Query(ge=0, le=MAX_SEQ, description="Only messages after this seq, the oldest of them.")]


class NewMessages(RequestModel):
    """Messages to append, in OpenAI's or LangChain's format; give each an `id` to make a retry safe."""

    messages: list[dict[str, Any]] = Field(min_length=1, max_length=1000)
    expected_head: int | None = Field(
        default=None,
        ge=0,
        le=MAX_SEQ,
        description="The seq the branch must end at, 0 if it must be empty; otherwise 409.",
    )
    branch: str | None = Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)


class Edit(RequestModel):
    """A new version of a message."""

    content: str | list[dict[str, Any]] | None = Field(
        default=None, description="New content; the rest stays as it was."
    )
    message: dict[str, Any] | None = Field(default=None, description="Or a whole new message.")
    activate: bool = Field(default=True, description="Whether the new branch becomes the active one.")


@router.get("", response_model=MessagePage)
async def list_messages(
    conversation: ConversationDep,
    limit: Limit = 50,
    after: After = None,
    before: Before = None,
    branch: BranchParameter = None,
    include_deleted: bool = False,
) -> Response:
    """A page of messages of a branch, oldest first: from the beginning, after a seq, or before one."""
    if after is not None and before is not None:
        raise Invalid("cannot be combined with `after`", field="before")
    read = partial(conversation.messages, branch=branch, include_deleted=include_deleted)
    tail = partial(conversation.tail, branch=branch, include_deleted=include_deleted)
    # By position, so that a message that is added or deleted meanwhile neither repeats nor hides another.
    if before is not None:
        found = await tail(limit + 1, before=before)
        items, has_older = found[-limit:], len(found) > limit
        has_newer = bool([message async for message in read(after=before - 1, limit=1)])
    else:
        found = [message async for message in read(after=after or 0, limit=limit + 1)]
        items, has_newer = found[:limit], len(found) > limit
        has_older = bool(after) and bool(await tail(1, before=(after or 0) + 1))
    return JsonResponse(
        {"items": [message_out(message) for message in items], "has_older": has_older, "has_newer": has_newer}
    )


@router.post("", status_code=201, response_model=Receipts)
async def append_messages(conversation: ConversationDep, new: NewMessages, request: Request) -> Response:
    """Append messages, all of them or none; durable when this returns. Messages that are there already are skipped."""
    receipts = await conversation.append(
        new.messages,
        expected_head=new.expected_head,
        branch=new.branch,
        idempotency_key=getattr(request.state, "idempotency_key", None),
    )
    return JsonResponse({"receipts": [receipt_out(one) for one in receipts]}, 201)


@router.get("/{message_id}", response_model=MessageOut)
async def get_message(conversation: ConversationDep, message_id: PathId) -> Response:
    """One message in its newest revision, deleted or not, on whichever branch."""
    return JsonResponse(message_out(await conversation.message(message_id)))


@router.patch("/{message_id}", response_model=MessageOut)
async def edit_message(conversation: ConversationDep, message_id: PathId, edit: Edit) -> Response:
    """Edit a message: the new version starts a new branch. The original and its answers stay."""
    if (edit.content is None) == (edit.message is None):
        raise Invalid("give either `content` or `message`", field="content")
    payload = edit.message or payloads.with_content((await conversation.message(message_id)).payload, edit.content)
    receipt = await conversation.edit(message_id, payload, activate=edit.activate)
    return JsonResponse(message_out(await conversation.message(receipt.id)))


@router.delete("/{message_id}", response_model=MessageOut)
async def delete_message(conversation: ConversationDep, message_id: PathId) -> Response:
    """Hide it from the history and from models. Nothing is removed: restore undoes it."""
    await conversation.delete_message(message_id)
    return JsonResponse(message_out(await conversation.message(message_id)))


@router.post("/{message_id}/restore", response_model=MessageOut)
async def restore_message(conversation: ConversationDep, message_id: PathId) -> Response:
    """Undo a delete."""
    await conversation.restore_message(message_id)
    return JsonResponse(message_out(await conversation.message(message_id)))


@router.put("/{message_id}/pin", response_model=MessageOut)
async def pin_message(conversation: ConversationDep, message_id: PathId) -> Response:
    """Keep it in the model's view, whatever is compacted."""
    await conversation.pin(message_id)
    return JsonResponse(message_out(await conversation.message(message_id)))


@router.delete("/{message_id}/pin", response_model=MessageOut)
async def unpin_message(conversation: ConversationDep, message_id: PathId) -> Response:
    """Undo a pin."""
    await conversation.unpin(message_id)
    return JsonResponse(message_out(await conversation.message(message_id)))


class ReachedOut(BaseModel):
    """A request to a model, by the id of its manifest."""

    conversation_id: str
    id: str


class SpreadOut(BaseModel):
    """Every place that a message reached."""

    conversation_id: str
    seq: int
    summaries: list[str] = Field(description="The ids of compactions.")
    memories: list[str] = Field(description="The ids of memories that were made from it, or may have been.")
    requests: list[ReachedOut]


def spread_out(one: Spread) -> dict[str, Any]:
    return {
        **asdict(one),
        "memories": [memory.id for memory in one.memories],
        "requests": [*map(_reached, one.requests)],
    }


def _reached(one: ReachedRequest) -> dict[str, str]:
    return one._asdict()


@router.get("/{message_id}/spread", response_model=SpreadOut)
async def message_spread(conversation: ConversationDep, message_id: PathId) -> Response:
    """Every summary, memory and request to a model that it reached."""
    return JsonResponse(spread_out(await conversation.spread(message_id)))


@router.put("/{message_id}/quarantine", response_model=SpreadOut)
async def quarantine_message(conversation: ConversationDep, message_id: PathId) -> Response:
    """Take it out of every view at once, with the summaries and memories that it is in; gives where it has been."""
    return JsonResponse(spread_out(await conversation.quarantine(message_id)))


@router.delete("/{message_id}/quarantine", response_model=MessageOut)
async def release_message(conversation: ConversationDep, message_id: PathId) -> Response:
    """Undo a quarantine: the same bytes are shown again."""
    await conversation.release(message_id)
    return JsonResponse(message_out(await conversation.message(message_id)))


class HitOut(BaseModel):
    """A message that matches: where it stands, who said it and when."""

    conversation_id: str
    conversation_title: str | None
    seq: int
    id: str
    role: str
    name: str | None
    said_at: datetime
    snippet: str
    score: float
    match: MatchStrength = Field(description="`strong` if it has all the words, or much of the meaning; else `weak`.")


class HitsOut(BaseModel):
    """Messages, best first."""

    items: list[HitOut]
    truncated: bool = Field(
        description="Whether there were too many candidates to rank them all; the newest were ranked."
    )
    by_meaning: bool = Field(description="Whether meaning was used, as requested; words always are.")
    why_words_alone: str | None = Field(description="Why meaning was not used though requested.")
    is_behind: bool = Field(description="Whether some messages are not indexed by meaning yet.")


@search_router.get("/search", response_model=HitsOut)
async def search(
    et: EverthreadDep,
    caller: CallerDep,
    q: Annotated[str, Query(max_length=MAX_SEARCH_CHARACTERS, description="Words, or a phrase in quotes.")],
    conversation_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)] = None,
    limit: Limit = 20,
    meaning: Annotated[bool, Query(description="Also find what was said in other words, as recall does.")] = False,
    show_secrets: ShowSecrets = False,
) -> Response:
    """Search your messages by words or by meaning, in one conversation or in all; best first."""
    hits = await et.search(
        q,
        owner=caller.owner,
        conversation=conversation_id,
        limit=limit,
        meaning=meaning,
        show_secrets=show_secrets,
    )
    found = {
        "items": [
            {
                **asdict(hit),
                "conversation_title": conversation.title,
                "role": message.role,
                "name": message.name,
                "said_at": message.said_at or message.created_at,
            }
            for hit, conversation, message in await found_messages(et, caller.owner, hits)
        ],
        "truncated": hits.truncated,
        "by_meaning": hits.by_meaning,
        "why_words_alone": hits.why_words_alone,
        "is_behind": hits.is_behind,
    }
    return JsonResponse(found)


class BesideOut(BaseModel):
    """A message that stands beside what was recalled."""

    seq: int
    speaker: str
    said_at: datetime
    text: str


class RecallHitOut(BaseModel):
    """A message, or a passage of one, that has to do with a question."""

    conversation_id: str
    ids: list[str]
    seqs: list[int]
    text: str
    score: float = Field(description="Only comparable with the other hits of the same question.")
    said_at: datetime
    speaker: str
    match: MatchStrength = Field(
        description="`strong` if it has much of the question; `weak` if it has a little, or only a related word. Where "
        "all are weak, it was probably never said."
    )
    is_passage: bool = Field(description="Whether the text is only a part of the message.")
    why: list[str] = Field(
        description="What it was found by, the strongest first: words, meaning, neighbours, topic, date, speaker, wish."
    )
    parts: dict[str, float] = Field(description="What each of these adds to the score; together they are the score.")
    words: list[str] = Field(description="Words of the question, and related ones, as they stand in the message.")
    before: list[BesideOut] | None = Field(default=None, description="With `around`: what was said right before it.")
    after: list[BesideOut] | None = Field(default=None, description="With `around`: what was said right after it.")


class RecallHitsOut(BaseModel):
    """What was recalled, best first."""

    items: list[RecallHitOut]
    asks_for_several: bool = Field(
        description="Whether the question asks for many things: then each hit quotes up to four messages, a line each."
    )
    only_weak: bool = Field(
        description="Whether no hit is a strong match, or there is none: it was probably never said."
    )
    by_meaning: bool = Field(description="Whether meaning was searched too; never without an embedder.")
    is_behind: bool = Field(description="Whether some messages are not indexed by meaning yet.")
    truncated: bool = Field(description="Whether a word was so common that only the newest messages were considered.")
    unanswered: list[str] = Field(description="Which parts of the search failed, and why.")


async def _beside(
    et: Everthread, owner: str, hit: RecallHit, count: int, *, show_secrets: bool
) -> dict[str, list[dict[str, Any]]]:
    """So many messages right before a hit and right after it."""
    conversation = await et.conversations.get(hit.conversation_id, owner)
    before = await conversation.tail(count, before=hit.seqs[0])
    after = [message async for message in conversation.messages(after=hit.seqs[-1], limit=count)]
    return {
        name: [
            {
                "seq": one.seq,
                "speaker": one.name or one.role,
                "said_at": one.said_at or one.created_at,
                "text": one.text if show_secrets else redact_secrets(one.text),
            }
            for one in those
        ]
        for name, those in (("before", before), ("after", after))
    }


@recall_router.get("/recall", response_model=RecallHitsOut)
async def recall(
    et: EverthreadDep,
    caller: CallerDep,
    conversation: ConversationDep,
    q: Annotated[str, Query(max_length=MAX_SEARCH_CHARACTERS, description="A question, in any words.")],
    limit: Limit = 10,
    max_tokens: Annotated[int, Query(ge=1, le=MAX_RECALL_TOKENS, description="The size of all hits together.")] = 2000,
    scope: Annotated[Scope | None, Query(description="Only this conversation, or all that you have.")] = None,
    asked_at: Annotated[
        datetime | None, Query(description="The time that `yesterday` or 上周 are relative to; by default now.")
    ] = None,
    around: Annotated[
        int, Query(ge=0, le=MAX_AROUND, description="So many messages right before and after each hit come with it.")
    ] = 0,
    show_secrets: ShowSecrets = False,
) -> Response:
    """Find what was said about a question, however long ago, best first; each hit says why it was found."""
    hits = await conversation.recall(
        q, limit=limit, max_tokens=max_tokens, scope=scope, asked_at=asked_at, show_secrets=show_secrets
    )
    found = {
        "items": [
            asdict(hit) | (await _beside(et, caller.owner, hit, around, show_secrets=show_secrets) if around else {})
            for hit in hits
        ],
        "asks_for_several": hits.asks_for_several,
        "only_weak": hits.only_weak,
        "by_meaning": hits.by_meaning,
        "is_behind": hits.is_behind,
        "truncated": hits.truncated,
        "unanswered": hits.unanswered,
    }
    return JsonResponse(found)
