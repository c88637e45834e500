"""The `store` of a `langgraph.json`: documents are found by meaning and kept for as long as it says, by clients and by
graphs; what is wrong with it is said when the service starts.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from everthread.core.errors import Invalid
from everthread.http.protocol.document_options import document_options
from tests.http.protocol.rig import serving

SOURCE = """
from typing import Any, TypedDict
from langchain_core.embeddings import Embeddings
from langgraph.graph import START, StateGraph

def letters(text):
    return [float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]

def embed(texts): return [letters(text) for text in texts]
async def embed_async(texts): return embed(texts)
class Letters(Embeddings):
    def embed_documents(self, texts): return embed(texts)
    def embed_query(self, text): return letters(text)
made, number = Letters(), 7

class State(TypedDict, total=False):
    found: Any

async def look(state, *, store):
    await store.aput(("m",), "by a node", {"text": "zzz"})
    return {"found": [item.key for item in await store.asearch(("m",), query="zz", limit=2)]}

graph = StateGraph(State).add_node(look).add_edge(START, "look").compile()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(SOURCE)
    return tmp_path


def _config(folder: Path, **store: Any) -> Path:
    (folder / "langgraph.json").write_text(json.dumps({"graphs": {"agent": "./agent.py:graph"}, "store": store}))
    return folder / "langgraph.json"


def _index(name: str = "embed", **more: Any) -> dict[str, Any]:
    return {"embed": f"./agent.py:{name}", "dims": 26, **more}


@pytest.mark.parametrize("name", ["embed", "embed_async", "made"])
async def test_documents_are_found_by_meaning_by_clients_and_graphs(folder: Path, name: str, url: str) -> None:
    config = _config(folder, index=_index(name, fields=["text"]))
    async with serving(url, config) as server, server.sdk() as client:
        for key, text in (("tea", "green tea"), ("zoo", "a zebra in a zoo")):
            await client.store.put_item(("m",), key, {"text": text, "other": "zzzz"})
        await client.store.put_item(("m",), "unfound", {"text": "zzzz"}, index=False)
        found = (await client.store.search_items(("m",), query="zoo zebra"))["items"]
        assert [(item["key"], bool(item["score"])) for item in found] == [
            ("zoo", True),
            ("tea", True),
            ("unfound", False),
        ]
        run: Any = await client.runs.wait(None, "agent", input={})
        assert run["found"] == ["by a node", "zoo"]


async def test_documents_are_kept_for_as_long_as_the_file_says(folder: Path) -> None:
    config = _config(folder, ttl={"default_ttl": 0.01, "refresh_on_read": False, "sweep_interval_minutes": 60})
    async with serving("memory://", config) as server, server.sdk() as client:
        await client.store.put_item(("m",), "kept", {}, ttl=60)
        await client.store.put_item(("m",), "short", {})
        while len((await client.store.search_items(("m",)))["items"]) == 2:  # noqa: ASYNC110 - what expires tells nobody
            await asyncio.sleep(0.1)
        assert [item["key"] for item in (await client.store.search_items(("m",)))["items"]] == ["kept"]


@pytest.mark.parametrize(
    ("store", "field"),
    [
        ({"index": {"embed": "./none.py:embed", "dims": 26}}, "store.index.embed"),
        ({"index": _index("nothing")}, "store.index.embed"),
        ({"index": _index("number")}, "store.index.embed"),
        ({"index": {"embed": "no-such-provider:model", "dims": 26}}, "store.index.embed"),
        ({"index": {"embed": "./agent.py:embed"}}, "store.index.dims"),
        ({"index": _index(field="text")}, "store.index.field"),
        ({"ttl": {"default_ttl": 0}}, "store.ttl.default_ttl"),
    ],
)
def test_what_is_wrong_is_said_by_its_field(folder: Path, store: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        document_options(_config(folder, **store))
    assert refused.value.field == field
