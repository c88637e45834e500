"""`GET /threads/{id}/full-history`: everything ever said in a thread, in the shape of its state.

Here it is a route of the service; `full_history_router` gives the same to any other FastAPI app, such as the `http.app`
of a LangGraph server:

    app.include_router(full_history_router(et, saver=checkpointer, owner=lambda request: request.user.identity))
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from everthread.core import payloads
from everthread.core.errors import Invalid, NotFound
from everthread.core.ids import LOCAL
from everthread.history.full_history import FullHistory
from everthread.http.errors import problem_response
from everthread.http.responses import JsonResponse
from everthread.instance import Everthread
from everthread.langchain.messages import state_message

Owner = str | Callable[[Request], str | Awaitable[str]]
Merge = Annotated[bool, Query(description="Merge in messages that only the newest checkpoint has.")]
Limit = Annotated[int | None, Query(ge=1, le=1000, description="About how many messages per page; all without it.")]
Cursor = Annotated[str | None, Query(max_length=32, description="`next_cursor` of the previous page.")]


def in_state_format(history: FullHistory) -> dict[str, Any]:
    """A history with the keys of `/threads/{id}/state`, and messages with the keys that they have there and the time
    at which they were said."""
    messages = [
        {**state_message(payload, str(payloads.message_id(payload) or "")), "created_at": payload.get("created_at")}
        for payload in history["values"]["messages"]
    ]
    at, before = history["checkpoint"] or {}, history["parent_checkpoint"] or {}
    return {
        **history,
        "values": {**history["values"], "messages": messages},
        "interrupts": [],
        "checkpoint_id": at.get("checkpoint_id"),
        "parent_checkpoint_id": before.get("checkpoint_id"),
    }


def full_history_router(
    et: Everthread, *, saver: Any = None, owner: Owner = LOCAL, prefix: str = "/threads"
) -> APIRouter:
    """A router with the one route, for an app of your own.

    `saver` is the checkpointer that the threads run on. `owner` says on whose behalf a request is made: a name, or a
    function of the request, async or not. It does not authenticate: do that before.
    """
    router = APIRouter(tags=["full history"])

    @router.get(f"{prefix}/{{thread_id}}/full-history", response_class=JsonResponse)
    async def full_history(
        request: Request,
        thread_id: str,
        merge_checkpoint: Merge = True,
        limit: Limit = None,
        cursor: Cursor = None,
    ) -> Response:
        """Everything ever said in a thread: all messages, whatever was summarised or removed since."""
        try:
            name = owner(request) if callable(owner) else owner
            name = await name if isawaitable(name) else name
            history = await et.full_history(
                thread_id, name, merge_checkpoint=merge_checkpoint, saver=saver, limit=limit, cursor=cursor
            )
            return JsonResponse(in_state_format(history))
        except (Invalid, NotFound) as problem:
            return problem_response(problem)

    return router
