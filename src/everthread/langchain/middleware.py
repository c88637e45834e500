"""`EverthreadMiddleware`: an agent's messages into the log as they are made, and the log as what its model sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from everthread.context.budget import Budget
from everthread.core import payloads
from everthread.core.ids import LOCAL, check_id, new_id
from everthread.instance import Everthread
from everthread.langchain.hearing import Hearing, Where, here
from everthread.langchain.reviving import to_langchain
from everthread.langchain.tools import Ask, history_tools, memory_tools
from everthread.langgraph.ledgers import Ledger
from everthread.langgraph.sync import bridge_of

DEEPAGENTS_SLOT = "SummarizationMiddleware"
"""The name of deepagents' own middleware; one by the same name takes its place, in its subagents too."""

Answer = ModelResponse[Any] | ExtendedModelResponse[Any] | AIMessage
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
        self._hearing = Hearing(et)
        self._compact = compact or recall
        self._recall = recall
        self._budget = budget
        self._name = name
        self.tools = [*(_tools(self) if history_tools else []), *(_memory_tools(self) if memory_tools else [])]

    @property
    def name(self) -> str:
        return self._name

    # -- the question, and each answer -----------------------------------------------------------------------

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        """Log the question before anything is made of it."""
        await self._bridge.run(self._hearing.hear(here(self._owner), list(state["messages"])))

    def before_agent(self, state: Any, runtime: Any) -> None:
        self._bridge.call(self._hearing.hear(here(self._owner), list(state["messages"])))

    async def aafter_model(self, state: Any, runtime: Any) -> None:
        """Log what the model said, with all that the list has before it."""
        await self._bridge.run(self._hearing.hear(here(self._owner), list(state["messages"])))

    def after_model(self, state: Any, runtime: Any) -> None:
        self._bridge.call(self._hearing.hear(here(self._owner), list(state["messages"])))

    # -- what the model is sent ------------------------------------------------------------------------------

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Answer:
        """Ask with what the log makes of the conversation, where that is wanted."""
        if self._compact:
            request = await self._bridge.run(self._from_log(here(self._owner), request))
        return _with_ids(await handler(request))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Answer:
        if self._compact:
            request = self._bridge.call(self._from_log(here(self._owner), request))
        return _with_ids(handler(request))

    async def _from_log(self, where: Where, request: ModelRequest[Any]) -> ModelRequest[Any]:
        listed: Sequence[BaseMessage] = (request.state or {}).get("messages") or request.messages
        ledger = await self._hearing.hear(where, listed)
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
        new = _named_messages(answer)
        await self._bridge.run(self._hearing.hear(here(self._owner), _listed(request), new))
        return answer

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolAnswer]) -> ToolAnswer:
        answer = handler(request)
        new = _named_messages(answer)
        self._bridge.call(self._hearing.hear(here(self._owner), _listed(request), new))
        return answer

    def wait(self, ask: Ask) -> str:
        """Do something with the conversation of the running agent."""
        return self._bridge.call(self._asked(here(self._owner), ask))

    async def await_(self, ask: Ask) -> str:
        """The same, for async tools."""
        return await self._bridge.run(self._asked(here(self._owner), ask))

    async def _asked(self, where: Where, ask: Ask) -> str:
        return (await ask(await self._hearing.ledger(where).conversation())).text


def _tools(middleware: EverthreadMiddleware) -> list[Any]:
    return history_tools(middleware.wait, middleware.await_)


def _memory_tools(middleware: EverthreadMiddleware) -> list[Any]:
    return memory_tools(middleware.wait, middleware.await_)


def _listed(request: ToolCallRequest) -> list[Any]:
    state = request.state
    found = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return list(found or [])


async def _has_all(ledger: Ledger, listed: Sequence[BaseMessage]) -> bool:
    said = [message.id for message in listed if message.id and not payloads.is_summary(message.model_dump())]
    return len(await ledger.read(said)) == len(set(said))


def _question(listed: Sequence[BaseMessage]) -> str | None:
    return next((message.text for message in reversed(listed) if isinstance(message, HumanMessage)), None)


def _with_ids(answer: Answer) -> Answer:
    response = answer.model_response if isinstance(answer, ExtendedModelResponse) else answer
    for message in [response] if isinstance(response, BaseMessage) else response.result:
        _name(message)
    return answer


def _named_messages(answer: ToolAnswer) -> list[BaseMessage]:
    """The messages in a tool's answer that were said, each with an id from here on."""
    if isinstance(answer, ToolMessage):
        return [_name(answer)]
    update = answer.update
    found = update.get("messages") if isinstance(update, dict) else None
    listed = found if isinstance(found, list) else [found]
    return [_name(one) for one in listed if isinstance(one, BaseMessage) and one.type != "remove"]


def _name(message: BaseMessage) -> BaseMessage:
    if message.id is None:
        message.id = new_id()
    return message
