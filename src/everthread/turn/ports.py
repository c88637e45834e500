"""What a turn asks of others: a model that answers, a knowledge base that is searched, a place for files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from everthread.context.budget import Budget
from everthread.context.message_format import Provider

if TYPE_CHECKING:
    from everthread.turn.scene import Scene

ModelGiven = str | BaseChatModel | None
"""A model's name (`provider:name`), a model, or None for the one that is set."""


class Voice(Protocol):
    """A chat model with everything around it that a turn must not care for: retries, time limits, typed errors."""

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> Provider | None:
        """Whose rules its requests must obey; None: valid for all."""

    @property
    def budget(self) -> Budget:
        """The room of a request, counted with what its reports of usage have shown."""

    @property
    def uses_tools(self) -> bool:
        """Whether it can call tools at all."""

    def stream(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], config: RunnableConfig
    ) -> AsyncIterator[AIMessageChunk]:
        """The answer in pieces. Raises ModelError only; tried again only while nothing has come."""

    async def heard(self, *, counted: int, usage: Mapping[str, int]) -> None:
        """What the provider reports for a request that we counted to this."""

    async def refused(self, *, counted: int) -> None:
        """The provider found this request too long."""


class Models(Protocol):
    """Finds models."""

    async def voice(self, given: ModelGiven, preference: str | None) -> Voice:
        """The model that is meant; Invalid or MissingExtra say what is wrong with it and what to set."""


class Passage(NamedTuple):
    """A piece of a document."""

    id: str
    text: str
    source: str
    score: float = 0.0


class Knowledge(Protocol):
    """Named collections of documents."""

    async def route(self, owner: str, query: str) -> str | None:
        """Which collection fits the question; None: none."""

    async def search(self, owner: str, collection: str, query: str) -> Sequence[Passage]:
        """The best passages."""


class Hands(Protocol):
    """What an agent can do."""

    def __call__(self, scene: Scene) -> Sequence[BaseTool]:
        """All tools there are for this turn; which of them are offered is the state's to say."""
