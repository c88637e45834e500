"""Stored bytes are read as `json` reads them, whatever they are."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everthread.core.entries import Entry
from everthread.core.errors import StoreDamaged
from everthread.core.nouns import Message
from everthread.history.payload_json import decode_json, payload_of

NUMBERS = st.one_of(st.integers(), st.floats(), st.integers(min_value=10**14, max_value=10**40))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text()),
    lambda some: st.one_of(st.lists(some, max_size=3), st.dictionaries(st.text(max_size=3), some, max_size=3)),
    max_leaves=8,
)


def entry(raw: bytes | None) -> Entry:
    return Entry(1, "m", 0, "user", None, None, 0, None, 0, 1, 0, 0, None, b"", raw, None, None, 0, None)


@given(VALUES)
@example({"args": {"order": 9007199254740993123}})
@example(-0.0)
@example("\ud800")
def test_it_is_to_the_last_digit_what_json_reads(value: object) -> None:
    raw = json.dumps(value).encode()
    assert repr(decode_json(raw)) == repr(json.loads(raw))


@pytest.mark.parametrize(
    "raw", [b"", None, b'{"role": "user", "content": "caf\\u00e9"}', b'\xef\xbb\xbf{"content": ""}']
)
def test_a_payload_is_what_a_message_has(raw: bytes | None) -> None:
    if raw is None:
        with pytest.raises(StoreDamaged, match="is missing"):
            payload_of(entry(raw))
    else:
        assert payload_of(entry(raw)) == Message(entry(raw)).payload


def test_a_damaged_payload_is_told_as_a_message_tells_it() -> None:
    with pytest.raises(StoreDamaged, match="run verify"):
        payload_of(entry(b'{"content": "cut o'))
