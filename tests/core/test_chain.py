"""The chain: every field of an entry, every byte and every entry before it are in its hash."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.core import chain
from everthread.core.entries import Entry

FIELDS: dict[str, Any] = {
    "seq": 3,
    "id": "m3",
    "kind": 0,
    "revises": 2,
    "change_kind": 0,
    "parent_seq": 1,
    "role": "user",
    "created_at": 1_700_000_000_000_000,
    "commitment": b"c" * 32,
    "revision": 1,
    "origin": 0,
    "flags": 0,
    "version": 2,
}
OTHERS: dict[str, list[Any]] = {
    "seq": [1, 30],
    "id": ["m", "m33", ""],
    "kind": [1, 2],
    "revises": [None, 0, 3],
    "change_kind": [None, 1],
    "parent_seq": [None, 0, 2],
    "role": ["", "User", "user "],
    "created_at": [0, -1, FIELDS["created_at"] + 1],
    "commitment": [b"", b"c" * 31, b"d" * 32],
    "revision": [2],
    "origin": [1, 4],
    "flags": [8, 9],
    "version": [1],
}
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@pytest.mark.parametrize("flags", [1, 2, 3, 4, 16])
def test_flags_that_marks_set_are_no_part_of_the_link(flags: int) -> None:
    assert chain.link(b"before", **{**FIELDS, "flags": flags}) == chain.link(b"before", **FIELDS)


def test_an_entry_of_the_first_version_keeps_its_link() -> None:
    known = {name: FIELDS[name] for name in ("seq", "id", "kind", "revises", "change_kind", "parent_seq", "role")}
    first = chain.link(b"before", **known, created_at=5, commitment=b"c" * 32, revision=7, origin=3, version=1)
    fields = "3\0m3\x000\x002\x000\x001\0user\x005\0"
    assert first == sha256(b"before" + fields.encode() + b"c" * 32).digest()


def entry(**fields: Any) -> Entry:
    blank = dict.fromkeys(Entry._fields)
    known = {name: value for name, value in FIELDS.items() if name not in ("commitment", "version")}
    return Entry(
        **{
            **blank,
            "revision": 1,
            "branch": 0,
            "tokens": 0,
            "flags": 0,
            "origin": 0,
            "chain": b"",
            "chain_version": 2,
            **known,
            **fields,
        }
    )


@pytest.mark.parametrize(("name", "other"), [(name, value) for name, values in OTHERS.items() for value in values])
def test_every_field_changes_the_link(name: str, other: Any) -> None:
    assert chain.link(b"before", **{**FIELDS, name: other}) != chain.link(b"before", **FIELDS)


def test_what_came_before_changes_the_link() -> None:
    assert chain.link(b"before", **FIELDS) != chain.link(b"other", **FIELDS)


@given(NAMES, NAMES, NAMES, NAMES)
def test_no_text_can_be_shifted_from_one_field_to_another(id: str, role: str, id2: str, role2: str) -> None:
    same = chain.link(b"", **{**FIELDS, "id": id, "role": role}) == chain.link(
        b"", **{**FIELDS, "id": id2, "role": role2}
    )
    assert same == ((id, role) == (id2, role2))


@given(NAMES, NAMES, NAMES, NAMES)
def test_a_chain_begins_at_its_conversation(owner: str, id: str, owner2: str, id2: str) -> None:
    same = chain.genesis(owner, id) == chain.genesis(owner2, id2)
    assert same == ((owner, id) == (owner2, id2))


@given(
    st.binary(min_size=16, max_size=16),
    st.binary(max_size=50),
    st.binary(min_size=16, max_size=16),
    st.binary(max_size=50),
)
def test_a_commitment_is_to_salt_and_bytes(salt: bytes, raw: bytes, salt2: bytes, raw2: bytes) -> None:
    same = chain.commit(salt, raw) == chain.commit(salt2, raw2)
    assert same == ((salt, raw) == (salt2, raw2))


def test_relinking_a_stored_entry_gives_the_same_link() -> None:
    stored = entry(salt=b"s" * 16, raw=b"raw")
    commitment = chain.commitment_of(stored)
    assert commitment == chain.commit(b"s" * 16, b"raw")
    assert chain.relink(b"before", stored, commitment) == chain.link(b"before", **{**FIELDS, "commitment": commitment})


def test_an_erased_entry_keeps_its_link() -> None:
    stored = entry(salt=b"s" * 16, raw=b"raw")
    commitment = chain.commitment_of(stored)
    erased = stored._replace(salt=None, raw=None, commitment=commitment)
    assert chain.commitment_of(erased) == commitment
    assert chain.commitment_of(stored._replace(raw=None)) is None
