"""Whatever was given as a summariser becomes one. LangChain is an extra, and is imported only when a model is built."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeGuard

from everthread.compaction.sources import ConversationKind
from everthread.compaction.summarise import Summariser
from everthread.core.errors import EverthreadError, MissingExtra, ModelError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from everthread.adapters.models.summariser import ModelSummariser


def summariser_from(
    given: Summariser | BaseChatModel | Runnable[Any, Any] | str, base_url: str | None = None
) -> Summariser:
    """Built at once, so that what is wrong with it is said where it was given."""
    if isinstance(given, str):
        return _built(given, base_url)
    return given if _is_summariser(given) else _adapted(given)


def _is_summariser(given: object) -> TypeGuard[Summariser]:
    return callable(getattr(given, "summarise", None))


class NamedSummariser:
    """A chat model by its name, built when it is first asked: a setting that names one must not stop what needs none.

    Building imports the provider's package, which takes a second or so, hence the thread.
    """

    def __init__(self, name: str, base_url: str | None = None) -> None:
        self.name = name
        self._base_url = base_url

    async def summarise(self, text: str, *, kind: ConversationKind, max_tokens: int, is_terse: bool) -> str:
        """As the model does; ModelError when there is no such model, too."""
        model = await self._model()
        return await model.summarise(text, kind=kind, max_tokens=max_tokens, is_terse=is_terse)

    async def extract(self, text: str, *, max_tokens: int) -> str:
        """The same for memories."""
        model = await self._model()
        return await model.extract(text, max_tokens=max_tokens)

    async def title(self, text: str) -> str:
        """The same for titles."""
        model = await self._model()
        return await model.title(text)

    async def _model(self) -> ModelSummariser:
        (model,) = await asyncio.gather(asyncio.to_thread(_built, self.name, self._base_url), return_exceptions=True)
        if isinstance(model, BaseException):
            said = str(model) if isinstance(model, EverthreadError) else type(model).__name__
            raise ModelError(f"the summary model {self.name} cannot be used: {said}") from model
        return model


def _built(name: str, base_url: str | None) -> ModelSummariser:
    try:
        from everthread.adapters.models.summariser import built  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise _missing() from problem
    return built(name, base_url)


def _adapted(model: object) -> Summariser:
    try:
        from everthread.adapters.models.summariser import adapted  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise _missing() from problem
    return adapted(model)


def _missing() -> MissingExtra:
    return MissingExtra("a summary model needs an extra: pip install 'everthread[langchain]'")
