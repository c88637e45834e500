"""No text takes more than its length: every pattern and every function that reads a text, on texts made to be slow.

The bound is in seconds of CPU, far above what a linear one takes (some milliseconds for 20 KB) and below what a
quadratic one does, whose steps are 2·10⁸. The long version reads 1 MB.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

import pytest

import everthread

SIZE = 20_000
SECONDS = 0.75
LONG_SIZE = 1_000_000
LONG_SECONDS = 60.0

BOUNDED = {
    "everthread.text.fact_rules_names._BEFORE_START": "is given the last 12 characters before a name",
    "everthread.history.export._CODE_SPAN": "is given lines of at most 2,000 characters",
}
"""Patterns that never meet a long text, and why."""
AT_THE_BEGINNING = {
    "everthread.compaction.condense._IS_QUOTATION",
    "everthread.compaction.scored_sentences._INTRODUCES_SPEAKER",
    "everthread.compaction.scored_sentences._SIGNATURE",
    "everthread.context.content_blocks._SERVER_TOOLS",
    "everthread.imports.session._NOT_TYPED",
    "everthread.imports.codex._INJECTED",
    "everthread.recall.links._IDENTIFIER",
    "everthread.recall.memory_extraction._LINE",
    "everthread.recall.memory_rules._BEGINS",
    "everthread.recall.memory_rules._GOES_ON",
    "everthread.recall.query._AGENT_NOUN",
    "everthread.text.cues._STALLING",
}
"""Patterns that are only matched from the beginning of a text on, or with all of it."""

PIECES = (
    " ", "\n", "\t", "a", "A", "1", "-", "*", "_", "`", "#", "@", ".", ",", "'", '"', "\\", "/", ":", "[", "(", "{",
    "<", "|", "=", "我", "、", "。", "A ", "A&", "A'", "a.", "a@", "1,", "1.", "a_", "a-", "-a", "a/", "/a", "\n ",
    " \n", "# ", "* ", "- ", "> ", "[#1", "[#1] ", "![", "](", "://a:a", "://a:a@", "a:", "A: ", '"\\', "\\\"",
    "```", "~~~", "``` ", "**a", "**a ", "__a", "__a ", "BEGIN RSA PRIVATE KEY", "-----END PRIVATE KEY",
    ":_authToken=", "//a/", "eyJ", "eyJa.", "sk-a", "xoxb-1-", "aws key ",
    "password: ", "api_key=a1", "access_token=", "sk-ant-api03-",
    "Bearer ", "the ", "I am ",
    "I ", "my ", "1 day ", "$1", "2020-01-01 ", "第一", "在上海", "王说", "。 ", "Error: ", "a\x00", "\ud800", "é",
    "1-us", "T3BlbkFJ", ":AA", "AKIA", "hello, ", "< ", "a:/a:",
)  # fmt: skip
STARTS = ("# ", "- ", "**", "```", "[", '"', "<", "I am ", "1. ")


def hostile(size: int) -> Iterator[tuple[str, str]]:
    """Texts of about a size, each with what it is made of."""
    for piece in PIECES:
        yield f"{piece!r}… 'x@'", piece * (size // len(piece)) + "x@"
    for start in STARTS:
        for piece in (" ", "a"):
            yield f"{start!r} {piece!r}… 'x'", start + piece * size + "x"


@contextmanager
def at_most(seconds: float, what: str) -> Iterator[None]:
    """Fail when the block takes more CPU than that; a pattern looks for signals while it matches."""

    def too_slow(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"more than {seconds} s of CPU: {what}")

    before = signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(everthread.__path__, "everthread."):
        if found.name.rpartition(".")[2] in ("__main__", "jail", "pdf_process", "plot_renderer"):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError:  # an extra that is not installed
            continue


def patterns_in(name: str, value: object, depth: int = 0) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield name, value.__self__  # type: ignore[attr-defined]
    elif depth < 3 and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from patterns_in(f"{name}[{key!r}]", inner, depth + 1)
    elif depth < 3 and isinstance(value, tuple | list | frozenset):
        for index, inner in enumerate(value):
            yield from patterns_in(f"{name}[{index}]", inner, depth + 1)
    elif depth < 3 and hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for field in value.__dataclass_fields__:
            yield from patterns_in(f"{name}.{field}", getattr(value, field, None), depth + 1)


def patterns() -> dict[str, re.Pattern[Any]]:
    """Every compiled pattern that a module holds, by its name."""
    found: dict[str, re.Pattern[Any]] = {}
    for module in modules():
        for name, value in vars(module).items():
            for place, pattern in patterns_in(f"{module.__name__}.{name}", value):
                if pattern not in found.values():
                    found[place] = pattern
    return found


TEXT_ROOMS = (
    "everthread.text.", "everthread.history.", "everthread.recall.", "everthread.compaction.", "everthread.context.",
    "everthread.turn.", "everthread.settings",
)  # fmt: skip


def text_functions() -> dict[str, Callable[[str], object]]:
    """Every function of these rooms that needs one text and nothing else, by its name."""
    found: dict[str, Callable[[str], object]] = {}
    for module in modules():
        for name, value in vars(module).items():
            if (
                inspect.isfunction(value)
                and value.__module__ == module.__name__
                and module.__name__.startswith(TEXT_ROOMS)
                and _takes_a_text(value)
            ):
                found[f"{module.__name__}.{name}"] = value
    return found


def _takes_a_text(function: Callable[..., object]) -> bool:
    needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    return (
        not inspect.iscoroutinefunction(function)
        and len(needed) == 1
        and needed[0].annotation == "str"
        and needed[0].name
        in ("text", "line", "question", "said", "message", "answer", "sentence", "paragraph", "title")
    )


def read(function: Callable[[str], object], text: str) -> None:
    try:
        found = function(text)
        if isinstance(found, Iterator):
            for _ in found:
                pass
    except (ValueError, everthread.EverthreadError):  # refused, which is as good
        pass


PATTERNS = patterns()
FUNCTIONS = text_functions()


def test_there_are_patterns_and_functions_to_try() -> None:
    assert len(PATTERNS) > 100
    assert len(FUNCTIONS) > 20
    assert BOUNDED.keys() | AT_THE_BEGINNING <= PATTERNS.keys()


@pytest.mark.parametrize("name", [name for name in PATTERNS if name not in BOUNDED])
def test_no_pattern_takes_more_than_the_length_of_a_text(name: str) -> None:
    pattern = PATTERNS[name]
    for what, text in hostile(SIZE):
        given = text.encode("utf-8", "surrogatepass") if isinstance(pattern.pattern, bytes) else text
        with at_most(SECONDS, f"{pattern.pattern!r} on {what}"):
            if name in AT_THE_BEGINNING:
                pattern.match(given)
                continue
            for _ in pattern.finditer(given):
                pass


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_takes_more_than_the_length_of_a_text(name: str) -> None:
    for what, text in hostile(SIZE):
        with at_most(4 * SECONDS, f"{name} on {what}"):
            read(FUNCTIONS[name], text)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_megabyte_takes_no_function_a_minute(name: str) -> None:
    for what, text in hostile(LONG_SIZE):
        with at_most(LONG_SECONDS, f"{name} on {what}"):
            read(FUNCTIONS[name], text)
