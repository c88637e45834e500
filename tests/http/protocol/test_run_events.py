"""Events come back as they were told, and a history is kept once however many steps repeat it."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from everthread.runs.delta_codec import DeltaCodec

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(0, 2) | st.text(max_size=3)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
EVENTS = st.lists(st.tuples(st.sampled_from(["values", "messages", "values|sub"]), JSON), max_size=12)


def _there_and_back(events: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    encoder, decoder = DeltaCodec(), DeltaCodec()
    kept = [(event, orjson.loads(orjson.dumps(encoder.encode(event, data)))) for event, data in events]
    return [(event, decoder.decode(event, folded)) for event, folded in kept]


@given(EVENTS)
def test_what_is_unfolded_is_byte_for_byte_what_was_folded(events: list[tuple[str, Any]]) -> None:
    assert orjson.dumps(_there_and_back(events)) == orjson.dumps(events)


def test_true_is_not_taken_for_one() -> None:
    events: list[tuple[str, Any]] = [("values", {"done": 1}), ("values", {"done": True})]
    assert orjson.dumps(_there_and_back(events)) == orjson.dumps(events)


def test_what_orjson_refuses_is_told_apart_too() -> None:
    encoder = DeltaCodec()
    kept = [encoder.encode("custom", {"n": 2**70 + more, "text": "half \ud800"}) for more in (0, 0, 1)]
    decoder = DeltaCodec()
    assert [decoder.decode("custom", one)["n"] - 2**70 for one in kept] == [0, 0, 1]


def test_a_history_of_300_messages_is_kept_once_in_50_steps() -> None:
    history = [{"id": str(number), "content": "x" * 1000} for number in range(300)]
    encoder = DeltaCodec()
    sizes = []
    for step in range(50):
        history = [*history, {"id": f"new-{step}", "content": "x" * 1000}]
        sizes.append(len(orjson.dumps(encoder.encode("values", {"messages": history, "step": step}))))
    assert sizes[0] > 300_000
    assert max(sizes[1:]) < 1_300


def test_what_is_known_of_a_message_is_kept_once_for_all_of_its_tokens() -> None:
    encoder = DeltaCodec()
    known = {"langgraph_node": "ask", "tags": ["t"] * 100}
    sizes = [len(orjson.dumps(encoder.encode("messages", [{"content": str(token)}, known]))) for token in range(10)]
    assert sizes[0] > 400
    assert max(sizes[1:]) < 50
