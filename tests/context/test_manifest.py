"""A request's hash is that of its JSON, and takes no room of its own however long a text in it is."""

from __future__ import annotations

import tracemalloc
from hashlib import sha256
from typing import Any

import orjson
import pytest

from everthread.context import Budget, Message
from everthread.context.assemble import assemble
from everthread.context.ingredients import Ingredients, LogMessage
from everthread.context.manifest import messages_digest
from tests.context.histories import forall, histories


def of_json(messages: list[dict[str, Any]]) -> str:
    return sha256(orjson.dumps(messages, option=orjson.OPT_SORT_KEYS)).hexdigest()


@forall(histories())
def test_the_hash_is_that_of_one_json_list(history: list[Message]) -> None:
    window = [LogMessage(seq=seq, entry_seq=seq, payload=one, tokens=9) for seq, one in enumerate(history, 1)]
    messages = assemble(Ingredients(window=window), Budget()).messages
    assert messages_digest(messages) == of_json(messages)


@pytest.mark.parametrize("text", ["line\n", 'said "so"\\', "会议在三点", "naïve 😀\x00\x7f"])
@pytest.mark.parametrize("length", [2_047, 2_048, 2_049, 10_000])
def test_the_hash_of_a_long_text_is_that_of_its_json(text: str, length: int) -> None:
    long = (text * length)[:length]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": long, "name": "Ann"},
        {"tool_calls": [{"b": 1, "a": long}], "content": long},
    ]
    assert messages_digest(messages) == of_json(messages)


def test_a_long_text_is_hashed_in_little_room() -> None:
    messages = [{"role": "user", "content": "What was said on Tuesday? " * 40_000}]
    tracemalloc.start()
    messages_digest(messages)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
