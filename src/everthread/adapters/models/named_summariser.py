"""Whatever a user gives as a summariser becomes one. LangChain is an extra, imported only when a model is made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeGuard

from everthread.compaction.sources import ConversationKind
from everthread.compaction.summarise import Summariser
from everthread.core.errors import EverthreadError, Invalid, MissingExtra, ModelError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from everthread.adapters.models.summariser import ModelSummariser


def as_summariser(
    given: Summariser | BaseChatModel | Runnable[Any, Any] | str, base_url: str | None = None
) -> Summariser:
    """Made at once, so that an error is raised where it was given."""
    if isinstance(given, str):
        return _load(given, base_url)
    if not _is_summariser(given):
        return _adapted(given)
    if not _takes_what_it_is_given(given.summarise):
        raise Invalid(
            "must have async def summarise(self, text, *, kind, max_tokens, is_terse) -> str", field="summariser"
        )
    return given


def _takes_what_it_is_given(summarise: Callable[..., object]) -> bool:
    try:
        signature(summarise).bind("text", kind="chat", max_tokens=1, is_terse=False)
    except TypeError:
        return False
    except ValueError:  # of something that does not say what it takes
        return True
    return True


def _is_summariser(given: object) -> TypeGuard[Summariser]:
    return callable(getattr(given, "summarise", None))


class NamedSummariser:
    """A chat model by its name, made when it is first used: a setting that names one must not stop what needs none.

    Making it imports the provider's package, which takes a second or so, hence the thread.
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
        (model,) = await asyncio.gather(asyncio.to_thread(_load, self.name, self._base_url), return_exceptions=True)
        if isinstance(model, BaseException):
            said = str(model) if isinstance(model, EverthreadError) else type(model).__name__
            raise ModelError(f"the summary model {self.name} cannot be used: {said}") from model
        return model


def _load(name: str, base_url: str | None) -> ModelSummariser:
    try:
        from everthread.adapters.models.summariser import summariser_by_name  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise _missing_extra() from problem
    return summariser_by_name(name, base_url)


def _adapted(model: object) -> Summariser:
    try:
        from everthread.adapters.models.summariser import summariser_from_model  # noqa: PLC0415 - an extra
    except ImportError as problem:
        raise _missing_extra() from problem
    return summariser_from_model(model)


def _missing_extra() -> MissingExtra:
    return MissingExtra("a summary model needs an extra: pip install 'everthread[langchain]'")
