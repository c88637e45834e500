"""Step 1 of a turn: what a caller may ask for, and its validation before anything is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypedDict, get_args

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel

from everthread.context.message_format import IMAGE_BLOCKS, blocks_of
from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.entries import EntryOrigin
from everthread.core.errors import Invalid, ModelError, NotFound
from everthread.core.ids import check_id, new_id
from everthread.core.nouns import Message
from everthread.core.payloads import block_type
from everthread.core.turns import Turn, TurnState, WhenBusy
from everthread.core.workspaces import Upload, Workspace
from everthread.history.ingest import Prepared, as_batch, check_content, prepare_all, rough_bytes, unknown_role
from everthread.turn.agent import GENERAL, Agent, KnowledgeCatalog, ModelChoice, merge_features
from everthread.turn.files import name_files, upload_fields, without_notes
from everthread.turn.listing import tools_of
from everthread.turn.state import MAIN_CONTEXT, AppState

MODEL_PREFERENCES = ("default", "vision", "code", "reasoning")
NO_COLLECTION = ("", "general")
"""What may be given as `kb_prefix` to search no knowledge base."""
_QUESTION_TAIL = 50
"""Among so many of the newest messages the last question is looked for."""
_THREAD_BYTES = 65_536
"""Messages of this size and more are prepared in a thread: hashing and counting them would block the loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """The options of one turn, which `run_turn` also takes as keyword arguments.

    ```python
    options = everthread.TurnOptions(system="Answer in one sentence.", max_loops=5)
    async for event in everthread.run_turn(conv, "Where were we?", agent=agent, options=options):
        print(event.kind)
    ```
    """

    model: ModelChoice = None
    """A name such as `openai:gpt-5-mini`, or a LangChain chat model; None for the configured one."""
    model_pref: str | None = None
    """Which of the configured models: `default`, `vision`, `code` or `reasoning`."""
    agent_type: str = GENERAL
    system: str | None = None
    """A system prompt, placed before that of the agent type."""
    features: Mapping[str, bool] | None = None
    """Which features are on in this turn: `summary`, `recall`, `memory`, `retrieval`."""
    allowed_tools: Sequence[str] = ()
    """Tools beyond those of the agent type."""
    persistent_tools: Sequence[str] | None = None
    """Tools that the conversation keeps from now on; None leaves them as they are."""
    active_skill: str | None = None
    max_loops: int | None = None
    kb_prefix: str | None = None
    use_retrieval: bool | None = None
    workspace: Workspace | None = None
    files: Sequence[str] = ()
    """Files of the conversation that the question is about, by name or path: the model is told of them, as it is of
    every upload since the last turn."""
    when_busy: WhenBusy = "enqueue"
    """What happens to the message while another turn of the conversation runs."""
    debug: bool = False
    callbacks: Sequence[BaseCallbackHandler] = ()
    """LangChain callbacks, such as Langfuse's."""
    turn_id: str | None = None
    """An id of your own: the same id again is the same turn, so a retry is safe."""
    kind: str = "turn"
    assistant: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Stored with the turn."""


class TurnFields(TypedDict, total=False):
    """The fields of `TurnOptions` as keyword arguments, for type checkers."""

    model: ModelChoice
    model_pref: str | None
    agent_type: str
    system: str | None
    features: Mapping[str, bool] | None
    allowed_tools: Sequence[str]
    persistent_tools: Sequence[str] | None
    active_skill: str | None
    max_loops: int | None
    kb_prefix: str | None
    use_retrieval: bool | None
    workspace: Workspace | None
    files: Sequence[str]
    when_busy: WhenBusy
    debug: bool
    callbacks: Sequence[BaseCallbackHandler]
    turn_id: str | None
    kind: str
    assistant: str | None
    metadata: Mapping[str, Any]


class TurnRequest(NamedTuple):
    """A valid request, with the row that its turn will have."""

    turn: Turn
    messages: Sequence[Prepared]
    question: str
    preference: str | None
    max_loops: int
    options: TurnOptions
    uploads: Sequence[Upload]
    """The files that were handed in so far."""
    workspace_path: str

    def initial_state(self, conversation: Conversation) -> AppState:
        """What the graph begins with; fields that are left out are as the last turn left them."""
        options = self.options
        is_child = conversation.parent_id is not None
        state = AppState(
            images=[message.id for message in self.messages if has_images(message.payload)],
            allowed_tools=list(options.allowed_tools),
            context_id=conversation.id if is_child else MAIN_CONTEXT,
            parent_context=conversation.parent_id,
            loops=0,
            max_loops=self.max_loops,
            model_pref=options.model_pref or self.preference,
            thread_id=conversation.id,
            session_id=conversation.id,
            conversation_id=conversation.id,
            user_id=conversation.owner,
            workspace_path=self.workspace_path,
            kb_prefix=options.kb_prefix,
            agent_type=options.agent_type,
            use_retrieval=options.use_retrieval is not False,
            debug=options.debug,
        )
        if self.uploads:
            state["uploaded_files"] = [upload_fields(one) for one in self.uploads]
        if options.active_skill is not None:
            state["active_skill"] = options.active_skill
        if options.persistent_tools is not None:
            state["persistent_tools"] = list(options.persistent_tools)
        return state


async def validate(
    conversation: Conversation, message: object, agent: Agent, options: TurnOptions, again: Message | None = None
) -> TurnRequest:
    """Check all that can be checked; Invalid names the field that is wrong. `again` is a question that is answered
    again."""
    _check_options(options, agent)
    options = await _check_names(conversation, agent, options)
    given = _with_ids(message)
    files = await name_files(agent, conversation, options.files, given)
    origin = EntryOrigin.MODEL if options.kind == "subagent" else None
    messages = await prepare_messages(files.messages, origin)
    for place, one in enumerate(messages):
        if one.role not in payloads.KNOWN_ROLES:
            raise Invalid(unknown_role(one.role), field=f"messages[{place}].role")
        check_content(one, f"messages[{place}].content")
        if one.role == "user" and not payloads.text(one.payload).strip() and not blocks_of(one.payload):
            raise Invalid("is empty; write something, or attach a file", field=f"messages[{place}].content")
    turn = Turn(
        id=new_id() if options.turn_id is None else check_id(options.turn_id, "turn_id"),
        conversation_id=conversation.id,
        state=TurnState.RECEIVED,
        question_id=messages[-1].id if messages else "",
        answer_id=new_id(),
        received_at=agent.runs.clock(),
        kind=options.kind,
        assistant=options.assistant,
        model=options.model if isinstance(options.model, str) else None,
        metadata=options.metadata,
    )
    questions = [without_notes(payloads.text(one.payload)) for one in messages if one.role == "user"]
    if not questions:
        before = await _newest(conversation) if again is None else [again]
        if not messages and not before:
            raise Invalid("must not be empty: the conversation has no earlier message to answer", field="messages")
        questions = [without_notes(one.text) for one in before if one.role == "user"]
    return TurnRequest(
        turn=turn,
        messages=messages,
        question=questions[-1] if questions else "",
        preference="vision" if any(has_images(one.payload) for one in messages) else None,
        max_loops=options.max_loops or agent.limits.max_loops,
        options=options,
        uploads=files.uploads,
        workspace_path=files.workspace_path,
    )


async def _newest(conversation: Conversation) -> Sequence[Message]:
    """The newest messages; none of a conversation that is created once its first request was found valid."""
    with suppress(NotFound):
        return await conversation.tail(_QUESTION_TAIL)
    return ()


def _check_options(options: TurnOptions, agent: Agent) -> None:
    agent.get_type(options.agent_type)
    if not isinstance(options.model, str | BaseChatModel | None):
        raise Invalid(f"must be a name or a LangChain chat model, not {type(options.model).__name__}", field="model")
    merge_features(agent.features, options.features)
    if options.model_pref is not None and options.model_pref not in MODEL_PREFERENCES:
        raise Invalid(f"must be one of {', '.join(MODEL_PREFERENCES)}, not {options.model_pref!r}", field="model_pref")
    if options.when_busy not in get_args(WhenBusy):
        raise Invalid(f"must be one of {', '.join(get_args(WhenBusy))}, not {options.when_busy!r}", field="when_busy")
    if options.max_loops is not None and not 1 <= options.max_loops <= 1000:
        raise Invalid(f"must be from 1 to 1000, not {options.max_loops!r}", field="max_loops")


async def _check_names(conversation: Conversation, agent: Agent, options: TurnOptions) -> TurnOptions:
    """Whatever a request names must exist. The papers' word for no knowledge base, `general`, means none."""
    if isinstance(options.model, str) or options.model_pref is not None:
        with suppress(ModelError):  # a missing key is the server's to mend: the question is kept, and the turn says so
            await agent.models.get(options.model, options.model_pref)
    if options.active_skill and agent.skills.get(options.active_skill) is None:
        known = ", ".join(skill.name for skill in agent.skills.skills) or "none"
        raise Invalid(f"unknown skill {options.active_skill!r}; known are {known}", field="active_skill")
    if options.kb_prefix is not None and isinstance(agent.knowledge, KnowledgeCatalog):
        collections = await agent.knowledge.collections(conversation.owner)
        if options.kb_prefix not in collections:
            if options.kb_prefix not in NO_COLLECTION:
                known = ", ".join(collections) or "none"
                raise Invalid(f"unknown knowledge base {options.kb_prefix!r}; there are {known}", field="kb_prefix")
            options = replace(options, kb_prefix=None, use_retrieval=False)
    if options.allowed_tools or options.persistent_tools:
        names = [tool.name for tool in await tools_of(agent, conversation, options)]
        for field in ("allowed_tools", "persistent_tools"):
            for pattern in getattr(options, field) or ():
                if not any(fnmatchcase(name, pattern) for name in names):
                    raise Invalid(f"no tool is called {pattern!r}; there are {', '.join(names)}", field=field)
    return options


def _with_ids(message: object) -> list[Any]:
    """The messages, each with an id: events refer to it, and it must be found in the log by it."""
    if message is None:
        return []
    given = [{"role": "user", "content": message}] if isinstance(message, str) else as_batch(message)
    return [
        {**one, "id": new_id()} if isinstance(one, Mapping) and payloads.message_id(one) is None else one
        for one in given
    ]


async def prepare_messages(messages: Sequence[Any], origin: EntryOrigin | None = None) -> list[Prepared]:
    """Messages ready to be written; with the door they come through, where their roles do not say it."""
    if rough_bytes(messages) < _THREAD_BYTES:
        return prepare_all(messages, origin=origin)
    return await asyncio.to_thread(prepare_all, messages, origin=origin)


def has_images(payload: Mapping[str, Any]) -> bool:
    """Whether a message shows an image."""
    return any(block_type(block) in IMAGE_BLOCKS for block in blocks_of(payload))
