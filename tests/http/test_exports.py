"""Conversations out of the service and in again."""

from __future__ import annotations

import io
import json
import os
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pypdf
import pytest
from fastapi import FastAPI

from everthread import Everthread
from everthread.adapters.models import weights
from everthread.adapters.pdf_export import FONT
from everthread.http.app import create_app
from everthread.settings import Settings, data_folder
from tests.http.conftest import client_of, key_for

API = "/api/v1"
PLACE = f"{API}/conversations/c"


@pytest.fixture
async def kept(alice: httpx.AsyncClient) -> None:
    await alice.post(f"{API}/conversations", json={"id": "c", "title": "去昆明 “trip”"})
    messages = [{"role": "user", "content": "hello #let x = 1 \\ [", "id": "m"}, {"role": "assistant", "content": "ok"}]
    await alice.post(f"{PLACE}/messages", json={"messages": messages})


@pytest.mark.parametrize("form", ["md", "html", "json", "jsonl"])
async def test_a_conversation_is_a_file_with_its_title_as_name(alice: httpx.AsyncClient, kept: None, form: str) -> None:
    answer = await alice.get(f"{PLACE}/export", params={"format": form})
    assert answer.status_code == 200
    assert "hello" in answer.text
    assert "filename*=UTF-8''%E5%8E%BB" in answer.headers["content-disposition"]
    assert ("content-security-policy" in answer.headers) is (form == "html")


async def test_i11_an_archive_goes_out_and_in_and_out_the_same(
    app: FastAPI, et: Everthread, alice: httpx.AsyncClient, kept: None, tmp_path: Path
) -> None:
    whole = (await alice.get(f"{PLACE}/export", params={"format": "archive"})).content
    async with client_of(app, await key_for(et, "carol")) as carol:
        answer = await carol.post(f"{API}/import", content=whole, headers={"Content-Type": "application/zstd"})
        assert (answer.status_code, answer.json()["imported"]) == (200, ["c"])
        again = await carol.post(f"{API}/import", content=whole, headers={"Content-Type": "application/zstd"})
        assert again.json()["skipped"] == ["c"]
        assert (await carol.get(f"{PLACE}/messages/m")).json()["text"].startswith("hello")
        broken = await carol.post(f"{API}/import", content=whole[:-9], headers={"Content-Type": "application/zstd"})
        assert broken.status_code == 422


async def test_an_export_of_another_program_is_recognised_and_comes_in_once(alice: httpx.AsyncClient) -> None:
    chat = {"id": "s", "conversations": [{"from": "human", "value": "Unheard of"}, {"from": "gpt", "value": "Yes"}]}
    body = json.dumps([chat, {"conversations": 1}]).encode()
    first = (await alice.post(f"{API}/import", content=body)).json()
    assert (first["imported"], first["messages"], len(first["problems"])) == (["sharegpt:s"], 2, 1)
    again = (await alice.post(f"{API}/import", content=body)).json()
    assert (again["imported"], again["messages"], again["known"]) == ([], 0, 2)
    found = (await alice.get(f"{API}/search", params={"q": "unheard"})).json()
    assert [hit["conversation_id"] for hit in found["items"]] == ["sharegpt:s"]
    unknown = await alice.post(f"{API}/import", content=b"nothing that anybody knows")
    assert unknown.status_code == 422


@pytest.mark.parametrize(
    "kind", ["application/zip", "application/json", "application/x-ndjson", "application/octet-stream", "form"]
)
async def test_a_file_to_import_comes_in_as_any_type_and_in_a_form(alice: httpx.AsyncClient, kind: str) -> None:
    chats = [{"id": "s", "conversations": [{"from": "human", "value": "Unheard of"}]}]
    packed = BytesIO()
    with ZipFile(packed, "w") as file:
        file.writestr("chats.json", json.dumps(chats))
    if kind == "form":
        answer = await alice.post(f"{API}/import", files={"file": ("x.zip", packed.getvalue())})
        two = [("file", ("a", b"[]")), ("file", ("b", b"[]"))]
        for wrong in ({"files": two}, {"data": {"file": "x"}, "files": {}}, {"files": [("x", ("a", b""))]}):
            assert (await alice.post(f"{API}/import", **wrong)).status_code == 422
    else:
        body = packed.getvalue() if kind.endswith(("zip", "octet-stream")) else json.dumps(chats).encode()
        answer = await alice.post(f"{API}/import", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 200, answer.text
    assert answer.json()["messages"] == 1


@pytest.fixture
async def bare(et: Everthread, tmp_path: Path) -> httpx.AsyncClient:
    """A server without the font."""
    app = create_app(et, Settings(database="memory://", models_dir=tmp_path))
    return client_of(app, await key_for(et, "alice"))


async def test_a_pdf_obeys_nothing_in_the_text(
    alice: httpx.AsyncClient, bare: httpx.AsyncClient, tmp_path: Path
) -> None:
    await alice.post(f"{API}/conversations", json={"id": "c", "title": "plain"})
    messages = [{"role": "user", "content": "hello #let x = 1 \\ ["}]
    await alice.post(f"{PLACE}/messages", json={"messages": messages})
    made = tmp_path / "made.pdf"
    made.write_bytes((await bare.get(f"{PLACE}/export", params={"format": "pdf"})).content)
    assert "hello #let x = 1 \\ [" in pypdf.PdfReader(made).pages[0].extract_text()


async def test_a_pdf_that_could_only_show_boxes_is_refused(kept: None, bare: httpx.AsyncClient) -> None:
    answer = await bare.get(f"{PLACE}/export", params={"format": "pdf"})
    if answer.status_code == 200:
        pytest.skip("this machine has the font of its own")
    assert (answer.status_code, answer.json()["code"]) == (501, "missing_extra")
    assert FONT in answer.json()["detail"]


async def test_chinese_is_set_in_a_pdf(et: Everthread, kept: None, tmp_path: Path) -> None:
    models = Path(os.environ.get("EVERTHREAD_MODELS_DIR") or data_folder() / "models")
    if weights.state_of(models, weights.weights_by_name(FONT)) is not weights.WeightsState.PRESENT:
        pytest.skip(f"needs the font: everthread models fetch {FONT}")
    app = create_app(et, Settings(database="memory://", models_dir=models))
    made = tmp_path / "made.pdf"
    async with client_of(app, await key_for(et, "alice")) as client:
        made.write_bytes((await client.get(f"{PLACE}/export", params={"format": "pdf"})).content)
    page: Any = pypdf.PdfReader(made).pages[0]
    assert "去昆明" in page.extract_text()
    fonts = [str(font.get_object()["/BaseFont"]) for font in page["/Resources"]["/Font"].values()]
    assert any("NotoSansCJK" in font for font in fonts)


_THOUGHT = [{"type": "thinking", "thinking": "pondering"}, {"type": "text", "text": "Let me look."}]
_CALL = {"id": "k", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Kunming"}'}}
TOLD = (
    {"role": "user", "content": "How is the weather?"},
    {"role": "assistant", "content": _THOUGHT, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "k", "content": "nineteen degrees"},
    {"role": "assistant", "content": "It is mild."},
)


@pytest.fixture
async def told(alice: httpx.AsyncClient) -> None:
    await alice.post(f"{API}/conversations", json={"id": "c"})
    await alice.post(f"{PLACE}/messages", json={"messages": TOLD})


@pytest.mark.parametrize("form", ["md", "html", "pdf"])
async def test_thinking_and_tools_are_shown_as_asked_and_what_was_said_always(
    alice: httpx.AsyncClient, told: None, form: str
) -> None:
    for thinking, tools in product((True, False), repeat=2):
        answer = await alice.get(f"{PLACE}/export", params={"format": form, "thinking": thinking, "tools": tools})
        assert answer.status_code == 200
        text = _printed_text(answer.content) if form == "pdf" else answer.text
        assert "Let me look." in text
        assert "It is mild." in text
        assert ("pondering" in text) is thinking
        assert ("weather" in text.replace("the weather?", ""), "nineteen degrees" in text) == (tools, tools)
        assert ("Tool" in text) is tools, "a message of which nothing is left has no heading either"


def _printed_text(pdf: bytes) -> str:
    return " ".join(" ".join(page.extract_text().split()) for page in pypdf.PdfReader(io.BytesIO(pdf)).pages)


async def test_what_programs_read_is_always_whole(alice: httpx.AsyncClient, told: None) -> None:
    for form, left in product(("json", "jsonl", "archive"), ("thinking", "tools")):
        answer = await alice.get(f"{PLACE}/export", params={"format": form, left: False})
        assert answer.status_code == 422
        assert f"{left}: {form} cannot leave parts out" in answer.json()["detail"]


@pytest.mark.parametrize("form", ["md", "html", "json", "jsonl"])
async def test_a_branch_that_there_is_not_is_404_and_no_file(alice: httpx.AsyncClient, form: str) -> None:
    await alice.post(f"{API}/conversations", json={"id": "c"})
    assert (await alice.get(f"{PLACE}/export", params={"format": form, "branch": "0"})).status_code == 404
