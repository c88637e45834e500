"""Archives and bodies that are made to exhaust the server: what they unpack to, and how deep they nest."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path

import httpx
import pytest
import zstandard
from fastapi import FastAPI

import everthread
from everthread import Everthread, Invalid
from everthread.adapters.documents import pdf
from everthread.core import chain
from everthread.history.import_archive import ImportLimits, import_archive
from tests.forkserver import ROOT, SERVING, ForkServer
from tests.http.conftest import client_of, key_for
from tests.http.served import API

ZSTD = {"Content-Type": "application/zstd"}


@pytest.fixture
async def et() -> AsyncIterator[Everthread]:
    """The doors are the same over any store."""
    async with everthread.open("memory://", worker=False) as opened:
        yield opened


def of_repeated_bytes(size_bytes: int, byte: bytes) -> bytes:
    """A zstd frame of RLE blocks: four bytes for each 128 KiB that it unpacks to."""
    block = (131_072 << 3 | 1 << 1).to_bytes(3, "little") + byte
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (size_bytes // 4)


def of_small_entries(count: int, owner: str) -> Iterator[bytes]:
    """The lines of a sound archive: one conversation of tiny entries."""
    yield b'{"everthread":"archive","version":1}\n'
    row: dict[str, object] = {
        "id": "c",
        "parent_id": None,
        "title": None,
        "metadata": {},
        "is_active": True,
        "off_record": False,
    }
    first = {"conversation": row | {"created_at": 1, "deleted_at": None}, "branches": [[0, None, 0, count, count, 1]]}
    line = json.dumps(first | {"active": 0}).encode() + b"\n"
    hashed, link = sha256(line), chain.genesis(owner, "c")
    yield line
    raw = b'{"role":"user","content":""}'
    for seq in range(1, count + 1):
        parent = seq - 1 or None
        entry = {
            "seq": seq, "id": f"m{seq}", "kind": 0, "role": "user", "revises": None, "how": None, "revision": 1,
            "parent_seq": parent, "branch": 0, "depth": seq, "created_at": 1, "tokens": 1, "salt": "00" * 16,
            "commitment": None, "newest_seq": None, "flags": 0, "updated_at": None, "raw": raw.decode(),
        }  # fmt: skip
        link = chain.link(
            link, seq=seq, id=f"m{seq}", kind=0, revises=None, change_kind=None, parent_seq=parent, role="user",
            created_at=1, commitment=chain.commit(bytes(16), raw), version=1,
        )  # fmt: skip
        line = json.dumps({"entry": entry}).encode() + b"\n"
        hashed.update(line)
        yield line
    end = {"id": "c", "entries": count, "chain": link.hex(), "sha256": hashed.hexdigest()}
    yield json.dumps({"end": end}).encode() + b"\n"
    whole = sha256(hashed.hexdigest().encode()).hexdigest()
    yield json.dumps({"manifest": {"owner": owner, "conversations": [end], "sha256": whole}}).encode() + b"\n"


MEASURED = """
import asyncio, json, re, sys
from pathlib import Path
import everthread
from everthread.http.app import create_app
from everthread.settings import Settings
from tests.http.conftest import client_of, key_for

def peak():  # not getrusage, whose peak a process inherits from the one that started it
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

async def main(files, limit, kind):
    async with everthread.open("memory://", worker=False) as et:
        app = create_app(et, Settings(database="memory://", max_import_bytes=limit))
        keys = [await key_for(et, owner) for owner in ("alice", "bob")]
        async def send(key, file):
            async with client_of(app, key) as client:
                body, headers = Path(file).read_bytes(), {"Content-Type": kind}
                return (await client.post("/api/v1/import", content=body, headers=headers)).status_code
        before = peak()
        statuses = await asyncio.gather(*map(send, keys, files))
        print(json.dumps([statuses, peak() - before]))

asyncio.run(main(sys.argv[1:3], int(sys.argv[3]), sys.argv[4]))
"""


def import_two_at_once(
    forkserver: ForkServer,
    tmp_path: Path,
    archives: tuple[bytes, bytes],
    limit: int = 128 << 20,
    kind: str = ZSTD["Content-Type"],
) -> tuple[list[int], float]:
    """What two owners are answered who import at once, and the MiB that the process needed for it."""
    files = [tmp_path / "one", tmp_path / "other"]
    for file, archive in zip(files, archives, strict=True):
        file.write_bytes(archive)
    program = ("-c", MEASURED, *map(str, files), str(limit), kind)
    ended = forkserver.run_program(*program, folder=ROOT, env=os.environ, needs=(*SERVING, "tests.http.conftest"))
    assert ended.code == 0, ended.err
    statuses, mebibytes = json.loads(ended.out)
    return statuses, mebibytes


@pytest.mark.parametrize("byte", [b"x", b"\n", b"["])
def test_archives_that_unpack_to_two_gigabytes_are_refused_within_bounded_memory(
    forkserver: ForkServer, tmp_path: Path, byte: bytes
) -> None:
    bomb = of_repeated_bytes(64 * 1024, byte)
    statuses, mebibytes = import_two_at_once(forkserver, tmp_path, (bomb, bomb))
    assert statuses == [422, 422]
    assert mebibytes < 200


def test_two_owners_with_sound_archives_of_endless_entries_are_refused_within_bounded_memory(
    forkserver: ForkServer, tmp_path: Path
) -> None:
    pack = zstandard.ZstdCompressor().compress
    archives = tuple(pack(b"".join(of_small_entries(60_000, owner))) for owner in ("alice", "bob"))
    statuses, mebibytes = import_two_at_once(forkserver, tmp_path, (archives[0], archives[1]), limit=16 << 20)
    assert statuses == [422, 422]
    assert mebibytes < 150


async def test_a_sound_archive_of_small_entries_is_imported(app: FastAPI, et: Everthread) -> None:
    archive = zstandard.ZstdCompressor().compress(b"".join(of_small_entries(100, "alice")))
    async with client_of(app, await key_for(et, "alice")) as client:
        answer = await client.post(f"{API}/import", content=archive, headers=ZSTD)
    assert (answer.status_code, answer.json()["entries"]) == (200, 100)


async def test_a_conversation_larger_than_the_limit_is_refused_whole(et: Everthread) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield zstandard.ZstdCompressor().compress(b"".join(of_small_entries(100, "local")))

    with pytest.raises(Invalid, match="too large"):
        await import_archive(et.store, "local", pieces(), ImportLimits(conversation_bytes=100 * 1024))
    assert list((await et.conversations.list()).items) == []


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "line",
    [
        DEEP,
        b'{"a":' * 100_000,
        b'{"everthread":"archive","version":1,"x":' + DEEP + b"}",
        b'"' + b'\\"' * 100_000,
    ],
)
async def test_deep_json_in_an_archive_is_invalid_and_no_defect(alice: httpx.AsyncClient, line: bytes) -> None:
    answer = await alice.post(f"{API}/import", content=zstandard.ZstdCompressor().compress(line + b"\n"), headers=ZSTD)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


async def test_a_message_in_an_archive_that_nests_too_deep_is_refused(alice: httpx.AsyncClient) -> None:
    lines = list(of_small_entries(1, "alice"))
    entry = json.loads(lines[2])
    entry["entry"]["raw"] = '{"role":"user","content":' + "[" * 5_000 + "]" * 5_000 + "}"
    lines[2] = json.dumps(entry).encode() + b"\n"
    archive = zstandard.ZstdCompressor().compress(b"".join(lines))
    answer = await alice.post(f"{API}/import", content=archive, headers=ZSTD)
    assert answer.status_code == 422
    assert "nested deeper" in answer.json()["detail"]


@pytest.mark.parametrize("charset", ["utf-16-le", "utf-16", "utf-32"])
async def test_a_message_in_an_archive_is_not_deeper_than_it_seems_in_other_encodings(
    charset: str, alice: httpx.AsyncClient
) -> None:
    """`json` guesses them, and a byte of ∀ looks like a quote, behind which brackets would not be counted."""
    lines = list(of_small_entries(1, "alice"))
    entry = json.loads(lines[2])
    raw = '{"role":"user","x":"∀","content":' + "[" * 5_000 + "]" * 5_000 + "}"
    del entry["entry"]["raw"]
    entry["entry"]["raw64"] = b64encode(raw.encode(charset)).decode()
    lines[2] = json.dumps(entry).encode() + b"\n"
    archive = zstandard.ZstdCompressor().compress(b"".join(lines))
    answer = await alice.post(f"{API}/import", content=archive, headers=ZSTD)
    assert answer.status_code == 422
    assert "nested deeper" in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["application/json", "application/octet-stream", "application/zstd", "text/plain", ""])
async def test_deep_json_in_any_body_is_refused_whatever_it_says_it_is(alice: httpx.AsyncClient, kind: str) -> None:
    for path in (f"{API}/conversations", f"{API}/search", "/threads", "/runs/wait", f"{API}/chat"):
        answer = await alice.post(path, content=DEEP, headers={"Content-Type": kind})
        assert 400 <= answer.status_code < 500, (path, answer.text)


async def test_a_slow_upload_does_not_keep_other_imports_waiting(app: FastAPI, et: Everthread) -> None:
    archive = zstandard.ZstdCompressor().compress(b"".join(of_small_entries(10, "bob")))
    begun, rest = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield archive[:10]
        begun.set()
        await rest.wait()
        yield archive[10:]

    async with client_of(app, await key_for(et, "alice")) as alice, client_of(app, await key_for(et, "bob")) as bob:
        waiting = asyncio.create_task(alice.post(f"{API}/import", content=slow(), headers=ZSTD))
        await begun.wait()
        assert (await bob.post(f"{API}/import", content=archive, headers=ZSTD)).status_code == 200
        rest.set()
        assert (await waiting).status_code == 200


def pdf_of(content: bytes, filters: bytes) -> bytes:
    """A PDF with one page of this packed content."""
    parts = [
        b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n",
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n",
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<<>>>>endobj\n",
        b"4 0 obj<</Length %d/Filter%s>>stream\n%s\nendstream endobj\n" % (len(content), filters, content),
    ]
    body, places = b"%PDF-1.7\n", []
    for part in parts:
        places.append(len(body))
        body += part
    table = b"xref\n0 5\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + table + b"trailer<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(body)


def test_a_pdf_whose_text_unpacks_without_end_is_given_up_and_costs_this_process_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pdf, "MOST_SECONDS", 5)
    monkeypatch.setattr(pdf, "MOST_MEMORY_BYTES", 400 << 20)
    operators = zlib.compress(b"BT /F 1 Tf (a) Tj ET\n" * 3_500_000, 9)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for content, filters in ((operators, b"/FlateDecode"), (zlib.compress(operators), b"[/FlateDecode/FlateDecode]")):
        with pytest.raises(Invalid):
            pdf.pages(pdf_of(content, filters))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024
