"""One session in one file of lines, as most agents write it: what their readers share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from everthread.imports.session import (
    LineIds,
    NativeMessage,
    Session,
    line_digest,
    moment_of,
    safe_id,
    text_in,
    time_of,
    without_none,
)


class SessionLines:
    """What the readers of files with one session share: the session, ids, and the message that each line follows."""

    def __init__(self, agent: str, name: str) -> None:
        self.agent = agent
        self.name = name
        self.session: Session | None = None
        self.last: str | None = None
        self._ids = LineIds()
        self._messages: dict[str, str | None] = {}
        """For the native id of each line the id of the last message up to it."""

    def begin(self, native: object, **known: object) -> Session:
        """The session; the first line that names it counts."""
        if self.session is None:
            named = native if isinstance(native, str) and native else self.name
            self.session = Session(id=safe_id(self.agent, named), agent=self.agent)
            self.session.note(agent=self.agent, session=named)
        self.session.note(**known)
        return self.session

    @property
    def sessions(self) -> dict[str, Session]:
        return {} if self.session is None else {self.session.id: self.session}

    def pass_on(self, value: Mapping[str, Any], parent: str) -> None:
        """Let lines after one that is no message follow the message before it."""
        if isinstance(value.get(parent), str) and isinstance(value.get("id"), str):
            self._messages[value["id"]] = self._messages.get(value[parent], self.last)

    def said(
        self, payload: dict[str, Any], line: bytes, *, id: object, at: object, parent: object = None
    ) -> NativeMessage:
        """A message, after its parent or, without one, after the last."""
        session = self.begin(None)
        session.created_at = session.created_at or moment_of(at)
        own = safe_id(id) if isinstance(id, str) and id else self._ids.of(line)
        if payload["role"] == "user" and not payload.get("is_meta") and "additional_kwargs" not in payload:
            session.name_after(text_in(payload["content"]))
        common = without_none({"created_at": time_of(at), "line": line_digest(line)[:16]})
        if "additional_kwargs" in payload:  # a summary, which nobody said and nothing follows
            return NativeMessage(session=session, payload={**common, **payload, "id": own})
        after = self._messages.get(parent, self.last) if isinstance(parent, str) else self.last
        self.last = own
        if isinstance(id, str):
            self._messages[id] = own
        return NativeMessage(session=session, payload={**common, **payload, "id": own}, after=after)

    def all_said(
        self, payloads: Sequence[dict[str, Any]], line: bytes, *, id: object, at: object
    ) -> list[NativeMessage]:
        """The messages of one line: the first has its id, the others that with their number."""
        native = id if isinstance(id, str) and id else None
        return [
            self.said(payload, line, id=native if not index or native is None else safe_id(native, index), at=at)
            for index, payload in enumerate(payloads)
        ]


class GrowingMessage:
    """The newest message of a session, as long as more lines add to it. Each line gives it anew, whole."""

    def __init__(self, lines: SessionLines) -> None:
        self._lines = lines
        self._message: NativeMessage | None = None
        self._key: object = None

    def grown(
        self, key: object, payload: dict[str, Any], line: bytes, *, at: object = None, id: object = None
    ) -> list[NativeMessage]:
        """The message of this key, which now is this; a new one where another message was said meanwhile."""
        if self._message is not None and key == self._key and self._lines.last == self._message.payload["id"]:
            before = self._message.payload
            kept: dict[str, Any] = {name: before[name] for name in ("id", "created_at") if name in before}
            self._message = replace(self._message, payload={**payload, **kept})
        else:
            said = self._lines.said(payload, line, id=id, at=at)
            del said.payload["line"]  # it is of several
            self._message, self._key = replace(said, grows=True), key
        return [self._message]

    def payload(self, key: object) -> dict[str, Any] | None:
        """What the message of this key is so far; None where there is none that can grow."""
        is_newest = self._message is not None and self._lines.last == self._message.payload["id"]
        return self._message.payload if self._message is not None and is_newest and key == self._key else None
