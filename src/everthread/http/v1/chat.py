"""Chat: a message in, an answer out, whole or as it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import sha256
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import Conflict, EverthreadError, Invalid, NotFound
from everthread.core.ids import MAX_ID_CHARACTERS, new_id
from everthread.core.nouns import Message
from everthread.core.tools import WHEN_NAMED
from everthread.core.turn_events import Failed
from everthread.http.admission import Admission
from everthread.http.dependencies import (
    CallerDep,
    ConversationDep,
    ConversationId,
    EverthreadDep,
    RequestModel,
    TurnServiceDep,
)
from everthread.http.errors import PROBLEM_TYPES, HttpProblem, problem_responses
from everthread.http.middleware import quote_id
from everthread.http.model_names import check_model
from everthread.http.responses import JsonResponse
from everthread.http.sse import EventStreamResponse
from everthread.http.turn_service import REQUEST_HASH, TurnService, id_from_key
from everthread.http.v1.schemas import MessageOut, message_out
from everthread.turn.listing import tools_of
from everthread.turn.model_call import tool_schema
from everthread.turn.request import TurnOptions

router = APIRouter(tags=["chat"])

EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events as they come, each with its number as id.", "content": {"text/event-stream": {}}}
}
ANSWER_OR_EVENTS: dict[int | str, dict[str, Any]] = {
    200: EVENT_STREAM[200]
    | {"description": "The answer; with `stream`, events as they come, each with its number as id."}
}
OptionalId = Annotated[str | None, Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)]


class TurnSettings(RequestModel):
    """How a turn runs."""

    agent_type: str | None = Field(default=None, max_length=MAX_ID_CHARACTERS)
    model: str | None = Field(default=None, max_length=300, description="Such as `openai:gpt-5-mini`.")
    model_pref: Literal["default", "vision", "code", "reasoning"] | None = None
    kb_prefix: str | None = Field(
        default=None, max_length=MAX_ID_CHARACTERS, description="The knowledge base to search."
    )
    recall: bool | None = Field(
        default=None, description="Whether to bring back relevant messages from before the window."
    )
    compaction: bool | None = Field(default=None, description="Whether old messages may be summarised.")
    memory: bool | None = None
    retrieval: bool | None = None
    when_busy: Literal["enqueue", "reject", "interrupt"] = Field(
        default="enqueue", description="What to do while another turn of the conversation is running."
    )
    max_loops: int | None = Field(default=None, ge=1, le=1000)
    active_skill: str | None = Field(
        default=None, max_length=MAX_ID_CHARACTERS, description="A skill to work by, from this turn on."
    )
    allowed_tools: list[str] = Field(
        default=[], max_length=100, description="Tools of this turn beyond those of the agent type; `*` stands for any."
    )
    persistent_tools: list[str] | None = Field(
        default=None, max_length=100, description="The same, for this and all later turns of the conversation."
    )
    debug: bool = False

    def features(self) -> dict[str, bool] | None:
        given = {"recall": self.recall, "summary": self.compaction, "memory": self.memory, "retrieval": self.retrieval}
        return {name: value for name, value in given.items() if value is not None} or None


class Question(TurnSettings):
    """A message, and the conversation it belongs to."""

    message: str | list[dict[str, Any]] | dict[str, Any] = Field(description="A text, content blocks, or a message.")
    conversation_id: ConversationId | None = Field(
        default=None, description="Created if you have none by this id; a new one without an id."
    )
    session_id: ConversationId | None = Field(default=None, description="Another name for `conversation_id`.")
    files: list[str] = Field(
        default=[],
        max_length=100,
        description="Files of the conversation that the message is about, by name or path. The model is told of them, "
        "and of every upload since the last turn.",
    )


class Regenerate(TurnSettings):
    """Which answer to give again."""

    message_id: OptionalId = Field(default=None, description="The id of the answer; by default the newest.")
    stream: bool = Field(default=False, description="Whether to stream the answer as events.")


class Answered(BaseModel):
    """An answer."""

    conversation_id: str
    turn_id: str
    state: str
    text: str
    message: MessageOut | None
    result: dict[str, Any] = Field(description="What the answer says about itself: needs_info, analysis …")
    notices: list[str] = Field(description="What was not done as it was asked for, such as an unknown @name.")
    usage: dict[str, int]


class SkillOut(BaseModel):
    """A skill of the agent."""

    name: str
    description: str


class ToolOut(BaseModel):
    """A tool of the agent."""

    name: str
    description: str
    offered: Literal["always", "when_named"] = Field(
        description="`when_named`: only when the request, the message (`@name`) or an active skill names it."
    )
    parameters: dict[str, Any] = Field(description="JSON Schema of its arguments.")


class Tools(BaseModel):
    """Everything the agent can do."""

    items: list[ToolOut]
    skills: list[SkillOut]
    agent_types: list[str]


class TodoOut(BaseModel):
    """One item of the to-do list."""

    content: str
    status: Literal["pending", "in_progress", "completed"]


class Todos(BaseModel):
    """The agent's to-do list, in order."""

    items: list[TodoOut]


# -- routes ----------------------------------------------------------------------------------------------------------


@router.post("/chat", response_model=Answered, responses=problem_responses(500, 501, 502))
async def chat(
    question: Question, et: EverthreadDep, caller: CallerDep, turns: TurnServiceDep, request: Request
) -> Response:
    """Send a message and wait for the answer. The message is stored first, whatever comes of it."""
    conversation, turn_id = await _begin(question, et, caller.owner, turns, request)
    return await answer_response(turns, conversation, turn_id)


@router.post(
    "/chat/stream", responses=EVENT_STREAM | problem_responses(500, 501, 502), response_class=EventStreamResponse
)
async def chat_stream(
    question: Question, et: EverthreadDep, caller: CallerDep, turns: TurnServiceDep, request: Request
) -> Response:
    """Send a message and stream the answer. Disconnecting stops nothing: follow the turn again with `Last-Event-ID`."""
    conversation, turn_id = await _begin(question, et, caller.owner, turns, request)
    return stream_response(turns, conversation, turn_id)


@router.get("/chat/tools", response_model=Tools, responses=problem_responses(501))
async def list_tools(
    turns: TurnServiceDep,
    et: EverthreadDep,
    caller: CallerDep,
    conversation_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)] = None,
) -> Response:
    """The tools that a turn would have, the skills, and the agent types; for a conversation, those that it has."""
    agent = turns.agent
    if conversation_id is None:
        conversation = et.conversations.unsaved(new_id(), caller.owner)
    else:
        conversation = await et.conversations.get(conversation_id, caller.owner)
    items = [_tool_out(tool) for tool in await tools_of(agent, conversation, TurnOptions())]
    skills = [{"name": one.name, "description": one.description} for one in agent.skills.skills]
    return JsonResponse({"items": items, "skills": skills, "agent_types": list(agent.types)})


def _tool_out(tool: BaseTool) -> dict[str, Any]:
    function = tool_schema(tool)["function"]
    return {
        "name": tool.name,
        "description": " ".join(tool.description.split()),
        "offered": WHEN_NAMED if WHEN_NAMED in (tool.tags or ()) else "always",
        "parameters": function.get("parameters", {}),
    }


@router.get("/conversations/{conversation_id}/todos", response_model=Todos, responses=problem_responses(501))
async def list_todos(conversation: ConversationDep, turns: TurnServiceDep) -> Response:
    """The agent's to-do list, as the last turn left it."""
    return JsonResponse({"items": list(await turns.todos(conversation))})


@router.post(
    "/conversations/{conversation_id}/regenerate",
    response_model=Answered,
    responses=ANSWER_OR_EVENTS | problem_responses(500, 501, 502),
)
async def regenerate(
    conversation: ConversationDep, how: Regenerate, caller: CallerDep, turns: TurnServiceDep, request: Request
) -> Response:
    """Answer the same question again, on a new branch; the former answer stays on its own."""
    options = _options(how, request, caller.owner)
    async with _admission(request).slot(caller.owner, conversation.id) as slot:
        question = None
        if options.turn_id is None or not await _has_turn(conversation, options.turn_id):
            question = await _question_before(conversation, how.message_id)
        turn_id = await turns.begin(conversation, None, options, again=question)
        slot.hold(turns.task(conversation, turn_id))
    if how.stream:
        return stream_response(turns, conversation, turn_id)
    return await answer_response(turns, conversation, turn_id)


# -- requests --------------------------------------------------------------------------------------------------------


async def _begin(
    question: Question, et: EverthreadDep, owner: str, turns: TurnService, request: Request
) -> tuple[Conversation, str]:
    if question.conversation_id and question.session_id not in (None, question.conversation_id):
        raise Invalid("differs from conversation_id; give only one of them", field="session_id")
    key = _idempotency_key(request)
    id = (
        question.conversation_id
        or question.session_id
        or (new_id() if key is None else id_from_key(owner, key, "chat"))
    )
    options = _options(question, request, owner, files=question.files)
    message: object = question.message
    if not isinstance(message, dict):
        if not message:
            raise Invalid("must not be empty", field="message")
        message = {"role": "user", "content": message}
    async with _admission(request).slot(owner, id) as slot:  # before anything is stored
        conversation, turn_id = await turns.begin_in(id, owner, message, options)
        request.state.conversation = conversation.id
        slot.hold(turns.task(conversation, turn_id))
    return conversation, turn_id


def _admission(request: Request) -> Admission:
    admission: Admission = request.app.state.admission
    return admission


def _idempotency_key(request: Request) -> str | None:
    """From the middleware that stores responses."""
    key: str | None = getattr(request.state, "idempotency_key", None)
    return key


def _options(how: TurnSettings, request: Request, owner: str, files: list[str] | None = None) -> TurnOptions:
    key = _idempotency_key(request)
    check_model(how.model, request.app.state.settings)
    request_hash = sha256(f"{request.url.path}\x00{how.model_dump_json()}".encode("utf-8", "surrogatepass")).hexdigest()
    agent_type = {} if how.agent_type is None else {"agent_type": how.agent_type}
    return TurnOptions(
        model=how.model,
        model_pref=how.model_pref,
        features=how.features(),
        kb_prefix=how.kb_prefix,
        use_retrieval=how.retrieval,
        when_busy=how.when_busy,
        max_loops=how.max_loops,
        debug=how.debug,
        files=files or (),
        active_skill=how.active_skill,
        allowed_tools=how.allowed_tools,
        persistent_tools=how.persistent_tools,
        turn_id=None if key is None else id_from_key(owner, key, "turn"),
        metadata={} if key is None else {REQUEST_HASH: request_hash},
        **agent_type,  # type: ignore[arg-type]
    )


async def _has_turn(conversation: Conversation, id: str) -> bool:
    try:
        await conversation.turn(id)
    except NotFound:
        return False
    return True


async def _question_before(conversation: Conversation, answer: str | None) -> Message:
    """The newest user message before an answer, on the active branch."""
    end = None if answer is None else (await conversation.message(answer)).seq
    async for message in _newest_first(conversation):
        if message.role == "user" and (end is None or message.seq < end):
            return message
    raise Conflict("no question to answer again")


async def _newest_first(conversation: Conversation) -> AsyncIterator[Message]:
    """The question is hardly ever far from the end, so a few messages are read first, and then ever more."""
    count = 50
    while True:
        tail = await conversation.tail(count)
        for message in reversed(tail):
            yield message
        if len(tail) < count:
            return
        count *= 8


# -- responses -------------------------------------------------------------------------------------------------------


async def answer_response(turns: TurnService, conversation: Conversation, turn_id: str) -> Response:
    """The answer, when the turn has ended; a failed turn becomes a problem that says where to find it."""
    end = await turns.wait_for_end(conversation, turn_id)
    path = _turn_path(conversation, turn_id)
    if isinstance(end, Failed):
        raise _turn_problem(end, path)
    message: Message | None = None
    if end.answer_id is not None:
        with suppress(NotFound):
            message = await conversation.message(end.answer_id)
    body = {
        "conversation_id": conversation.id,
        "turn_id": turn_id,
        "state": end.state,
        "text": end.text,
        "message": message and message_out(message),
        "result": end.result,
        "notices": list(end.notices),
        "usage": end.usage,
    }
    return JsonResponse(body, headers={"Content-Location": path})


def stream_response(turns: TurnService, conversation: Conversation, turn_id: str, *, after: int = 0) -> Response:
    """A turn as an event stream."""
    headers = {"Content-Location": f"{_turn_path(conversation, turn_id)}/stream"}
    return EventStreamResponse(turns.frames(conversation, turn_id, after=after), headers=headers)


def _turn_path(conversation: Conversation, turn_id: str) -> str:
    return f"/api/v1/conversations/{quote_id(conversation.id)}/turns/{quote_id(turn_id)}"


def _turn_problem(end: Failed, path: str) -> HttpProblem:
    """A turn's failure with the status of its error."""
    is_unspecific = end.code == EverthreadError.code
    status = next((type.status for error, type in PROBLEM_TYPES.items() if error.code == end.code), 502)
    return HttpProblem(
        502 if is_unspecific else status,
        "turn_failed" if is_unspecific else end.code,
        end.message,
        safe="The question and what was answered until then are kept.",
        next_step=f"See {path}, and try again with regenerate.",
        retryable=end.retryable,
        headers={"Content-Location": path},
    )
