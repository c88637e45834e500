"""A bundle proves a conversation to somebody who has nothing of ours but one file, and any change of it is found."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import runpy
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

from cryptography.exceptions import InvalidSignature  # isort: skip
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
        place, holder = dice.choice([(p, h) for value in changed for p, h in _leaves(value)])
        old = holder[place]
        holder[place] = _other(old, dice)
        with pytest.raises((prove.Wrong, ValueError, KeyError, TypeError)):
            prove.check([json.dumps(one).encode() for one in changed], key)
    for at in range(1, len(lines)):
        with pytest.raises(prove.Wrong):
            prove.check([*lines[:at], *lines[at + 1 :]], key)


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


def salt_moved_into_the_text(entry: dict[str, Any]) -> None:
    """`bytes.fromhex` passes over spaces: the length is right, and a byte of the salt is free."""
    salt, raw = entry["salt"], entry.pop("raw").encode()
    entry.update(salt=salt[:-2] + "  ", raw64=b64encode(bytes.fromhex(salt[-2:]) + raw).decode())


FORGED = [
    text_without_its_salt, text_beside_its_commitment, a_second_text, text_cut_at_its_beginning,
    fields_moved_into_another, fields_moved_into_the_commitment, numbers_as_words, something_that_nothing_proves,
    salt_moved_into_the_text,
]  # fmt: skip


@pytest.mark.parametrize("forge", FORGED, ids=lambda forge: forge.__name__)
async def test_no_entry_can_be_forged_so_that_the_same_bytes_are_hashed(
    forge: Callable[[dict[str, Any]], None], checked_by_a_stranger: Stranger
) -> None:
    private, public = new_key()
    values, entry = _of(await again(private), "b")
    forge(entry)
    with pytest.raises(prove.Wrong):
        prove.check([json.dumps(one).encode() for one in values], prove.public_key_of(public))
    assert "hold, signed by" not in checked_by_a_stranger(values)


def another_owner(values: list[Any]) -> None:
    values[0]["head"]["owner"] = values[-1]["signed"]["owner"] = "mallory"


def owner_and_id_moved_into_each_other(values: list[Any]) -> None:
    for head in (values[0]["head"], values[-1]["signed"]):
        head.update(owner="local\x00c", conversation_id="")


def another_title(values: list[Any]) -> None:
    values[0]["settings"]["title"] = "I confess"


def cut_off(values: list[Any]) -> None:
    last = max(at for at, value in enumerate(values) if "entry" in value)
    del values[last]
    values[0]["head"]["count"] -= 1


def two_swapped(values: list[Any]) -> None:
    values[1], values[2] = values[2], values[1]
    values[1]["entry"]["seq"], values[2]["entry"]["seq"] = 1, 2


def settings_left_out(values: list[Any]) -> None:
    values[:] = [value for value in values if "change" not in value]
    values[0]["head"]["changes"] = 0
    values[0].update(settings=None, settings_salt=None)


def later(values: list[Any]) -> None:
    values[-1]["signed"]["signed_at"] += 1


def said_beside_the_head(values: list[Any]) -> None:
    values[0]["note"] = "seen by the court"


def said_in_the_head(values: list[Any]) -> None:
    values[0]["head"]["title"] = "Contract"


def said_in_a_change(values: list[Any]) -> None:
    next(value["change"] for value in values if "change" in value)["by"] = "the king"


def said_beside_an_entry(values: list[Any]) -> None:
    values[1]["said"] = "more"


def said_in_the_signature(values: list[Any]) -> None:
    values[-1]["signed"]["name"] = "Supreme Court"


def a_number_that_only_equals(values: list[Any]) -> None:
    values[0]["head"]["count"] = float(values[0]["head"]["count"])


def said_after_the_signature(values: list[Any]) -> None:
    values.append(values[1])


def hash_in_capitals_and_spaces(values: list[Any]) -> None:
    entry = values[1]["entry"]
    entry["commitment"] = f" {_commitment(entry)[1:]}"


CHANGED = [
    another_owner, owner_and_id_moved_into_each_other, another_title, cut_off, two_swapped, settings_left_out, later,
    said_beside_the_head, said_in_the_head, said_in_a_change, said_beside_an_entry, said_in_the_signature,
    a_number_that_only_equals, said_after_the_signature, hash_in_capitals_and_spaces,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGED, ids=lambda change: change.__name__)
async def test_nothing_can_be_changed_or_added_around_the_entries(
    change: Callable[[list[Any]], None], checked_by_a_stranger: Stranger
) -> None:
    private, public = new_key()
    values = [json.loads(line) for line in await again(private)]
    change(values)
    with pytest.raises(prove.Wrong):
        prove.check([json.dumps(one).encode() for one in values], prove.public_key_of(public))
    assert "hold, signed by" not in checked_by_a_stranger(values)


Stranger = Callable[[list[Any]], str]
PAGE = Path(__file__).parents[2] / "docs/reference/evidence.md"


@pytest.fixture
def checked_by_a_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Stranger:
    """What the checker prints that stands in the documentation of the format."""
    found = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    assert found is not None
    (tmp_path / "stranger.py").write_text(found[1], encoding="utf-8")

    def check(values: list[Any]) -> str:
        (tmp_path / "bundle").write_text("\n".join(map(json.dumps, values)), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", ["stranger.py", str(tmp_path / "bundle")])
        try:
            runpy.run_path(str(tmp_path / "stranger.py"), run_name="__main__")
        except (SystemExit, InvalidSignature, ValueError, KeyError) as problem:
            return f"refused: {problem}"
        return capsys.readouterr().out

    return check


async def test_the_documented_format_is_enough_for_a_checker_of_ones_own(checked_by_a_stranger: Stranger) -> None:
    private, public = new_key()
    values = [json.loads(line) for line in await again(private)]
    assert checked_by_a_stranger(values) == f"5 entries hold, signed by {prove.public_key_of(public)}\n"
    assert checked_by_a_stranger(values[:-1]) == "5 entries hold, signed by None\n"


async def test_json_that_is_too_deep_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bundle").write_bytes(b"[" * 100_000)
    assert prove.main([str(tmp_path / "bundle")]) == 1
    assert "cannot be read" in capsys.readouterr().out


async def test_a_bundle_does_not_write_to_the_terminal_of_whoever_checks_it() -> None:
    values, entry = _of(await again(None), "b")
    entry["\x1b]52;c;AAAA\x07"] = 1
    with pytest.raises(prove.Wrong) as refused:
        prove.check([json.dumps(one).encode() for one in values])
    assert str(refused.value).isprintable()


async def test_a_bundle_is_the_same_bytes_in_every_locale(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/c.db"
    await lines_of(url, None)
    made = await asyncio.gather(*(asyncio.to_thread(proved, url, charset) for charset in ("utf-8", "latin-1", "ascii")))
    assert made[0] == made[1] == made[2]
    assert prove.check(made[0].splitlines())["entries"] == 5


def proved(url: str, charset: str) -> bytes:
    run = [sys.executable, "-m", "everthread", "--database", url, "prove", "c"]
    return subprocess.run(run, env={**os.environ, "PYTHONIOENCODING": charset}, capture_output=True, check=True).stdout


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
