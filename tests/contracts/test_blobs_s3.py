"""Large payloads on S3: a real server that speaks it (moto), over HTTP on loopback, by s3fs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

pytest.importorskip("s3fs", reason="needs everthread[s3]")
pytest.importorskip("moto", reason="needs moto, flask and flask-cors")

import boto3
import s3fs
from moto.server import ThreadedMotoServer

import everthread
from everthread import StoreError
from everthread.core import failpoints
from tests.contracts.message_helpers import says, texts

BIG = "The zirconium ledger of Osnabrück. " * 3_000
BUCKET = "everthread"
BLOBS = f"s3://{BUCKET}/some/folder"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def s3(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty bucket, found by the variables that our documentation names."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    yield client
    for key in keys(client):
        client.delete_object(Bucket=BUCKET, Key=key)
    client.delete_bucket(Bucket=BUCKET)
    client.close()
    s3fs.S3FileSystem.clear_instance_cache()


def keys(client: Any) -> list[str]:
    return [found["Key"] for found in client.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def body(client: Any, key: str) -> bytes:
    read: bytes = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return read


async def test_a_large_payload_is_an_object_and_comes_back_as_it_was(durable_url: str, s3: Any) -> None:
    async with everthread.open(durable_url, blobs=BLOBS, worker=False) as et:
        conv = await et.conversations.create(id="c")
        await conv.append([says("small"), says(BIG, id="big")])
        raw = (await conv.message("big")).raw
    (key,) = keys(s3)
    assert key.startswith("some/folder/")
    assert body(s3, key) == raw
    async with everthread.open(durable_url, blobs=BLOBS, worker=False) as et:
        conv = await et.conversations.get("c")
        assert await texts(conv) == ["small", BIG]
        assert [hit.id for hit in await et.search("zirconium", conversation="c")] == ["big"]
        assert (await et.verify()).ok


async def test_an_erase_deletes_the_object(durable_url: str, s3: Any) -> None:
    async with everthread.open(durable_url, blobs=BLOBS, worker=False) as et:
        conv = await et.conversations.create(id="c")
        await conv.append([says(BIG, id="big")])
        assert len(keys(s3)) == 1
        await et.erase(conversation="c", message="big")
        assert keys(s3) == []


async def test_an_object_that_is_gone_is_named_and_can_be_put_back(durable_url: str, s3: Any) -> None:
    async with everthread.open(durable_url, blobs=BLOBS, worker=False) as et:
        conv = await et.conversations.create(id="c")
        await conv.append([says(BIG, id="big")])
        (key,) = keys(s3)
        kept = body(s3, key)
        s3.delete_object(Bucket=BUCKET, Key=key)
        report = await et.verify()
        assert not report.ok
        s3.put_object(Bucket=BUCKET, Key=key, Body=kept)
        assert (await et.verify()).ok


async def test_what_a_failed_write_left_behind_is_swept(
    durable_url: str, s3: Any, request: pytest.FixtureRequest
) -> None:
    def trap(name: str) -> None:
        if name == "blob.written":
            raise StoreError("in between")

    request.addfinalizer(lambda: failpoints.arm(None))
    async with everthread.open(durable_url, blobs=BLOBS, worker=False) as et:
        conv = await et.conversations.create(id="c")
        failpoints.arm(trap)
        with pytest.raises(StoreError):
            await conv.append([says(BIG)])
        failpoints.arm(None)
        assert (len(keys(s3)), await texts(conv)) == (1, [])
        (swept,) = await et.sweep_blobs(older_than=timedelta(minutes=-1))
        assert swept.size_bytes > len(BIG)
        assert keys(s3) == []


async def test_a_bucket_that_is_not_there_fails_the_append_and_nothing_is_stored(durable_url: str, s3: Any) -> None:
    async with everthread.open(durable_url, blobs="s3://no-such-bucket/x", worker=False) as et:
        conv = await et.conversations.create(id="c")
        with pytest.raises(StoreError, match="nothing of this call was stored"):
            await conv.append([says("small"), says(BIG)])
        assert await texts(conv) == []
        await conv.append([says("small")])
        assert (await et.verify()).ok
