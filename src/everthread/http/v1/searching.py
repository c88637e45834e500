"""Finding again what was said."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.conversation import MAX_QUERY_CHARACTERS
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.http.asking import Asker, Et, Limit
from everthread.http.json import Json

router = APIRouter(tags=["search"])


class HitOut(BaseModel):
    """A message that was found."""

    conversation_id: str
    seq: int
    id: str
    snippet: str
    score: float


class HitsOut(BaseModel):
    """Messages, best first."""

    items: list[HitOut]
    truncated: bool = Field(description="Whether there were more candidates than were ranked; the newest were taken.")
    by_meaning: bool = Field(description="Whether likeness in meaning took part, as was asked for; words always do.")
    why_words_alone: str | None = Field(description="Why meaning took no part though it was asked for.")
    is_behind: bool = Field(description="Whether some messages could not be found by meaning yet.")


@router.get("/search", response_model=HitsOut)
async def search(
    et: Et,
    caller: Asker,
    q: Annotated[str, Query(max_length=MAX_QUERY_CHARACTERS, description="Words, or a phrase in quotes.")],
    conversation_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)] = None,
    limit: Limit = 20,
    meaning: Annotated[bool, Query(description="Also what was said in other words, as recall finds it.")] = False,
) -> Response:
    """Your messages by their words or their meaning, in one conversation or in all, best first."""
    hits = await et.search(q, owner=caller.owner, conversation=conversation_id, limit=limit, meaning=meaning)
    found = {
        "items": [asdict(hit) for hit in hits],
        "truncated": hits.truncated,
        "by_meaning": hits.by_meaning,
        "why_words_alone": hits.why_words_alone,
        "is_behind": hits.is_behind,
    }
    return Json(found)
