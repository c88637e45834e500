"""What a request meets before any route sees it: who asks, how much, how deep, how often."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator

import httpx
import jwt
import pytest
from fastapi import FastAPI
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import everthread
from everthread import Everthread
from everthread.core import errors
from everthread.core.access import new_key
from everthread.core.clock import system_clock
from everthread.core.errors import EverthreadError, Invalid
from everthread.history.payload_json import nesting_depth
from everthread.http.app import create_app
from everthread.http.errors import PROBLEM_TYPES, problem_response, problem_type
from everthread.http.server import is_loopback, needs_key
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for

SECRET = "a shared secret of more than thirty-two characters"


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The doors are the same over any store."""
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


def subclasses(kind: type[EverthreadError]) -> Iterator[type[EverthreadError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from subclasses(one)


def ours() -> list[type[EverthreadError]]:
    return [kind for kind in subclasses(EverthreadError) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", ours())
def test_every_error_has_a_status_and_says_what_is_safe_and_what_to_do(kind: type[EverthreadError]) -> None:
    assert kind is EverthreadError or problem_type(kind) is not PROBLEM_TYPES[EverthreadError]
    answer = problem_response(kind("postgresql://user:hunter22@host/db is away"))
    assert answer.status_code == problem_type(kind).status
    assert answer.media_type == "application/problem+json"
    assert b"hunter22" not in answer.body
    body = json.loads(bytes(answer.body))
    assert body["code"] == kind.code
    assert all(body[part].endswith(".") for part in ("detail", "safe", "next_step")), "they are read one after another"


async def test_a_defect_tells_nothing_of_itself(
    app: FastAPI, alice: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the secret is hunter22")

    answer = await alice.get("/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "defect")
    assert "hunter22" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["x-request-id"] in {getattr(record, "request_id", None) for record in caplog.records}


async def test_no_wrong_and_revoked_keys_are_turned_away(app: FastAPI, et: Everthread) -> None:
    made = new_key("alice", now=system_clock())
    await et.store.api_keys.add(made.key)
    async with client_of(app, made.written) as client:
        assert (await client.get("/metrics")).status_code == 200
        await et.store.api_keys.revoke(made.key.id)
        revoked = await client.get("/metrics")
    async with client_of(app, made.written[:-1] + ("a" if made.written[-1] != "a" else "b")) as client:
        wrong = await client.get("/metrics")
    async with client_of(app) as client:
        none = await client.get("/metrics")
    assert {one.status_code for one in (revoked, wrong, none)} == {401}
    assert revoked.content == wrong.content
    assert none.headers["www-authenticate"] == "Bearer"


def test_a_secret_is_compared_in_constant_time_by_a_digest_of_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    real, seen = hmac.compare_digest, []

    def watched(one: bytes, other: bytes) -> bool:
        seen.append((len(one), len(other)))
        return real(one, other)

    made = new_key("alice", now=system_clock())
    right = made.written.split("_", 2)[2]
    monkeypatch.setattr(hmac, "compare_digest", watched)
    secrets = (right, right[:-1] + chr(ord(right[-1]) ^ 1), "", "x", "密" * 10_000)
    assert [made.key.opens_with(secret) for secret in secrets] == [True, False, False, False, False]
    assert seen == [(32, 32)] * len(secrets)


async def test_a_key_is_kept_as_a_hash_only(et: Everthread) -> None:
    made = new_key("alice", now=system_clock())
    await et.store.api_keys.add(made.key)
    (kept,) = await et.store.api_keys.list("alice")
    secret = made.written.split("_", 2)[2]  # it may have an underscore itself
    assert secret not in repr(kept)
    assert kept.opens_with(secret)


async def test_on_its_own_machine_whoever_comes_is_local_but_no_page_from_elsewhere(
    et: Everthread, settings: Settings
) -> None:
    async with client_of(create_app(et, settings, needs_key=False)) as client:
        assert (await client.get("/metrics")).status_code == 200
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Authorization": "Bearer x"}):
            assert (await client.get("/metrics", headers=headers)).status_code in (401, 403)


@pytest.mark.parametrize("what", ["image", "script", "iframe", "video", "style", "empty"])
async def test_no_image_script_or_frame_of_another_page_is_answered(
    what: str, et: Everthread, settings: Settings
) -> None:
    """A browser sends no `Origin` with them."""
    async with client_of(create_app(et, settings, needs_key=False)) as client:
        foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": what, "Sec-Fetch-Mode": "no-cors"}
        answer = await client.get("/api/v1/conversations", headers=foreign)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin")
        for own in ({"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Dest": "document"}):
            assert (await client.get("/api/v1/conversations", headers={**foreign, **own})).status_code == 200


@pytest.mark.parametrize("charset", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
async def test_brackets_are_counted_whatever_the_body_is_encoded_in(charset: str, app: FastAPI, et: Everthread) -> None:
    """A byte of ∀ looks like a quote there, behind which brackets would not be counted."""
    body = '{"title": "∀", "metadata": ' + '{"a": ' * 200 + "1" + "}" * 201
    async with client_of(app, await key_for(et, "alice")) as alice:
        answer = await alice.post(
            "/api/v1/conversations", content=body.encode(charset), headers={"Content-Type": "application/json"}
        )
        assert (answer.status_code, answer.json()["detail"]) == (422, "the body is not UTF-8.")
        assert (await alice.get("/api/v1/conversations")).json()["items"] == []


async def test_no_cache_on_the_way_may_give_one_owners_answer_to_another(app: FastAPI, et: Everthread) -> None:
    """A cache knows whose an answer is by Authorization at most, and not by X-Api-Key."""
    async with client_of(app, await key_for(et, "alice")) as alice:
        await alice.post("/api/v1/conversations", json={"id": "c"})
        await alice.post("/api/v1/conversations/c/files", files={"file": ("a.txt", b"hello")})
        for path in (
            "conversations",
            "conversations/c",
            "conversations/c/messages",
            "conversations/c/files/a.txt",
            "x",
        ):
            answer = await alice.get(f"/api/v1/{path}")
            assert answer.headers["cache-control"] == "no-store", path


PAGE = "http://localhost:3000"


async def test_a_page_that_is_named_needs_no_key_on_its_own_machine_and_no_other_page_gets_in(et: Everthread) -> None:
    settings = Settings(database="memory://", cors_origins=f"https://chat.example, {PAGE}")
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,x-api-key"}
    async with client_of(create_app(et, settings, needs_key=False)) as client:
        asked = await client.options("/threads/search", headers={"Origin": PAGE, **asks})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, PAGE)
        answer = await client.post("/threads/search", json={}, headers={"Origin": PAGE, "X-Api-Key": ""})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
        refused: list[dict[str, str]] = [
            {"Origin": "http://localhost:3001"},
            {"Origin": "https://localhost:3000"},
            {"Origin": "http://localhost:3000.evil.example"},
            {"Origin": "null"},
            {"Origin": PAGE, "Host": "evil.example"},  # a name that was made to point here
            {"Origin": PAGE, "Host": "localhost.evil.example:3000"},
        ]
        for headers in refused:
            answer = await client.post("/threads/search", json={}, headers=headers)
            assert (answer.status_code, answer.json()["code"][:8]) == (403, "foreign_"), headers
            if headers["Origin"] != PAGE:
                assert "access-control-allow-origin" not in answer.headers


async def test_a_page_that_is_named_needs_a_key_where_everybody_does(et: Everthread) -> None:
    app = create_app(et, Settings(database="memory://", cors_origins=PAGE))
    async with client_of(app) as nobody, client_of(app, await key_for(et, "alice")) as alice:
        refused = await nobody.post("/threads/search", json={}, headers={"Origin": PAGE})
        assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, PAGE)
        assert (await alice.post("/threads/search", json={}, headers={"Origin": PAGE})).status_code == 200


async def test_every_page_may_call_but_none_without_a_key(et: Everthread) -> None:
    app = create_app(et, Settings(database="memory://", cors_origins="*"), needs_key=False)
    async with client_of(app) as nobody, client_of(app, await key_for(et, "alice")) as alice:
        assert (await nobody.post("/threads/search", json={}, headers={"Origin": PAGE})).status_code == 403
        found = await alice.post("/threads/search", json={}, headers={"Origin": PAGE})
        assert (found.status_code, found.headers["access-control-allow-origin"]) == (200, "*")


PROXIED = ({"X-Forwarded-For": "203.0.113.7"}, {"Forwarded": "for=203.0.113.7"}, {"Via": "1.1 proxy"})


@pytest.mark.parametrize("headers", PROXIED)
async def test_what_a_proxy_forwards_is_not_the_local_admins(
    et: Everthread, settings: Settings, headers: dict[str, str]
) -> None:
    async with client_of(create_app(et, settings, needs_key=False)) as client:
        refused = await client.get("/metrics", headers=headers)
        assert refused.status_code == 401
        assert "EVERTHREAD" not in refused.text, "a stranger learns of no setting"
        key = {"Authorization": f"Bearer {await key_for(et, 'alice')}"}
        assert (await client.get("/metrics", headers=headers | key)).status_code == 200


async def test_once_there_are_keys_everybody_needs_one_unless_a_setting_says_otherwise(
    et: Everthread, settings: Settings
) -> None:
    made = new_key("alice", now=system_clock())
    await et.store.api_keys.add(made.key)
    async with client_of(create_app(et, settings, needs_key=False)) as client:
        refused = await client.get("/metrics")
        assert refused.status_code == 401
        assert "EVERTHREAD_REQUIRE_KEY=false" in refused.json()["next_step"]
    trusting = settings.model_copy(update={"require_key": False})
    async with client_of(create_app(et, trusting, needs_key=False)) as client:
        assert (await client.get("/metrics", headers=PROXIED[0])).status_code == 200
    await et.store.api_keys.revoke(made.key.id)
    async with client_of(create_app(et, settings, needs_key=False)) as client:
        assert (await client.get("/metrics")).status_code == 200


@pytest.mark.parametrize("headers", [{"Host": "["}, {"Origin": "http://["}, {"Host": "[::1"}, {"Host": ""}])
async def test_half_an_address_is_refused_or_ignored_and_breaks_nothing(
    et: Everthread, app: FastAPI, settings: Settings, headers: dict[str, str]
) -> None:
    async with client_of(create_app(et, settings, needs_key=False)) as client:
        assert (await client.get("/api/v1/conversations", headers=headers)).status_code == 403
    async with client_of(app, await key_for(et, "alice")) as client:
        assert (await client.get("/api/v1/conversations", headers=headers)).status_code == 200
        assert (await client.post("/api/v1/conversations", json={}, headers=headers)).status_code == 201


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"sub": "alice"}, 200),
        ({"sub": "alice", "exp": 1}, 401),
        ({}, 401),
        ({"sub": "alice", "aud": "somebody else"}, 401),
        ({"sub": "x" * 200}, 401),
    ],
)
async def test_a_token_opens_only_when_all_of_it_is_right(
    et: Everthread, claims: dict[str, object], status: int
) -> None:
    settings = Settings(database="memory://", jwt_secret=SECRET, jwt_audience="us")
    token = jwt.encode({"exp": time.time() + 60, "aud": "us", **claims}, SECRET)
    async with client_of(create_app(et, settings), token) as client:
        assert (await client.get("/metrics")).status_code == status


async def test_an_unsigned_token_opens_nothing(et: Everthread) -> None:
    settings = Settings(database="memory://", jwt_secret=SECRET)
    token = jwt.encode({"sub": "alice", "exp": time.time() + 60}, "", algorithm="none")
    async with client_of(create_app(et, settings), token) as client:
        assert (await client.get("/metrics")).status_code == 401


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)]
)
def test_loopback_addresses_are_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


async def test_an_address_that_others_reach_is_not_served_without_a_key(et: Everthread) -> None:
    beyond = Settings(database="memory://", host="0.0.0.0")
    with pytest.raises(Invalid, match="key create"):
        await needs_key(et, beyond)
    await key_for(et, "alice")
    assert await needs_key(et, beyond)
    assert not await needs_key(et, Settings(database="memory://"))
    assert await needs_key(et, Settings(database="memory://", require_key=True))


async def test_a_key_that_asks_too_often_is_told_when_to_come_back(et: Everthread) -> None:
    app = create_app(et, Settings(database="memory://", requests_per_minute=60))
    async with client_of(app, await key_for(et, "alice")) as client, client_of(app, await key_for(et, "bob")) as other:
        answers = [await client.get("/metrics") for _ in range(12)]
        assert {one.status_code for one in answers} == {200, 429}
        assert int(answers[-1].headers["retry-after"]) >= 1
        assert (await other.get("/metrics")).status_code == 200


async def test_a_body_that_is_too_large_or_too_deep_is_never_parsed(et: Everthread) -> None:
    app = create_app(et, Settings(database="memory://", max_body_bytes=2048))
    deep = b"[" * 70 + b"]" * 70

    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b" " * 1024

    async with client_of(app, await key_for(et, "alice")) as client:
        assert (await client.post("/metrics", content=b"x" * 3000)).status_code == 413
        assert (await client.post("/metrics", content=unannounced())).status_code == 413
        assert (await client.post("/metrics", content=deep)).json()["code"] == "too_deep"


@pytest.mark.parametrize(
    ("body", "depth"),
    [(b'{"a": [1, {"b": 2}]}', 3), (b'"[[[["', 1), (b'["\\"[[", []]', 2), (b"", 1), (b"]]]][]", 1)],
)
def test_only_brackets_outside_of_strings_nest(body: bytes, depth: int) -> None:
    assert nesting_depth(body + b"[]" * 100, 99) == depth


@pytest.mark.parametrize("body", [b"\xff", b"{", b'{"message": "\xff"}'])
async def test_a_body_that_is_no_json_is_refused_as_any_other_that_cannot_be_taken(
    alice: httpx.AsyncClient, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await alice.post("/api/v1/conversations", content=body, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


async def test_an_unknown_parameter_is_named(alice: httpx.AsyncClient) -> None:
    answer = await alice.get("/metrics", params={"limitt": "1"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "limitt"


async def test_a_callers_request_id_is_kept_where_it_is_fit_for_a_log(alice: httpx.AsyncClient) -> None:
    assert (await alice.get("/healthz", headers={"X-Request-Id": "abc-1"})).headers["x-request-id"] == "abc-1"
    assert (await alice.get("/healthz", headers={"X-Request-Id": "a b\tc"})).headers["x-request-id"] != "a b\tc"


async def test_a_request_is_logged_and_counted_without_what_it_says(
    alice: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="everthread.http"):
        await alice.get("/nowhere/hunter22?x=hunter22")
    assert [record.message for record in caplog.records if record.name == "everthread.http"] == ["request"]
    assert "hunter22" not in str([vars(record) for record in caplog.records if record.name == "everthread.http"])
    assert (
        'everthread_http_requests_total{method="GET",route="none",status="404"} 1.0'
        in (await alice.get("/metrics")).text
    )


async def test_a_request_is_a_span_where_opentelemetry_is_set_up(alice: httpx.AsyncClient) -> None:
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await alice.get("/healthz", headers={"traceparent": parent})
    await alice.get("/metrics", params={"word": "hunter22"})
    assert "hunter22" not in str([one.to_json() for one in exporter.get_finished_spans()])
    (span,) = [one for one in exporter.get_finished_spans() if one.name == "GET /healthz"]
    assert span.attributes is not None
    assert span.attributes["http.response.status_code"] == 200
    assert format(span.context.trace_id, "032x") in parent


async def test_a_server_that_is_about_to_stop_is_not_ready(app: FastAPI, alice: httpx.AsyncClient) -> None:
    assert (await alice.get("/readyz")).status_code == 200
    app.state.is_stopping = True
    assert (await alice.get("/readyz")).status_code == 503
