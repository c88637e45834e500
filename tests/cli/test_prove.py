"""A bundle proves a conversation to somebody who has nothing of ours but one file, and any change of it is found."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
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
    assert (found["entries"], found["messages"], found["erased"]) == (5, 4, 1)
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
