"""Talking: a message in, an answer out, whole or as it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from everthread.conversation import Conversation
from everthread.core.errors import Conflict, EverthreadError, Invalid, NotFound
from everthread.core.ids import MAX_ID_CHARACTERS, new_id
from everthread.core.turn_events import Failed
from everthread.http.dependencies import CallerDep, ConversationDep, EverthreadDep, RequestModel
from everthread.http.errors import PROBLEM_TYPES, HttpProblem, problem_responses
from everthread.http.middleware import quote_id
from everthread.http.responses import JsonResponse
from everthread.http.sse import EventStreamResponse
from everthread.http.turn_service import REQUEST_HASH, TurnService, id_from_key
from everthread.http.v1.schemas import MessageOut, message_out
from everthread.settings import Settings
from everthread.turn.options import Options
from everthread.turn.results import result_of

router = APIRouter(tags=["chat"])

EVENT_STREAM: dict[int | str, dict[str, Any]] = {
    200: {"description": "Events as they come, each with its number as id.", "content": {"text/event-stream": {}}}
}
Id = Annotated[str | None, Field(default=None, min_length=1, max_length=MAX_ID_CHARACTERS)]


class TurnSettings(RequestModel):
    """How a turn is to be run."""

    agent_type: str | None = Field(default=None, max_length=MAX_ID_CHARACTERS)
    model: str | None = Field(default=None, max_length=300, description="Such as `openai:gpt-5-mini`.")
    model_pref: Literal["default", "vision", "code", "reasoning"] | None = None
    kb_prefix: str | None = Field(default=None, max_length=MAX_ID_CHARACTERS, description="The knowledge base to ask.")
    recall: bool | None = Field(default=None, description="Whether to bring back what fits from before the window.")
    compaction: bool | None = Field(default=None, description="Whether what is old may be summed up.")
    memory: bool | None = None
    retrieval: bool | None = None
    when_busy: Literal["enqueue", "reject", "interrupt"] = Field(
        default="enqueue", description="What becomes of it while another turn of the conversation runs."
    )
    max_loops: int | None = Field(default=None, ge=1, le=1000)
    debug: bool = False

    def features(self) -> dict[str, bool] | None:
        asked = {"recall": self.recall, "summary": self.compaction, "memory": self.memory, "retrieval": self.retrieval}
        return {name: value for name, value in asked.items() if value is not None} or None


class Question(TurnSettings):
    """A message, and where it belongs."""

    message: str | list[dict[str, Any]] | dict[str, Any] = Field(description="A text, content blocks, or a message.")
    conversation_id: Id = Field(default=None, description="Made when you have none by this id; a new one without.")
    session_id: Id = Field(default=None, description="The same, by another name.")
    files: list[str] = Field(default=[], max_length=100, description="Names of files of the conversation.")


class Regenerate(TurnSettings):
    """Which answer is to be given again."""

    message_id: Id = Field(default=None, description="Of the answer; the newest without.")
    stream: bool = Field(default=False, description="Whether to follow the answer as it is made, as events.")


class Answered(BaseModel):
    """An answer."""

    conversation_id: str
    turn_id: str
    state: str
    text: str
    message: MessageOut | None
    result: dict[str, Any] = Field(description="What the answer says about itself: needs_info, analysis …")
    usage: dict[str, int]


class ToolOut(BaseModel):
    """Something that the agent can do."""

    name: str
    description: str


class Tools(BaseModel):
    """Everything that the agent can do."""

    items: list[ToolOut]
    skills: list[ToolOut]
    agent_types: list[str]


class TodoOut(BaseModel):
    """One thing to do."""

    content: str
    status: Literal["pending", "in_progress", "completed"]


class Todos(BaseModel):
    """What the agent has set itself to do, in order."""

    items: list[TodoOut]


def turn_service(request: Request) -> TurnService:
    talk: TurnService = request.app.state.talk
    return talk


@router.post("/chat", response_model=Answered, responses=problem_responses(500, 501, 502))
async def chat(question: Question, et: EverthreadDep, caller: CallerDep, request: Request) -> Response:
    """Say something and wait for the answer. The question is kept before it is looked at, whatever comes of it."""
    talk = turn_service(request)
    conversation, options = await _asked(question, et, caller.owner, request)
    turn_id = await talk.begin(conversation, _message(question), options)
    return await answer_response(talk, conversation, turn_id)


@router.post(
    "/chat/stream", responses=EVENT_STREAM | problem_responses(500, 501, 502), response_class=EventStreamResponse
)
async def chat_stream(question: Question, et: EverthreadDep, caller: CallerDep, request: Request) -> Response:
    """Say something and follow the answer. Going away stops nothing: follow the turn again with `Last-Event-ID`."""
    talk = turn_service(request)
    conversation, options = await _asked(question, et, caller.owner, request)
    turn_id = await talk.begin(conversation, _message(question), options)
    return stream_response(talk, conversation, turn_id)


@router.get("/chat/tools", response_model=Tools, responses=problem_responses(501))
async def list_tools(
    request: Request,
    et: EverthreadDep,
    caller: CallerDep,
    conversation_id: Annotated[str | None, Query(min_length=1, max_length=MAX_ID_CHARACTERS)] = None,
) -> Response:
    """What the agent can do; for a conversation, with the tools that belong to it."""
    agent = turn_service(request).agent
    found = [*agent.builtin]
    if conversation_id is not None:
        conversation = await et.conversations.get(conversation_id, caller.owner)
        offered = getattr(agent.hands, "tools", None)
        found += offered(et, conversation) if offered is not None else []
    items, skills = (
        [{"name": one.name, "description": one.description} for one in known] for known in (found, agent.skills.skills)
    )
    return JsonResponse({"items": items, "skills": skills, "agent_types": list(agent.types)})


@router.get("/conversations/{conversation_id}/todos", response_model=Todos, responses=problem_responses(501))
async def list_todos(conversation: ConversationDep, request: Request) -> Response:
    """What the agent has set itself to do, as the last turn left it."""
    return JsonResponse({"items": list(await turn_service(request).todos(conversation))})


@router.post(
    "/conversations/{conversation_id}/regenerate",
    response_model=Answered,
    responses=problem_responses(500, 501, 502),
)
async def regenerate(conversation: ConversationDep, how: Regenerate, request: Request, caller: CallerDep) -> Response:
    """Answer the same question again, on a new branch; the former answer stays on its own."""
    talk = turn_service(request)
    options = _options(how, request, caller.owner)
    if options.turn_id is None or not await _has_turn(conversation, options.turn_id):
        await conversation.fork(await _question_seq(conversation, how.message_id), activate=True)
    turn_id = await talk.begin(conversation, None, options)
    return (
        stream_response(talk, conversation, turn_id)
        if how.stream
        else await answer_response(talk, conversation, turn_id)
    )


async def _has_turn(conversation: Conversation, id: str) -> bool:
    try:
        await conversation.turn(id)
    except NotFound:
        return False
    return True


async def _question_seq(conversation: Conversation, answer: str | None) -> int:
    """The newest user message up to an answer, on the active branch."""
    last = None if answer is None else (await conversation.message(answer)).seq
    async for role, seq in _backwards(conversation):
        if role == "user" and (last is None or seq < last):
            return seq
    raise Conflict("there is no question to answer again")


async def _backwards(conversation: Conversation) -> AsyncIterator[tuple[str, int]]:
    """Roles and seqs from the newest on; a question is hardly ever far."""
    count = 50
    while True:
        tail = await conversation.tail(count)
        for message in reversed(tail):
            yield message.role, message.seq
        if len(tail) < count:
            return
        count *= 8


def _message(question: Question) -> object:
    said = question.message
    if isinstance(said, dict):
        return said
    if not said:
        raise Invalid("says nothing", field="message")
    return {"role": "user", "content": said}


async def _asked(question: Question, et: EverthreadDep, owner: str, request: Request) -> tuple[Conversation, Options]:
    given = question.conversation_id or question.session_id
    if question.conversation_id and question.session_id not in (None, question.conversation_id):
        raise Invalid("names another conversation than conversation_id; give one of them", field="session_id")
    key = _key(request)
    id = given or (new_id() if key is None else id_from_key(owner, key, "chat"))
    conversation = await et.conversations.ensure(id, owner)
    request.state.conversation = conversation.id
    return conversation, _options(question, request, owner, files=question.files)


def _key(request: Request) -> str | None:
    """The idempotency key: from the door that keeps answers, or as it came with a stream, which that door lets pass."""
    return getattr(request.state, "idempotency_key", None) or request.headers.get("idempotency-key")


def _options(how: TurnSettings, request: Request, owner: str, files: list[str] | None = None) -> Options:
    key = _key(request)
    _check_model(how.model, request.app.state.settings)
    asked = sha256(f"{request.url.path}\x00{how.model_dump_json()}".encode()).hexdigest()
    named = {} if how.agent_type is None else {"agent_type": how.agent_type}
    return Options(
        model=how.model,
        model_pref=how.model_pref,
        features=how.features(),
        kb_prefix=how.kb_prefix,
        use_retrieval=how.retrieval,
        when_busy=how.when_busy,
        max_loops=how.max_loops,
        debug=how.debug,
        uploaded_files=[{"name": name} for name in files] if files else None,
        turn_id=None if key is None else id_from_key(owner, key, "turn"),
        metadata={} if key is None else {REQUEST_HASH: asked},
        **named,  # type: ignore[arg-type]
    )


def _check_model(name: str | None, settings: Settings) -> None:
    """A model by its provider's name; files of the server are for its own settings to name."""
    set_here = (settings.model, settings.model_vision, settings.model_code, settings.model_reasoning)
    if name is None or name in set_here or name == "scripted:echo":
        return
    if name.partition(":")[0].strip().lower() in ("gguf", "scripted", "local") or ":" not in name:
        raise Invalid("names a file of the server, or no provider; write one such as openai:gpt-5-mini", field="model")


async def answer_response(talk: TurnService, conversation: Conversation, turn_id: str) -> Response:
    """A turn's end as an answer; a failed one as a problem that says where its turn is."""
    end = await talk.ending(conversation, turn_id)
    place = _place(conversation, turn_id)
    if isinstance(end, Failed):
        raise turn_problem(end, place)
    message = None if end.answer_id is None else await _kept(conversation, end.answer_id)
    body = {
        "conversation_id": conversation.id,
        "turn_id": turn_id,
        "state": end.state,
        "text": end.text,
        "message": message and message_out(message),
        "result": {} if message is None else result_of(message.payload),
        "usage": end.usage,
    }
    return JsonResponse(body, headers={"Content-Location": place})


def _place(conversation: Conversation, turn_id: str) -> str:
    return f"/api/v1/conversations/{quote_id(conversation.id)}/turns/{quote_id(turn_id)}"


async def _kept(conversation: Conversation, id: str) -> Any:
    try:
        return await conversation.message(id)
    except NotFound:
        return None


def turn_problem(end: Failed, place: str) -> HttpProblem:
    """A turn's failure with the status that its error has."""
    status = next((kind.status for error, kind in PROBLEM_TYPES.items() if error.code == end.code), 502)
    own = end.code == EverthreadError.code
    return HttpProblem(
        502 if own else status,
        "turn_failed" if own else end.code,
        end.message,
        next_step=f"The question is kept, with what there is of the answer: see {place}. Try again with regenerate.",
        retryable=end.retryable,
        headers={"Content-Location": place},
    )


def stream_response(talk: TurnService, conversation: Conversation, turn_id: str, *, after: int = 0) -> Response:
    """A turn as an event stream."""
    headers = {"Content-Location": f"{_place(conversation, turn_id)}/stream"}
    return EventStreamResponse(talk.frames(conversation, turn_id, after=after), headers=headers)
