"""Loading stored data runs nothing: whoever can write to the database cannot make us build what we did not allow."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everthread import Everthread, EverthreadError, Invalid
from everthread.adapters.checkpoints.checkpoint_intents import PutWrites
from everthread.adapters.checkpoints.serde import StrictSerializer
from everthread.core.checkpoints import StoredWrite
from everthread.core.nouns import Ref
from everthread.langgraph import EverthreadSaver
from tests.checkpoints.graphs import build
from tests.checkpoints.test_history import THREAD, ask

ran: list[str] = []


def run(word: str) -> str:
    ran.append(word)
    return word


class Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return run, ("pickle",)


def _extension(code: int, *parts: object) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb([*parts])))


HERE = __name__
ATTACKS = {
    "one argument": ("msgpack", _extension(0, HERE, "run", "ext")),
    "arguments": ("msgpack", _extension(1, HERE, "run", ["ext"])),
    "keywords": ("msgpack", _extension(2, HERE, "run", {"word": "ext"})),
    "method": ("msgpack", _extension(3, "os", "environ", "HOME", "get")),
    "pydantic 1": ("msgpack", _extension(4, HERE, "run", {"word": "ext"})),
    "pydantic 2": ("msgpack", _extension(5, HERE, "run", {"word": "ext"}, "model_validate_json")),
    "inside a set": (
        "msgpack",
        _extension(0, "builtins", "set", [ormsgpack.Ext(0, ormsgpack.packb([HERE, "run", "x"]))]),
    ),
    "inside a snapshot": (
        "msgpack",
        ormsgpack.packb(ormsgpack.Ext(7, ormsgpack.packb([ormsgpack.Ext(1, ormsgpack.packb([HERE, "run", ["x"]]))]))),
    ),
    "pickle": ("pickle", pickle.dumps(Trap())),
    "json envelope": (
        "json",
        json.dumps({"lc": 2, "type": "constructor", "id": [*HERE.split("."), "run"], "kwargs": {"word": "x"}}).encode(),
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_i25_a_planted_value_is_refused_and_runs_nothing(et: Everthread, attack: str) -> None:
    ran.clear()
    saver = EverthreadSaver(et)
    await build(saver).ainvoke(ask("say 1"), THREAD)
    found = await saver.aget_tuple(THREAD)
    assert found is not None
    planted = StoredWrite(0, "task", 0, "", "notes", *ATTACKS[attack], False)
    intent = PutWrites(namespace="", id=found.checkpoint["id"], writes=[planted])
    await et.store.log.write(Ref("local", "t"), intent)
    with pytest.raises(EverthreadError):
        await EverthreadSaver(et).aget_tuple(THREAD)
    assert ran == []


async def test_i25_an_envelope_in_a_message_stays_what_it_is(et: Everthread) -> None:
    envelope = {"lc": 1, "type": "constructor", "id": [HERE, "run"], "kwargs": {"word": "x"}}
    saver = EverthreadSaver(et)
    graph = build(saver)
    said = AIMessage("quiet", id="e", additional_kwargs={"inner": envelope})
    await graph.aupdate_state(THREAD, {"messages": [said]}, as_node="tail")
    again = (await build(EverthreadSaver(et)).aget_state(THREAD)).values["messages"]
    assert again == [said]
    assert ran == []


@dataclass
class Mine:
    word: str


def test_a_type_that_is_not_allowed_is_named_by_the_error() -> None:
    stored = JsonPlusSerializer().dumps_typed({"it": Mine("x")})
    with pytest.raises(Invalid, match=r"test_attacks\.Mine"):
        StrictSerializer().loads_typed(stored)
    assert StrictSerializer([Mine]).loads_typed(stored) == {"it": Mine("x")}
    assert StrictSerializer().with_msgpack_allowlist([Mine]).loads_typed(stored) == {"it": Mine("x")}
