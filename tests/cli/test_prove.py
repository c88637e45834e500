"""A bundle proves a conversation to somebody who has nothing of ours but one file, and any change of it is found."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import everthread
from everthread import Ref, prove
from everthread.cli.prove import bundle, signed
from everthread.core.errors import Invalid

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # isort: skip
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat  # isort: skip


def new_key() -> tuple[bytes, bytes]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


async def lines_of(url: str, pem: bytes | None) -> list[bytes]:
    async with everthread.open(url, worker=False) as et:
        conv = await et.conversations.create(id="c", title="Trip", metadata={"b": 1, "a": "ü"})
        await conv.append(
            [{"role": "user", "content": "héllo", "id": "a"}, {"role": "assistant", "content": "b", "id": "b"}]
        )
        await conv.append([{"role": "user", "content": b"\xff".decode("latin-1"), "id": "x"}])
        await conv.edit("a", {"role": "user", "content": "other"})
        await conv.pin("b")
        await et.erase(conversation="c", message="x")
        await conv.update(title="Journey")
        return [json.dumps(one).encode() async for one in bundle(et.store, Ref("local", "c"), pem)]


async def test_a_bundle_holds_and_names_its_signer(url: str) -> None:
    private, public = new_key()
    found = prove.check(await lines_of(url, private), prove.public_key_of(public))
    assert (found["entries"], found["messages"], found["without_text"]) == (5, 4, 1)
    assert found["signed_by"] == prove.public_key_of(public)
    with pytest.raises(prove.Wrong, match="given key"):
        prove.check(await again(private), prove.public_key_of(new_key()[1]))


async def again(pem: bytes | None) -> list[bytes]:
    return await lines_of("memory://", pem)


async def test_any_change_of_a_bundle_is_found() -> None:
    private, public = new_key()
    lines, key = await again(private), prove.public_key_of(public)
    dice = random.Random(4)
    for _ in range(300):
        changed = [json.loads(line) for line in lines]
        place, holder = dice.choice([(p, h) for value in changed for p, h in _leaves(value) if p not in FREE])
        old = holder[place]
        holder[place] = _other(old, dice)
        with pytest.raises((prove.Wrong, ValueError, KeyError, TypeError)):
            prove.check([json.dumps(one).encode() for one in changed], key)
    for at in range(1, len(lines)):
        with pytest.raises(prove.Wrong):
            prove.check([*lines[:at], *lines[at + 1 :]], key)


FREE = {"tokens", "newest_seq", "updated_at", "branch", "depth", "commitment_of_text"}
"""What the log itself says again: no part of the proof."""


def _leaves(value: Any) -> Any:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner)
        elif inner is not None:
            yield name, value


def _other(old: Any, dice: random.Random) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return old ^ 8 if dice.random() < 0.5 else old + 8
    at = dice.randrange(len(old) + 1)
    return f"{old[:at]}{'0' if old[at : at + 1] != '0' else '1'}{old[at + 1 :]}"


def _of(lines: list[bytes], id: str) -> tuple[list[Any], dict[str, Any]]:
    values = [json.loads(line) for line in lines]
    return values, next(value["entry"] for value in values if value.get("entry", {}).get("id") == id)


def _commitment(entry: dict[str, Any]) -> str:
    return sha256(bytes.fromhex(entry["salt"]) + entry["raw"].encode()).hexdigest()


def text_without_its_salt(entry: dict[str, Any]) -> None:
    entry.update(commitment=_commitment(entry), salt=None, raw='{"content":"I owe you a million"}')


def text_beside_its_commitment(entry: dict[str, Any]) -> None:
    entry.update(commitment=_commitment(entry), raw='{"content":"I owe you a million"}')


def a_second_text(entry: dict[str, Any]) -> None:
    entry["raw64"] = b64encode(entry["raw"].encode()).decode()
    entry["raw"] = '{"content":"I owe you a million"}'


def text_cut_at_its_beginning(entry: dict[str, Any]) -> None:
    entry.update(salt=entry["salt"] + entry["raw"][:5].encode().hex(), raw=entry["raw"][5:])


def fields_moved_into_another(entry: dict[str, Any]) -> None:
    """The same bytes are hashed, and origin and revision are free to say anything."""
    more = f"{entry['chain_version']}\x00{entry['revision']}\x00{entry['origin']}\x00{entry['flags'] & 8}"
    entry.update(chain_version=1, created_at=f"{entry['created_at']}\x00{more}", origin=1)


def fields_moved_into_the_commitment(entry: dict[str, Any]) -> None:
    more = f"{entry['chain_version']}\x00{entry['revision']}\x00{entry['origin']}\x00{entry['flags'] & 8}\x00"
    entry.update(chain_version=1, commitment=more.encode().hex() + _commitment(entry), origin=1)
    del entry["raw"]


def numbers_as_words(entry: dict[str, Any]) -> None:
    """Hashed alike, and a message no longer counts as one."""
    entry["how"] = str(entry["how"])


def something_that_nothing_proves(entry: dict[str, Any]) -> None:
    entry["said_by"] = "the king"


FORGED = [
    text_without_its_salt, text_beside_its_commitment, a_second_text, text_cut_at_its_beginning,
    fields_moved_into_another, fields_moved_into_the_commitment, numbers_as_words, something_that_nothing_proves,
]  # fmt: skip


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
async def test_no_entry_can_be_forged_so_that_the_same_bytes_are_hashed(
    forge: Callable[[dict[str, Any]], None],
) -> None:
    private, public = new_key()
    values, entry = _of(await again(private), "b")
    forge(entry)
    with pytest.raises(prove.Wrong):
        prove.check([json.dumps(one).encode() for one in values], prove.public_key_of(public))


async def test_no_name_stands_twice_in_a_bundle() -> None:
    private, _ = new_key()
    lines = await again(private)
    lines[1] = lines[1].replace(b'"raw":', b'"raw": "forged", "raw":')
    with pytest.raises(prove.Wrong, match="twice"):
        prove.check(lines)


async def test_a_text_that_was_left_out_is_counted() -> None:
    private, public = new_key()
    values, entry = _of(await again(private), "b")
    entry["commitment"] = _commitment(entry)
    del entry["raw"]
    found = prove.check([json.dumps(one).encode() for one in values], prove.public_key_of(public))
    assert found["without_text"] == 2


async def test_settings_that_were_never_committed_to_are_refused() -> None:
    head = {
        "owner": "o", "conversation_id": "c", "count": 0, "chain": prove.genesis("everthread", "o", "c").hex(),
        "changes": 0, "changes_chain": "",
    }  # fmt: skip
    first = {"everthread": "proof", "version": 1, "head": head, "settings": None, "settings_salt": None}
    assert prove.check([json.dumps(first).encode()])["entries"] == 0
    with pytest.raises(prove.Wrong, match="never committed"):
        prove.check([json.dumps({**first, "settings": {"title": "forged"}}).encode()])


ALONE = """
import runpy, sys
sys.modules["everthread"] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


async def test_the_checker_needs_nothing_of_ours(tmp_path: Path) -> None:
    private, public = new_key()
    lines = await again(private)
    done = await asyncio.to_thread(checked_alone, tmp_path, lines, public)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["entries"] == 5
    changed = [line.replace(b"Journey", b"Another") for line in lines]
    done = await asyncio.to_thread(checked_alone, tmp_path, changed, public)
    assert done.returncode == 1
    assert "does not hold" in done.stdout


def checked_alone(folder: Path, lines: list[bytes], public: bytes) -> subprocess.CompletedProcess[str]:
    """What the checker says in a process that has no everthread."""
    (folder / "bundle").write_bytes(b"\n".join(lines))
    (folder / "public.pem").write_bytes(public)
    (folder / "prove.py").write_bytes(Path(prove.__file__).read_bytes())
    run = [sys.executable, "-c", ALONE, "prove.py", "bundle", "--key", "public.pem"]
    return subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)


async def test_a_bundle_without_a_signature_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bundle").write_bytes(b"\n".join(await again(None)))
    assert prove.main([str(tmp_path / "bundle")]) == 0
    assert "not signed" in capsys.readouterr().err


def test_a_key_of_another_kind_is_refused() -> None:
    with pytest.raises(Invalid, match="Ed25519"):
        signed({"owner": "a"}, b"-----BEGIN PRIVATE KEY-----\nno\n-----END PRIVATE KEY-----")
