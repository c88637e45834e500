"""What routes take: the caller, the database, the conversation that a path names, pages; and the check that every
query parameter is known.

All of it is async: FastAPI runs other dependencies in a thread, and the way there and back costs more than the work.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from fastapi.security import HTTPBearer
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from everthread.conversation import Conversation
from everthread.core.errors import Invalid
from everthread.core.ids import MAX_ID_CHARACTERS
from everthread.core.nouns import MAX_PAGE
from everthread.http.auth import Caller
from everthread.http.errors import HttpProblem
from everthread.http.middleware import restore_slashes
from everthread.http.turn_service import TurnService
from everthread.instance import Everthread


class RequestModel(BaseModel):
    """A request body. An unknown key is refused: it may be a misspelt one."""

    model_config = ConfigDict(extra="forbid")


async def _caller(request: Request) -> Caller:
    caller: Caller = request.state.caller
    return caller


async def _admin(caller: Annotated[Caller, Depends(_caller)]) -> Caller:
    if not caller.is_admin:
        raise HttpProblem(
            403,
            "forbidden",
            "this operation concerns all owners and requires an admin key",
            next_step="Use a key made with `everthread key create --admin`.",
        )
    return caller


async def _everthread(request: Request) -> Everthread:
    et: Everthread = request.app.state.et
    return et


async def _turns(request: Request) -> TurnService:
    turns: TurnService = request.app.state.turns
    return turns


def _number_as_text(given: object) -> object:
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


ConversationId = Annotated[
    str,
    Field(min_length=1, max_length=MAX_ID_CHARACTERS),
    BeforeValidator(_number_as_text, json_schema_input_type=str | int),
]
"""In a body: clients that number their conversations may send the number, 123 for "123"."""
CallerDep = Annotated[Caller, Depends(_caller)]
AdminDep = Annotated[Caller, Depends(_admin)]
EverthreadDep = Annotated[Everthread, Depends(_everthread)]
TurnServiceDep = Annotated[TurnService, Depends(_turns)]
PathId = Annotated[str, Path(min_length=1, max_length=MAX_ID_CHARACTERS), BeforeValidator(restore_slashes)]
MAX_SEARCH_CHARACTERS = 5_000
"""Of a text to search for in an address: those may have 64 KB, and a character may take 12 bytes there."""
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="The most items to return.")]
Cursor = Annotated[str | None, Query(max_length=256, description="`next_cursor` of the previous page.")]


async def _conversation(
    request: Request, conversation_id: PathId, et: EverthreadDep, caller: CallerDep
) -> Conversation:
    found = await et.conversations.get(conversation_id, caller.owner)
    request.state.conversation = found.id
    return found


ConversationDep = Annotated[Conversation, Depends(_conversation)]
"""The conversation that the path names; 404 when it is not the caller's, also if it is somebody else's."""


async def _check_query(request: Request) -> None:
    """Refuse unknown query parameters: a misspelt filter would otherwise filter nothing."""
    dependant = getattr(request.scope.get("route"), "dependant", None)
    if dependant is None:
        return
    known = _query_names(dependant)
    for name in request.query_params:
        if name not in known:
            raise Invalid(f"unknown query parameter; available: {', '.join(sorted(known)) or 'none'}", field=name)


def _query_names(dependant: Any) -> set[str]:
    """The query parameters of a route and of its dependencies."""
    names: set[str] = set()
    for field in dependant.query_params:
        annotation = field.field_info.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):  # a model of several parameters
            names |= {info.alias or name for name, info in annotation.model_fields.items()}
        else:
            names.add(field.alias)
    return names.union(*map(_query_names, dependant.dependencies))


_BEARER = HTTPBearer(auto_error=False, description="A key of `everthread key create`, or a token.")
COMMON_DEPENDENCIES = [Depends(_BEARER), Depends(_check_query)]
"""For every router."""
