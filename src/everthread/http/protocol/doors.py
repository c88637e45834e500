"""What every route of the protocol takes: who asks, what is served, and the thread or run that an address names."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import NotFound
from everthread.core.ids import check_id
from everthread.core.nouns import Ref
from everthread.core.turns import Turn
from everthread.http.asking import Asker, Id
from everthread.http.protocol.office import Office
from everthread.http.protocol.rows import HIDDEN, KIND
from everthread.http.protocol.running import Running
from everthread.http.protocol.served import Served
from everthread.http.protocol.wire import dumps


class Answer(Response):
    """JSON of whatever LangGraph holds."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return dumps(content)


async def _owner(caller: Asker) -> str:
    return caller.owner


async def _served(request: Request) -> Served:
    office: Office = request.app.state.langgraph
    return office.served


async def _running(request: Request) -> Running:
    office: Office = request.app.state.langgraph
    return office.running


Owner = Annotated[str, Depends(_owner)]
ServedHere = Annotated[Served, Depends(_served)]
RunningHere = Annotated[Running, Depends(_running)]


async def thread(served: Served, owner: str, id: str) -> Conversation:
    """The conversation by this id; NotFound also when it was deleted, or is another owner's."""
    found = await served.et.conversations.get(id, owner)
    if found.is_deleted:
        raise NotFound(f"no conversation {id!r}")
    return found


async def _thread(request: Request, thread_id: Id, served: ServedHere, owner: Owner) -> Conversation:
    found = await thread(served, owner, thread_id)
    request.state.conversation = found.id
    return found


Thread = Annotated[Conversation, Depends(_thread)]


async def _run(thread_id: Id, run_id: Id, served: ServedHere, owner: Owner) -> Turn:
    """Also of a thread that was deleted with its stateless run: whoever follows it may come back for the rest."""
    ref = Ref(owner, check_id(thread_id, "thread_id"))
    turn = await served.et.store.turn(ref, check_id(run_id, "run_id"))
    if turn.kind != KIND or turn.metadata.get(HIDDEN):
        raise NotFound(f"no run {run_id!r} of thread {thread_id!r}")
    return turn


Run = Annotated[Turn, Depends(_run)]


def selected(rows: list[dict[str, Any]], select: list[str] | None) -> list[dict[str, Any]]:
    """Only these members of each."""
    return rows if not select else [{name: row[name] for name in select if name in row} for row in rows]
