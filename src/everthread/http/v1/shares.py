"""Share links: whoever has the link may read one conversation, until the link is revoked.

A link holds a secret. The conversation's metadata keep only a hash of it and of whose conversation it opens, so neither
a backup nor an archive gives the link away, and metadata that came from elsewhere let nobody in; what replaces the
metadata without it revokes the link.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import HTMLResponse, Response, StreamingResponse

from everthread.conversation import Conversation
from everthread.core.access import SHARE_FIELD, without_share
from everthread.core.errors import EverthreadError, Invalid, NotFound
from everthread.core.nouns import Message
from everthread.history.export import Parts, export
from everthread.http.dependencies import ConversationDep, EverthreadDep, RequestModel
from everthread.http.middleware import quote_id
from everthread.http.responses import JsonResponse
from everthread.instance import Everthread

router = APIRouter(tags=["conversations"], prefix="/conversations/{conversation_id}")
open_router = APIRouter()

SHARED_PATH: Final = "/shared/"
"""What begins so needs no key: the link is the key."""
_SAID: Final = ("user", "assistant", "tool")
"""Who is shown: a system prompt is not for readers."""
_NOWHERE: Final = {"en": "This link is invalid or was revoked.", "zh": "链接无效或已被撤销。"}
_ABOUT: Final = {
    "en": "Shared from everthread. Numbers are missing where something is not shown here, such as tool calls.",
    "zh": "由 everthread 分享。编号不连续之处是此处未显示的内容，例如工具调用。",
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
}


class NewShare(RequestModel):
    """What readers of the link see besides what was said."""

    thinking: bool = Field(default=False, description="Whether to show the model's thinking.")
    tools: bool = Field(default=False, description="Whether to show tool calls and their results.")


class ShareOut(BaseModel):
    """A link, shown this once."""

    path: str = Field(description="The link's path on this server.")
    created_at: datetime


class Revoked(BaseModel):
    """Whether there was a link."""

    revoked: bool


@router.post("/share", status_code=201, response_model=ShareOut)
async def share(conversation: ConversationDep, wanted: NewShare) -> Response:
    """Make a link with which anybody can read the conversation, also what is said later. A link made before is
    revoked."""
    if conversation.info.off_record:
        raise Invalid("a conversation off the record cannot be shared", field="conversation_id")
    secret, created_at = token_urlsafe(32), datetime.now(UTC)
    kept = {
        "sha256": _hash(conversation.owner, conversation.id, secret),
        "created_at": created_at.isoformat(),
        **wanted.model_dump(),
    }
    await conversation.update(metadata={**conversation.metadata, SHARE_FIELD: kept})
    where = urlsafe_b64encode(json.dumps([conversation.owner, conversation.id]).encode()).decode().rstrip("=")
    return JsonResponse({"path": f"{SHARED_PATH}{quote_id(f'{where}.{secret}')}", "created_at": created_at}, 201)


@router.delete("/share", response_model=Revoked)
async def revoke_share(conversation: ConversationDep) -> Response:
    """Revoke the link: who opens it sees nothing from now on."""
    others = without_share(conversation.metadata)
    was_shared = len(others) < len(conversation.metadata)
    if was_shared:
        await conversation.update(metadata=others)
    return JsonResponse({"revoked": was_shared})


@open_router.get(f"{SHARED_PATH}{{token}}", include_in_schema=False)
async def read_shared(token: str, et: EverthreadDep, request: Request) -> Response:
    """The conversation as a page to read; for a browser also what to read where there is none."""
    language = _language(request.headers.get("accept-language", ""))
    try:
        conversation, parts = await _shared(et, token)
    except NotFound:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return HTMLResponse(_no_page(language), 404, _HEADERS)
    preface = f'<p lang="{language}"><small>{_ABOUT[language]}</small></p>\n'
    pieces = export(conversation.info, _said(conversation, parts), "html", parts, preface=preface)
    return StreamingResponse(pieces, headers=_HEADERS, media_type="text/html")


async def _said(conversation: Conversation, parts: Parts) -> AsyncIterator[Message]:
    async for message in conversation.messages():
        if message.role in _SAID and (parts.tools or message.role != "tool") and (parts.tools or message.text):
            yield message


async def _shared(et: Everthread, token: str) -> tuple[Conversation, Parts]:
    """What a link leads to; the same NotFound for one that is wrong, revoked, or of something deleted."""
    where, _, secret = token.partition(".")
    try:
        owner, id = json.loads(urlsafe_b64decode(where + "=" * (-len(where) % 4)))
        conversation = await et.conversations.get(id, owner)
    except (ValueError, TypeError, RecursionError, EverthreadError) as problem:
        if isinstance(problem, EverthreadError) and not isinstance(problem, NotFound | Invalid):
            raise
        raise _no_share() from None
    kept: Any = conversation.metadata.get(SHARE_FIELD)
    known = str(kept.get("sha256")) if isinstance(kept, dict) else ""
    if (
        not compare_digest(known.encode(), _hash(owner, conversation.id, secret).encode())
        or conversation.info.deleted_at is not None
    ):
        raise _no_share()
    return conversation, Parts(kept.get("thinking") is True, kept.get("tools") is True)


def _language(languages: str) -> str:
    """The language that the browser names first, of those that we speak."""
    wanted = (one.strip().lower()[:2] for one in languages.split(","))
    return next((one for one in wanted if one in _NOWHERE), "en")


def _no_page(language: str) -> str:
    return (
        f'<!doctype html><html lang="{language}"><meta charset="utf-8"><title>everthread</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>:root { color-scheme: light dark } body { font: 1.1rem/1.6 system-ui; margin: 20vh auto; width: "
        f"min(32rem, 90vw); text-align: center }}</style><p>{_NOWHERE[language]}</p></html>"
    )


def _no_share() -> NotFound:
    return NotFound("this link leads nowhere: it is mistyped, or it was revoked")


def _hash(owner: str, conversation: str, secret: str) -> str:
    """Of the address too: a copy of the metadata elsewhere opens nothing."""
    return sha256(json.dumps([owner, conversation, secret]).encode()).hexdigest()
