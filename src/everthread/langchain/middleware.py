"""`EverthreadMiddleware`: an agent's messages into the log as they are made, and the log as what its model sees."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.types import Command

from everthread.adapters.checkpoints.threads import address_of
from everthread.context.budget import Budget, check_budget
from everthread.core import payloads
from everthread.core.ids import LOCAL, check_id, new_id
from everthread.core.nouns import Ref
from everthread.instance import Everthread
from everthread.langchain.messages import to_langchain
from everthread.langchain.tools import Ask
from everthread.langchain.tools import history_tools as agent_history_tools
from everthread.langchain.tools import memory_tools as agent_memory_tools
from everthread.langgraph.capture import LazyConversation, Namespace, RunCapture
from everthread.langgraph.lifecycle import bridge_of

_MAX_THREADS = 64


class HookLocation(NamedTuple):
    """The thread and the graph in it that a hook is called in."""

    thread: Ref
    namespace: Namespace


def current_location(owner: str) -> HookLocation:
    """Where the running hook is. Its own node is the last part of LangGraph's namespace, and not part of ours."""
    address = address_of(get_config(), owner)
    return HookLocation(Ref(address.owner, address.thread_id), tuple(address.namespace.split("|")[:-1]))


class _Thread:
    """One thread: hooks of parallel tools take turns."""

    def __init__(self, et: Everthread, ref: Ref) -> None:
        self.scopes = RunCapture(et, ref.id, ref.owner)
        self.turn = asyncio.Lock()


class ThreadCaptures:
    """The threads captured last. What is forgotten of one is read from the log again."""

    def __init__(self, et: Everthread) -> None:
        self._et = et
        self._threads: OrderedDict[Ref, _Thread] = OrderedDict()

    def _thread(self, ref: Ref) -> _Thread:
        found = self._threads.setdefault(ref, _Thread(self._et, ref))
        self._threads.move_to_end(ref)
        while len(self._threads) > _MAX_THREADS:
            self._threads.popitem(last=False)
        return found

    async def capture(
        self, where: HookLocation, listed: Sequence[object], new: Sequence[object] = ()
    ) -> LazyConversation:
        """Log a graph's list, then what is new and not in it yet; give the log they went to."""
        thread = self._thread(where.thread)
        async with thread.turn:
            await thread.scopes.log(where.namespace, listed)
            await thread.scopes.add(where.namespace, new)
            return thread.scopes.ledger(where.namespace)

    def ledger(self, where: HookLocation) -> LazyConversation:
        """Where the messages of a graph go."""
        return self._thread(where.thread).scopes.ledger(where.namespace)


DEEPAGENTS_SLOT = "SummarizationMiddleware"
"""The name of deepagents' own middleware; one by the same name takes its place, in its subagents too."""

ModelAnswer = ModelResponse[Any] | ExtendedModelResponse[Any] | AIMessage
ToolAnswer = ToolMessage | Command[Any]


class EverthreadMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps everything an agent says, hears and is told by its tools.

        agent = create_agent(model, tools, middleware=[EverthreadMiddleware(et)], checkpointer=…)

    - The question is in the log before the model is asked, an answer after it was made, and a tool's result before any
      other middleware puts a stub in its place; with every `durability`, and without a checkpointer too. The thread is
      the `thread_id` of the call.
    - Every message that passes gets an id, so whatever else captures (`ArchivingSaver`, `archive_stream`) doubles
      nothing.
    - With `compact=True` the model is sent `conversation.context()`: summaries and the newest messages, within the
      `budget`. The state is not touched. With `recall=True` what the question asks for is brought back from before.
    - The agent gets the tools history_search, history_open and compress_context, unless `history_tools=False`;
      with `memory_tools=True` also remember and forget, for what is worth knowing of the user in later conversations.
    - `name=DEEPAGENTS_SLOT` takes the place of deepagents' own summarisation, and so reaches its default subagent;
      to subagents of your own give it as part of their `middleware`.
    """

    def __init__(
        self,
        et: Everthread,
        *,
        owner: str = LOCAL,
        compact: bool = False,
        recall: bool = False,
        budget: Budget | None = None,
        history_tools: bool = True,
        memory_tools: bool = False,
        name: str = "EverthreadMiddleware",
    ) -> None:
        super().__init__()
        self._owner = check_id(owner, "owner")
        self._bridge = bridge_of(et)
        self._captures = ThreadCaptures(et)
        self._compact = compact or recall
        self._recall = recall
        self._budget = check_budget(budget)
        self._name = name
        self.tools = [
            *(agent_history_tools(self.wait, self.await_) if history_tools else []),
            *(agent_memory_tools(self.wait, self.await_) if memory_tools else []),
        ]

    @property
    def name(self) -> str:
        return self._name

    # -- the question, and each answer -----------------------------------------------------------------------

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        """Log the question before anything is made of it."""
        await self._bridge.run(self._captures.capture(current_location(self._owner), list(state["messages"])))

    def before_agent(self, state: Any, runtime: Any) -> None:
        self._bridge.call(self._captures.capture(current_location(self._owner), list(state["messages"])))

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        """Log what the model said, with all that the list has before it."""
        await self._bridge.run(self._captures.capture(current_location(self._owner), list(state["messages"])))

    def after_model(self, state: Any, runtime: Any) -> None:
        self._bridge.call(self._captures.capture(current_location(self._owner), list(state["messages"])))

    # -- what the model is sent ------------------------------------------------------------------------------

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelAnswer:
        """Ask with what the log makes of the conversation, where that is wanted."""
        if self._compact:
            request = await self._bridge.run(self._from_log(current_location(self._owner), request))
        return _with_ids(await handler(request))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelAnswer:
        if self._compact:
            request = self._bridge.call(self._from_log(current_location(self._owner), request))
        return _with_ids(handler(request))

    async def _from_log(self, where: HookLocation, request: ModelRequest[Any]) -> ModelRequest[Any]:
        listed: Sequence[BaseMessage] = (request.state or {}).get("messages") or request.messages
        ledger = await self._captures.capture(where, listed)
        if not await _has_all(ledger, listed):
            return request  # a subgraph that was handed messages of the thread's: its own log is not all it is to see
        conversation = await ledger.conversation()
        context = await conversation.context(
            system=request.system_prompt,
            query=_question(listed) if self._recall else None,
            tools=[one if isinstance(one, dict) else convert_to_openai_tool(one) for one in request.tools],
            budget=self._budget,
        )
        messages = [one for one in to_langchain(context) if not isinstance(one, SystemMessage)]
        return request.override(messages=messages)  # type: ignore[arg-type]

    # -- tools ---------------------------------------------------------------------------------------------------

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolAnswer]]
    ) -> ToolAnswer:
        """Log a result as the tool gave it."""
        answer = await handler(request)
        new = _messages_in_answer(answer)
        await self._bridge.run(self._captures.capture(current_location(self._owner), _messages_in_state(request), new))
        return answer

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        answer = handler(request)
        new = _messages_in_answer(answer)
        self._bridge.call(self._captures.capture(current_location(self._owner), _messages_in_state(request), new))
        return answer

    def wait(self, ask: Ask) -> str:
        """Do something with the conversation of the running agent."""
        return self._bridge.call(self._asked(current_location(self._owner), ask))

    async def await_(self, ask: Ask) -> str:
        """The same, for async tools."""
        return await self._bridge.run(self._asked(current_location(self._owner), ask))

    async def _asked(self, where: HookLocation, ask: Ask) -> str:
        return (await ask(await self._captures.ledger(where).conversation())).text


def _messages_in_state(request: ToolCallRequest) -> list[Any]:
    state = request.state
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return list(found or [])


async def _has_all(ledger: LazyConversation, listed: Sequence[BaseMessage]) -> bool:
    said = [message.id for message in listed if message.id and not payloads.is_summary(message.model_dump())]
    return len(await ledger.read(said)) == len(set(said))


def _question(listed: Sequence[BaseMessage]) -> str | None:
    return next((message.text for message in reversed(listed) if isinstance(message, HumanMessage)), None)


def _with_ids(answer: ModelAnswer) -> ModelAnswer:
    response = answer.model_response if isinstance(answer, ExtendedModelResponse) else answer
    for message in [response] if isinstance(response, BaseMessage) else response.result:
        _ensure_id(message)
    return answer


def _messages_in_answer(answer: ToolAnswer) -> list[BaseMessage]:
    """The messages in a tool's answer that were said, each with an id from here on."""
    if isinstance(answer, ToolMessage):
        return [_ensure_id(answer)]
    update = answer.update
    found = update.get("messages") if isinstance(update, dict) else None
    listed = found if isinstance(found, list) else [found]
    return [_ensure_id(one) for one in listed if isinstance(one, BaseMessage) and one.type != "remove"]


def _ensure_id(message: BaseMessage) -> BaseMessage:
    if message.id is None:
        message.id = new_id()
    return message
