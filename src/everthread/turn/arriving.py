"""A message arrives: what is wrong with it is said before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from everthread.context.message_format import IMAGE_BLOCKS, blocks_of
from everthread.conversation import Conversation
from everthread.core import payloads
from everthread.core.errors import Invalid
from everthread.core.ids import check_id, new_id
from everthread.core.turns import Turn, TurnState
from everthread.history.ingest import Prepared, as_batch
from everthread.turn.agent import Agent
from everthread.turn.options import Options
from everthread.turn.scene import Scene, prepared
from everthread.turn.state import MAIN_CONTEXT, AppState
from everthread.turn.switches import laid_over

PREFERENCES = ("default", "vision", "code", "reasoning")
_WHEN_BUSY = ("enqueue", "reject", "interrupt")


class Arrived(NamedTuple):
    """A message that can be taken."""

    turn: Turn
    messages: Sequence[Prepared]
    question: str
    preference: str | None
    max_loops: int
    options: Options

    def state(self, scene: Scene) -> AppState:
        """What the graph begins with; what it leaves out is as the last turn left it."""
        options, conversation = self.options, scene.conversation
        is_child = conversation.parent_id is not None
        begun = AppState(
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
            workspace_path=None if options.workspace is None else str(getattr(options.workspace, "path", "")) or None,
            kb_prefix=options.kb_prefix,
            agent_type=options.agent_type,
            use_retrieval=options.use_retrieval is not False,
            debug=options.debug,
        )
        if options.active_skill is not None:
            begun["active_skill"] = options.active_skill
        if options.persistent_tools is not None:
            begun["persistent_tools"] = list(options.persistent_tools)
        if options.uploaded_files is not None:
            begun["uploaded_files"] = [dict(one) for one in options.uploaded_files]
        return begun


async def arrive(conversation: Conversation, message: object, agent: Agent, options: Options) -> Arrived:
    """Check everything that can be checked; Invalid names the part that cannot be taken."""
    _check(options, agent)
    messages = await prepared(_named(message))
    _refuse_empty(messages)
    now = agent.leases.clock()
    id = new_id() if options.turn_id is None else check_id(options.turn_id, "turn_id")
    turn = Turn(
        id=id,
        conversation_id=conversation.id,
        state=TurnState.RECEIVED,
        question_id=messages[-1].id if messages else "",
        answer_id=new_id(),
        received_at=now,
        kind=options.kind,
        assistant=options.assistant,
        model=options.model if isinstance(options.model, str) else None,
        metadata=options.metadata,
        holder=agent.leases.holder,
        lease_until=agent.leases.lease_until,
    )
    asked = [one for one in messages if one.role == "user"]
    question = payloads.text(asked[-1].payload) if asked else await _last_question(conversation)
    preference = "vision" if any(has_images(one.payload) for one in messages) else None
    return Arrived(turn, messages, question, preference, options.max_loops or agent.limits.max_loops, options)


def _check(options: Options, agent: Agent) -> None:
    agent.type_named(options.agent_type)
    laid_over(agent.switches, options.features)
    if options.model_pref is not None and options.model_pref not in PREFERENCES:
        raise Invalid(f"must be one of {', '.join(PREFERENCES)}, not {options.model_pref!r}", field="model_pref")
    if options.when_busy not in _WHEN_BUSY:
        raise Invalid(f"must be one of {', '.join(_WHEN_BUSY)}, not {options.when_busy!r}", field="when_busy")
    if options.max_loops is not None and not 1 <= options.max_loops <= 1000:
        raise Invalid(f"must be from 1 to 1000, not {options.max_loops!r}", field="max_loops")


def _named(message: object) -> list[Any]:
    """The messages, each with an id: one that is told of must be found in the log by it."""
    if message is None:
        return []
    given = [{"role": "user", "content": message}] if isinstance(message, str) else as_batch(message)
    return [
        {**one, "id": new_id()} if isinstance(one, Mapping) and payloads.message_id(one) is None else one
        for one in given
    ]


def _refuse_empty(messages: Sequence[Prepared]) -> None:
    for place, message in enumerate(messages):
        if message.role == "user" and not payloads.text(message.payload).strip() and not blocks_of(message.payload):
            raise Invalid("is empty; write something, or attach a file", field=f"messages[{place}].content")


async def _last_question(conversation: Conversation) -> str:
    found = [message for message in await conversation.tail(50) if message.role == "user"]
    return found[-1].text if found else ""


def has_images(payload: Mapping[str, Any]) -> bool:
    """Whether a message shows something."""
    return any(block.get("type") in IMAGE_BLOCKS for block in blocks_of(payload))
