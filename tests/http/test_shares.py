"""A share link lets anybody read one conversation, and nothing else, until it is revoked."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from html.parser import HTMLParser

import httpx
import pytest

import everthread
from everthread.http.app import create_app
from everthread.settings import Settings

API = "/api/v1"
SAID = [
    {"role": "system", "content": "the secret prompt"},
    {"role": "user", "content": "Where to? <b>去昆明</b>"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find_train", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "name": "find_train", "content": "K1442"},
    {"role": "assistant", "content": "By slow train.", "reasoning_content": "They dislike coaches."},
]


@pytest.fixture
async def et() -> AsyncIterator[everthread.Everthread]:
    async with everthread.open("memory://") as opened:
        yield opened


@pytest.fixture
async def owner(et: everthread.Everthread) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(et, Settings(database="memory://", model="scripted:echo"), needs_key=False)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture
async def stranger(et: everthread.Everthread) -> AsyncIterator[httpx.AsyncClient]:
    """Without a key, at a server that needs one."""
    app = create_app(et, Settings(database="memory://", model="scripted:echo"), needs_key=True)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        yield client


async def shared(owner: httpx.AsyncClient, id: str = "trip", **wanted: bool) -> str:
    await owner.post(f"{API}/conversations", json={"id": id, "title": "Trip", "metadata": {"pinned": True}})
    await owner.post(f"{API}/conversations/{id}/messages", json={"messages": SAID})
    made = await owner.post(f"{API}/conversations/{id}/share", json=wanted)
    assert made.status_code == 201
    path: str = made.json()["path"]
    return path


async def test_whoever_has_the_link_reads_what_was_said_and_no_more(
    owner: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    path = await shared(owner)
    read = await stranger.get(path)
    assert read.status_code == 200
    assert "By slow train." in read.text
    assert "&lt;b&gt;去昆明&lt;/b&gt;" in read.text
    for hidden in ("secret prompt", "K1442", "find_train", "dislike coaches"):
        assert hidden not in read.text
    assert "default-src 'none'" in read.headers["content-security-policy"]
    assert read.headers["cache-control"] == "no-store"
    assert (await stranger.get(f"{API}/conversations/trip")).status_code == 401
    assert (await stranger.post(path)).status_code in (401, 405)
    kept = (await owner.get(f"{API}/conversations/trip")).json()["metadata"]
    assert kept["pinned"] is True
    assert path.rpartition(".")[2] not in str(kept)


async def test_tools_and_thinking_are_shown_when_wanted(owner: httpx.AsyncClient, stranger: httpx.AsyncClient) -> None:
    text = (await stranger.get(await shared(owner, tools=True, thinking=True))).text
    assert "K1442" in text
    assert "dislike coaches" in text
    assert "secret prompt" not in text


async def test_a_revoked_a_replaced_and_a_wrong_link_lead_nowhere(
    owner: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    first = await shared(owner)
    second = await shared(owner)
    where, _, secret = second.rpartition(".")
    other = await shared(owner, "other")
    mixed = f"{other.rpartition('.')[0]}.{secret}"
    for path in (first, where, f"{where}.", f"{second}x", mixed, "/shared/x", "/shared/W10.x", "/shared/bnVsbA.x"):
        assert (await stranger.get(path)).status_code == 404, path
    assert (await stranger.get(second)).status_code == 200
    assert (await owner.delete(f"{API}/conversations/trip/share")).json() == {"revoked": True}
    assert (await stranger.get(second)).status_code == 404
    assert (await owner.delete(f"{API}/conversations/trip/share")).json() == {"revoked": False}


@pytest.mark.parametrize(
    ("languages", "language", "told"),
    [
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh", "链接无效或已被撤销。"),
        ("fr, en-GB", "en", "This link is invalid or was revoked."),
        ("", "en", "This link is invalid or was revoked."),
    ],
)
async def test_a_browser_gets_a_page_where_a_link_leads_nowhere(
    owner: httpx.AsyncClient, stranger: httpx.AsyncClient, languages: str, language: str, told: str
) -> None:
    path = await shared(owner)
    await owner.delete(f"{API}/conversations/trip/share")
    browsing = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Language": languages}
    revoked, mistyped = [await stranger.get(at, headers=browsing) for at in (path, "/shared/x")]
    assert revoked.status_code == mistyped.status_code == 404
    assert revoked.text == mistyped.text
    assert told in revoked.text
    assert f'lang="{language}"' in revoked.text
    assert revoked.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in revoked.headers["content-security-policy"]
    assert (await stranger.get(path)).json()["code"] == "not_found"


async def test_what_is_deleted_or_erased_is_no_longer_shared(
    owner: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    path = await shared(owner)
    await owner.delete(f"{API}/conversations/trip")
    assert (await stranger.get(path)).status_code == 404
    await owner.post(f"{API}/conversations/trip/restore")
    assert (await stranger.get(path)).status_code == 200
    await owner.post(f"{API}/conversations/trip/erase", json={"confirm": "trip"})
    assert (await stranger.get(path)).status_code == 404


async def test_no_copy_and_no_archive_opens_with_a_link_that_somebody_else_knows(
    et: everthread.Everthread, owner: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    """An archive's author may have put the hash of a link of his own into it, for a conversation that goes on here."""
    path = await shared(owner)
    conv = await et.conversations.get("trip")
    known = conv.metadata["share"]
    copied = await conv.copy(id="copy")
    copied_thread = (await owner.post("/threads/trip/copy")).json()["thread_id"]
    planted = await et.conversations.create(id="planted", metadata={"share": known})
    archive = b"".join([piece async for piece in et.export_archive(conversations=["trip", "planted"])])
    async with everthread.open("memory://") as other:
        await other.import_archive(_one_piece(archive))
        assert [(await other.conversations.get(id)).metadata for id in ("trip", "planted")] == [{"pinned": True}, {}]
    assert copied.metadata == {"pinned": True}
    secret = path.rpartition(".")[2]
    for id in ("copy", copied_thread, planted.id):
        where = urlsafe_b64encode(json.dumps(["local", id]).encode()).decode().rstrip("=")
        assert (await stranger.get(f"/shared/{where}.{secret}")).status_code == 404, id
    assert (await stranger.get(path)).status_code == 200


async def _one_piece(archive: bytes) -> AsyncIterator[bytes]:
    yield archive


async def test_the_secret_of_a_link_is_not_kept_for_a_repeated_request(
    et: everthread.Everthread, owner: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    await shared(owner)
    paths = []
    for _ in range(2):
        made = await owner.post(f"{API}/conversations/trip/share", json={}, headers={"Idempotency-Key": "once"})
        paths.append(made.json()["path"])
    assert paths[0] != paths[1]
    assert [(await stranger.get(path)).status_code for path in paths] == [404, 200]


HOSTILE = [
    "<script>fetch('//evil.example')</script>", "![x](http://evil.example/x.png)", "[x](javascript:alert(1))",
    "</style><img src=x onerror=alert(1)>", "<svg/onload=alert(1)>", '"><base href=//evil.example>',
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
]  # fmt: skip


async def test_nothing_of_a_shared_page_runs_or_calls_elsewhere(
    owner: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    title = " ".join(HOSTILE)
    await owner.post(f"{API}/conversations", json={"id": "x", "title": title})
    said = [{"role": role, "content": text, "name": "<b>n"} for text in HOSTILE for role in ("user", "assistant")]
    result = {"role": "tool", "tool_call_id": "1", "name": HOSTILE[0], "content": title}
    assert (await owner.post(f"{API}/conversations/x/messages", json={"messages": [*said, result]})).status_code == 201
    path = (await owner.post(f"{API}/conversations/x/share", json={"tools": True, "thinking": True})).json()["path"]
    found = _Tags()
    found.feed((await stranger.get(path)).text)
    assert found.names.isdisjoint({"script", "img", "svg", "base", "iframe", "object", "form", "link"})
    assert not [value for value in found.addresses if "evil" in value or value.startswith("javascript")]
    assert found.refreshes == 0


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: list[str] = []
        self.refreshes = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        self.refreshes += ("http-equiv", "refresh") in attrs


async def test_what_is_off_the_record_is_not_shared(owner: httpx.AsyncClient) -> None:
    made = await owner.post(f"{API}/conversations", json={"off_record": True})
    refused = await owner.post(f"{API}/conversations/{made.json()['id']}/share", json={})
    assert refused.status_code == 422


async def test_the_secret_of_a_link_is_in_no_log(
    owner: httpx.AsyncClient, stranger: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    path = await shared(owner)
    with caplog.at_level("DEBUG", logger="everthread"):
        await stranger.get(path)
    assert caplog.records
    assert all(path.rpartition(".")[2] not in str(vars(record)) for record in caplog.records)


@pytest.mark.parametrize(
    ("language", "word"), [("en-GB,en", "Numbers are missing where"), ("zh-CN,zh;q=0.9", "编号不连续")]
)
async def test_a_shared_page_says_in_the_readers_language_whence_it_is_and_why_numbers_are_missing(
    owner: httpx.AsyncClient, stranger: httpx.AsyncClient, language: str, word: str
) -> None:
    page = (await stranger.get(await shared(owner), headers={"accept-language": language})).text
    assert "everthread" in page
    assert word in page
