"""A span for each node, where OpenTelemetry is installed; nothing where it is not.

Spans carry ids, names and counts, never what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any, Protocol


class Span(Protocol):
    """The part of a span that we use."""

    def set_attribute(self, key: str, value: Any) -> object: ...


class _NoSpan:
    def set_attribute(self, key: str, value: Any) -> None:
        """Discard it."""


_NO_SPAN = _NoSpan()


def span(name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[Span]:
    """A span around a part of a turn."""
    return _opener()(name, attributes)


@cache
def _opener() -> Callable[[str, Mapping[str, Any]], AbstractContextManager[Span]]:
    if find_spec("opentelemetry") is None:
        return lambda _name, _attributes: nullcontext(_NO_SPAN)
    from opentelemetry import trace  # noqa: PLC0415 - an extra

    tracer = trace.get_tracer("everthread")

    @contextmanager
    def opened(name: str, attributes: Mapping[str, Any]) -> Iterator[Span]:
        # An error's text may quote a request, so spans get its kind only.
        with tracer.start_as_current_span(
            name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
        ) as current:
            try:
                yield current
            except BaseException as problem:
                current.set_attribute("error.type", type(problem).__name__)
                raise

    return opened
