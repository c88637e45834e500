"""Checks an evidence bundle (`everthread prove CONVERSATION > bundle`), and signs and checks heads.

This file stands alone: it imports the standard library and, for signatures, `cryptography`, and nothing of everthread.
Who does not trust us reads these few functions and runs them by themselves: `python prove.py bundle`, which is what
`python -m everthread.prove bundle` does.

A bundle is JSON, one value a line: the head of a conversation's log and what its row says of it, every entry with its
salt, every change of its settings, and at the end the signature of the head.
"""

from __future__ import annotations

import argparse
import json
import sys
from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

VERSION = 1
SIGNED_FIELDS = ("owner", "conversation_id", "count", "chain", "changes", "changes_chain", "signed_at")
_SECRET = 8
_SALT_BYTES = 16
_HASH_BYTES = 32
_HEX_DIGITS = frozenset("0123456789abcdef")
_ENTRY_FIELDS: dict[str, tuple[type, ...]] = {
    "seq": (int,), "id": (str,), "kind": (int,), "revises": (int, type(None)), "how": (int, type(None)),
    "parent_seq": (int, type(None)), "role": (str,), "created_at": (int,), "chain_version": (int,), "revision": (int,),
    "origin": (int,), "flags": (int,), "salt": (str, type(None)), "commitment": (str, type(None)),
}  # fmt: skip
_TEXT_FIELDS = frozenset({"raw", "raw64"})
DERIVED_FIELDS = frozenset({"tokens", "branch", "depth", "newest_seq", "updated_at"})
"""They follow from the other entries, and prove nothing; bundles that are made now leave them out."""
_HEAD_FIELDS: dict[str, tuple[type, ...]] = {
    "owner": (str,), "conversation_id": (str,), "count": (int,), "chain": (str,), "changes": (int,),
    "changes_chain": (str,),
}  # fmt: skip
_FIRST_FIELDS = frozenset({"everthread", "version", "head", "settings", "settings_salt"})
_CHANGE_FIELDS = frozenset({"number", "changed_at", "commitment"})


class Wrong(Exception):
    """What is wrong with a bundle."""


# -- hashes: the same as everthread computes, written down a second time -----------------------------------------------


def genesis(kind: str, owner: str, conversation: str) -> bytes:
    """Where a chain begins; `everthread` for the log, `everthread settings` for what the conversation's row says."""
    return sha256(f"{kind}\x00{owner}\x00{conversation}".encode()).digest()


def entry_link(before: bytes, entry: Mapping[str, Any]) -> bytes:
    """The chain after an entry; Wrong for one whose bytes could be read in two ways."""
    _check_entry(entry)
    raw = _text(entry)
    if raw is None:
        commitment = _hex(entry["commitment"], _HASH_BYTES)
    else:
        commitment = sha256(_hex(entry["salt"], _SALT_BYTES) + raw).digest()
        if entry["commitment"] is not None and _hex(entry["commitment"], _HASH_BYTES) != commitment:
            raise Wrong(f"the text of entry {entry['seq']} is not what it was committed to")
    names = ["seq", "id", "kind", "revises", "how", "parent_seq", "role", "created_at"]
    fields = [entry[name] for name in names]
    if entry["chain_version"] >= 2:
        fields += [entry["chain_version"], entry["revision"], entry["origin"], entry["flags"] & _SECRET]
    return sha256(before + "".join(f"{field}\x00" for field in fields).encode() + commitment).digest()


def _check_entry(entry: Mapping[str, Any]) -> None:
    what = f"entry {entry.get('seq')!r}"
    _check_names(entry, frozenset(_ENTRY_FIELDS) | _TEXT_FIELDS | DERIVED_FIELDS, what)
    _check_types(entry, _ENTRY_FIELDS, what)
    if entry["chain_version"] not in (1, 2):
        raise Wrong(f"entry {entry['seq']} has a link of version {entry['chain_version']}; a newer checker may know it")


def _check_names(value: Mapping[str, Any], known: Collection[str], what: str) -> None:
    """Nothing may stand beside what is hashed: a reader would take it for proved."""
    if unknown := set(value) - set(known):
        raise Wrong(f"{what} has fields that nothing proves: {sorted(unknown)!a}")


def _check_types(value: Mapping[str, Any], fields: Mapping[str, tuple[type, ...]], what: str) -> None:
    """No value may hold the bytes that part two of them where they are hashed."""
    for name, types in fields.items():
        if type(value[name]) not in types or (type(value[name]) is str and "\x00" in value[name]):
            raise Wrong(f"the {name} of {what} is of no kind that it can have")


def _text(entry: Mapping[str, Any]) -> bytes | None:
    """The bytes of an entry; None where only the commitment is left."""
    given = [name for name in ("raw", "raw64") if name in entry]
    if not given:
        return None
    if len(given) == 2 or type(entry[given[0]]) is not str:
        raise Wrong(f"entry {entry['seq']} has two texts, or one that is none")
    if entry["salt"] is None:
        raise Wrong(f"entry {entry['seq']} has a text without the salt that would prove it")
    return entry["raw"].encode() if given == ["raw"] else b64decode(entry["raw64"], validate=True)


def _hex(value: object, length: int) -> bytes:
    """As many bytes as it must have: with fewer or more, what is beside them could be read as part of them."""
    if type(value) is not str or len(value) != 2 * length or set(value) - _HEX_DIGITS:  # fromhex passes over spaces
        raise Wrong("a hash or a salt is missing, or has another length")
    return bytes.fromhex(value)


def settings_commitment(salt: bytes, settings: Mapping[str, Any]) -> bytes:
    """What a change of the settings is committed to."""
    return sha256(salt + json.dumps(settings, sort_keys=True).encode()).digest()


def settings_link(before: bytes, change: Mapping[str, Any]) -> bytes:
    """The chain after a change of the settings."""
    _check_names(change, _CHANGE_FIELDS, f"change {change['number']!r} of the settings")
    if type(change["changed_at"]) is not int:
        raise Wrong(f"change {change['number']} of the settings has no time")
    fields = f"{change['number']}\x00{change['changed_at']}\x00".encode()
    return sha256(before + fields + _hex(change["commitment"], _HASH_BYTES)).digest()


# -- signatures ----------------------------------------------------------------------------------------------------


def signed_text(head: Mapping[str, Any]) -> bytes:
    """What a signature of a head is over."""
    said = {name: head[name] for name in SIGNED_FIELDS}
    return b"everthread head\x00" + json.dumps(said, sort_keys=True).encode()


def sign(head: Mapping[str, Any], private_key_pem: bytes, signed_at: int) -> dict[str, Any]:
    """The head with its signature by an Ed25519 key. ValueError when that is no such key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    key = load_pem_private_key(private_key_pem, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("the key is not an Ed25519 key")
    whole = {**head, "signed_at": signed_at}
    public = key.public_key().public_bytes_raw().hex()
    return {**whole, "public_key": public, "signature": key.sign(signed_text(whole)).hex()}


def check_signature(head: Mapping[str, Any]) -> str:
    """The public key that signed a head, in hex; Wrong when it did not."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(head["public_key"]))
        public.verify(bytes.fromhex(head["signature"]), signed_text(head))
    except (InvalidSignature, ValueError, KeyError, TypeError) as problem:
        raise Wrong("the signature is not of this head") from problem
    return str(head["public_key"])


def public_key_of(pem: bytes) -> str:
    """A public key in a PEM file, in hex."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    key = load_pem_public_key(pem)
    if not isinstance(key, Ed25519PublicKey):
        raise Wrong("the given key is not an Ed25519 public key")
    return key.public_bytes_raw().hex()


# -- the bundle ----------------------------------------------------------------------------------------------------


class _Bundle:
    """A bundle as it is read, line by line."""

    def __init__(self, first: Mapping[str, Any]) -> None:
        _check_names(first, _FIRST_FIELDS, "the first line")
        self.head: Mapping[str, Any] = first["head"]
        _check_names(self.head, _HEAD_FIELDS, "the head")
        _check_types(self.head, _HEAD_FIELDS, "the head")
        self._settings, self._salt = first["settings"], first["settings_salt"]
        address = self.head["owner"], self.head["conversation_id"]
        self._link = genesis("everthread", *address)
        self._settings_link = genesis("everthread settings", *address)
        self._commitment = ""
        self.entries = self.messages = self.without_text = self._changes = 0
        self.signed: Mapping[str, Any] | None = None

    def read(self, value: Mapping[str, Any]) -> None:
        """The next line; Wrong when it does not follow."""
        if self.signed is not None:
            raise Wrong("something follows the signature")
        if len(value) != 1:
            raise Wrong("a line that says more than one thing")
        if "entry" in value:
            self._read_entry(value["entry"])
        elif "change" in value:
            self._read_change(value["change"])
        elif "signed" in value:
            self.signed = value["signed"]
        else:
            raise Wrong("a line that does not belong to a bundle")

    def _read_entry(self, entry: Mapping[str, Any]) -> None:
        self.entries += 1
        if entry["seq"] != self.entries:
            raise Wrong(f"entry {self.entries} is missing")
        self._link = entry_link(self._link, entry)
        self.without_text += "raw" not in entry and "raw64" not in entry
        self.messages += entry["kind"] == 0 and entry["how"] in (None, 2)

    def _read_change(self, change: Mapping[str, Any]) -> None:
        self._changes += 1
        if change["number"] != self._changes:
            raise Wrong(f"change {self._changes} of the settings is missing")
        self._settings_link = settings_link(self._settings_link, change)
        self._commitment = change["commitment"]

    def finish(self, public_key: str | None) -> str | None:
        """Compare all with the head; the key that signed it, if one did."""
        head = self.head
        if (self.entries, self._link.hex()) != (head["count"], head["chain"]):
            raise Wrong("the entries do not lead to the head of the log")
        if self._changes != head["changes"]:
            raise Wrong("changes of the settings are missing")
        if self._changes and self._settings_link.hex() != head["changes_chain"]:
            raise Wrong("the changes of the settings do not lead to their head")
        if not self._changes:
            if (self._settings, self._salt, head["changes_chain"]) != (None, None, ""):
                raise Wrong("the title, metadata and state were never committed to, so nothing proves them")
        elif settings_commitment(_hex(self._salt, _SALT_BYTES), self._settings).hex() != self._commitment:
            raise Wrong("the title, metadata or state is not what was last committed to")
        signer = None
        if self.signed is not None:
            _check_names(self.signed, {*SIGNED_FIELDS, "public_key", "signature"}, "the signature")
            _check_types(self.signed, {**_HEAD_FIELDS, "signed_at": (int,)}, "the signature")
            if any(self.signed[name] != head[name] for name in _HEAD_FIELDS):
                raise Wrong("the signature is of another head")
            signer = check_signature(self.signed)
        if public_key is not None and signer != public_key:
            raise Wrong("it is not signed by the given key" if signer else "it is not signed")
        return signer


def check(lines: Iterable[bytes], public_key: str | None = None) -> dict[str, Any]:
    """What a bundle proves; Wrong names the first thing that does not hold."""
    values = (json.loads(line, object_pairs_hook=_once) for line in lines if line.strip())
    first = next(values, None)
    if not isinstance(first, dict) or first.get("everthread") != "proof":
        raise Wrong("not a bundle of everthread")
    if first.get("version") != VERSION:
        raise Wrong(f"a bundle of version {first.get('version')!r}; this checks version {VERSION}")
    bundle = _Bundle(first)
    for value in values:
        bundle.read(value)
    signer = bundle.finish(public_key)
    return {
        "owner": bundle.head["owner"],
        "conversation_id": bundle.head["conversation_id"],
        "entries": bundle.entries,
        "messages": bundle.messages,
        "without_text": bundle.without_text,
        "chain": bundle.head["chain"],
        "signed_by": signer,
        "signed_at": None if bundle.signed is None else bundle.signed["signed_at"],
    }


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no name stands twice: of two values a reader might see one, and this the other."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Wrong("a name stands twice in one object")
    return found


def main(arguments: list[str] | None = None) -> int:
    """Check a bundle; 0 when all of it holds, 1 with what does not."""
    parser = argparse.ArgumentParser(prog="prove.py", description="Check an evidence bundle of everthread.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--key", type=Path, help="the public key (PEM) that must have signed it")
    given = parser.parse_args(arguments)
    try:
        key = None if given.key is None else public_key_of(given.key.read_bytes())
        with given.bundle.open("rb") as lines:
            found = check(lines, key)
    except Wrong as problem:
        print(f"does not hold: {problem}")
        return 1
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError) as problem:
        print(f"cannot be read: {type(problem).__name__}: {problem}")
        return 1
    print(json.dumps(found, indent=1))
    if found["without_text"]:
        print("entries without text were erased, or left out by whoever made the bundle", file=sys.stderr)
    if found["signed_by"] is None:
        print("not signed: this shows that the bundle is whole, not whose it is", file=sys.stderr)
    elif key is None:
        print("compare signed_by with the signer's public key, or give it with --key", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
