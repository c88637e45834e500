"""What every route takes: who asks, the database, the conversation an address names, pages; and that no parameter is
passed over in silence.

All of it is asked for in the loop: FastAPI gives a thread to what is not async, and the way there and back costs more
than what is done here.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPBearer
from pydantic import BaseModel, BeforeValidator, ConfigDict

from everthread.conversation import Conversation
from everthread.core.errors import Invalid
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.http.auth import Caller
from everthread.http.errors import HttpProblem
from everthread.http.middleware import restore_slashes
from everthread.instance import MAX_PAGE, Everthread

bearer = HTTPBearer(auto_error=False, description="A key of `everthread key create`, or a token.")


class RequestModel(BaseModel):
    """What a request brings. A key that nobody knows is refused: it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid")


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def _admin(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if not caller.is_admin:
        raise HttpProblem(
            403,
            "forbidden",
            "this concerns all owners, and this key speaks for one",
            next_step="Use a key made with `everthread key create --admin`.",
        )
    return caller


async def _et(request: Request) -> Everthread:
    et: Everthread = request.app.state.et
    return et


CallerDep = Annotated[Caller, Depends(_caller)]
AdminDep = Annotated[Caller, Depends(_admin)]
EverthreadDep = Annotated[Everthread, Depends(_et)]
PathId = Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARACTERS), BeforeValidator(restore_slashes)]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="How many at most.")]
Cursor = Annotated[str | None, Query(max_length=256, description="`next_cursor` of the page before.")]


async def _conversation(
    request: Request, conversation_id: PathId, et: EverthreadDep, caller: CallerDep
) -> Conversation:
    found = await et.conversations.get(conversation_id, caller.owner)
    request.state.conversation = found.id
    return found


ConversationDep = Annotated[Conversation, Depends(_conversation)]
"""The conversation that the address names; 404 when it is not the caller's, whoever else's it is."""


async def _known_parameters(request: Request) -> None:
    """A filter that nobody knows would otherwise filter nothing."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    if dependant is None:
        return
    known = _parameters(dependant)
    for name in request.query_params:
        if name not in known:
            there_are = ", ".join(sorted(known)) or "none"
            raise Invalid(f"is no parameter of this address; there are: {there_are}", field=name)


def _parameters(dependant: Any) -> set[str]:
    """The query parameters of a route and of what it depends on."""
    own = {name for field in dependant.query_params for name in _names(field)}
    return own.union(*map(_parameters, dependant.dependencies))


def _names(field: Any) -> set[str]:
    """A parameter's name, or those of the fields of a model that gathers several."""
    annotation = field.field_info.annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {info.alias or name for name, info in annotation.model_fields.items()}
    return {field.alias}


COMMON_DEPENDENCIES = [Depends(bearer), Depends(_known_parameters)]
"""For every router."""
