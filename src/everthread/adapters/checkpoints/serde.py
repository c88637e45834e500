"""The serializer of checkpoints: MessagePack, and strict. Nothing stored is revived outside its allow-list; an error
names the type that is missing there. No pickle, and LangChain's `lc` envelopes stay the dicts they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_METHOD_SINGLE_ARG, JsonPlusSerializer

from everthread.core.errors import Invalid, StoreDamaged

Allowed = Iterable[tuple[str, ...] | type]

_CONSTRUCTORS = range(6)
"""The extension codes that name a class or a function to call."""
_KINDS = frozenset({"null", "bytes", "bytearray", "msgpack"})


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's serializer with LangGraph's own safe types, those named here, and no others."""

    def __init__(self, allowed: Allowed = ()) -> None:
        named = {one if isinstance(one, tuple) else (one.__module__, one.__name__) for one in allowed}
        super().__init__(allowed_msgpack_modules=sorted(named) or None)
        self._named = frozenset(named)

    def with_msgpack_allowlist(self, extra_allowlist: Allowed) -> StrictSerializer:
        return StrictSerializer([*self._named, *extra_allowlist])

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, body = data
        if kind not in _KINDS:
            raise Invalid(f"a stored value of the kind {kind!r} is not revived: it could run code", field="value")
        if kind != "msgpack":
            return super().loads_typed(data)
        refused: list[str] = []

        def revive(code: int, part: bytes) -> Any:  # what a hook raises, ormsgpack would hide
            self._inspect(code, part, refused)
            return None if refused else self._unpack_ext_hook(code, part)

        try:
            value = ormsgpack.unpackb(body, ext_hook=revive, option=ormsgpack.OPT_NON_STR_KEYS)
        except (ormsgpack.MsgpackDecodeError, ValueError) as problem:
            raise StoreDamaged(f"a stored value cannot be read ({problem}): restore a backup") from problem
        if refused:
            raise Invalid(
                f"the stored type {refused[0]} is not on the allow-list, and nothing of it was built; if it is yours, "
                "name it: EverthreadSaver(…, allowed=[…])",
                field="value",
            )
        return value

    def _inspect(self, code: int, part: bytes, refused: list[str]) -> None:
        """Look at all that an extension names, to any depth, before anything of it is built."""
        if code not in _CONSTRUCTORS and code != EXT_DELTA_SNAPSHOT:
            return

        def look(inner: int, inside: bytes) -> None:
            self._inspect(inner, inside, refused)

        parts = ormsgpack.unpackb(part, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
        if code != EXT_DELTA_SNAPSHOT and not self._is_allowed(code, parts):
            names = parts[:2] if isinstance(parts, list) else ["?"]
            refused.append(".".join(map(str, names)))

    def _is_allowed(self, code: int, parts: Any) -> bool:
        if not isinstance(parts, list) or len(parts) < 3:
            return False
        if code == EXT_METHOD_SINGLE_ARG:
            return tuple(parts[:2] + parts[3:4]) in SAFE_MSGPACK_METHODS
        key = tuple(parts[:2])
        return key in SAFE_MSGPACK_TYPES or key in self._named
