"""Requests as LangChain has them: built past its validation, they must be what it would build."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import convert_to_messages

from everthread.turn import plain_messages
from everthread.turn.plain_messages import to_langchain

_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Malmo"}'}}
_REQUEST: list[dict[str, Any]] = [
    {"role": "system", "content": "You plan trips."},
    {"role": "user", "content": "Where were we?"},
    {"role": "user", "content": "Said under a name.", "name": "Tomas"},
    {"role": "user", "content": [{"type": "text", "text": "In blocks."}]},
    {"role": "assistant", "content": "In Malmo."},
    {"role": "assistant", "content": "", "tool_calls": [_CALL]},
    {"role": "tool", "content": "Rain.", "tool_call_id": "c1"},
    {"role": "assistant", "content": ""},
]


@pytest.mark.parametrize("enabled", [True, False])
def test_every_message_is_what_langchain_would_make_of_it(enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_messages, "ENABLED", enabled)
    made, expected = to_langchain(_REQUEST), convert_to_messages(_REQUEST)
    assert made == expected
    assert [type(message) for message in made] == [type(message) for message in expected]
    assert [message.model_dump_json() for message in made] == [message.model_dump_json() for message in expected]
    assert [message.model_fields_set for message in made] == [message.model_fields_set for message in expected]


def test_a_message_that_is_changed_changes_no_other() -> None:
    first = to_langchain(_REQUEST)
    for message in first:
        message.content = "changed"
        message.additional_kwargs["cache_control"] = {"type": "ephemeral"}
        message.response_metadata["seen"] = True
        message.id = "x"
    first[4].tool_calls.append({"name": "other", "args": {}, "id": "c2"})  # type: ignore[attr-defined]
    assert to_langchain(_REQUEST) == convert_to_messages(_REQUEST)
