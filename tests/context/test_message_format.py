"""Messages of any dialect become OpenAI's, with the calls and results they carry."""

from __future__ import annotations

from everthread.context import Message, find_violations, repair
from everthread.context.message_format import to_openai
from tests.context.histories import forall, histories


@forall(histories())
def test_every_history_is_valid_in_this_shape_after_repair(history: list[Message]) -> None:
    written = [one for message in history for one in to_openai(message)]
    assert all({"role", "content"} <= one.keys() for one in written)
    assert find_violations(repair(written)) == []


def test_results_in_blocks_become_tool_messages_before_the_rest() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "found"}
    said = {"type": "text", "text": "thanks"}
    assert to_openai({"role": "user", "content": [said, block]}) == [
        {"role": "tool", "tool_call_id": "a", "content": "found"},
        {"role": "user", "content": [said]},
    ]


def test_calls_in_blocks_become_tool_calls() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    (message,) = to_openai({"role": "assistant", "content": [block]})
    assert message["content"] is None
    assert message["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    ]


def test_a_speaker_whose_name_the_api_does_not_take_is_named_in_the_text() -> None:
    assert to_openai({"role": "user", "content": "hi", "name": "ada"}) == [
        {"role": "user", "content": "hi", "name": "ada"}
    ]
    assert to_openai({"role": "user", "content": "hi", "name": "Wang Wei"}) == [
        {"role": "user", "content": "Wang Wei: hi"}
    ]


def test_fields_of_other_systems_are_left_out() -> None:
    (message,) = to_openai({"role": "user", "content": "hi", "id": "m1", "created_at": "2024-05-01", "x": 1})
    assert message == {"role": "user", "content": "hi"}
