"""Where imported messages come from: files of other programs, how far each was read, and the lines of the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from everthread.core.errors import Conflict
from everthread.core.nouns import ConversationInfo, Ref

NOT_IN_FILE = -1
"""The `first_byte` of a line that its file no longer has."""


_NO_AGENTS = frozenset({
    "chatgpt", "claude-ai", "open-webui", "librechat", "sharegpt", "openai-chat", "letta", "langsmith", "otel",
    "openai-agents",
})  # fmt: skip
"""Chat services and other programs whose conversations are imported: nobody writes on in these."""


def imported_from(info: ConversationInfo) -> str | None:
    """The program that a conversation was imported from; None for one of ours, such as a copy of an imported one."""
    program = info.metadata.get("agent")
    return program if isinstance(program, str) and info.id.startswith(f"{program}:") else None


def agent_of(info: ConversationInfo) -> str | None:
    """The coding agent whose session a conversation is: that agent may write on in it."""
    program = imported_from(info)
    return None if program in _NO_AGENTS else program


def check_not_of_an_agent(info: ConversationInfo) -> None:
    """Conflict for the session of an agent: what is said in it here would be out of view with the agent's next line."""
    if (agent := agent_of(info)) is not None:
        raise Conflict(
            f"{info.id!r} is a session of {agent}, which only {agent} goes on with: copy it to go on here "
            f"(`everthread copy {info.id}`, or POST /api/v1/conversations/{{id}}/copy), or open it in the agent "
            f"(`everthread resume {info.id}`)"
        )


class ImportSource(NamedTuple):
    """A file that is imported or followed."""

    number: int
    """Given by the store; 0 for a new one."""
    format: str
    path: str
    inode: int | None
    """None once the file is gone."""
    read_bytes: int
    """How far it was read: to the end of a line. Of a session of a database a number for the state that was read."""
    head_digest: bytes | None
    """The hash of what was read, by which a file that was rewritten is told from one that only grew."""
    updated_at: int
    """When the file was last changed before it was read, or was written here, in microseconds."""


class ImportLine(NamedTuple):
    """The line that an entry came from, byte for byte, with the lines after it that are no messages."""

    seq: int
    source: int
    first_byte: int
    """Its position in the file, or NOT_IN_FILE."""
    line: bytes


class Imports(Protocol):
    """The sources of imports and their lines. Lines are written with their messages, by `Log.write`."""

    async def sources(self, owner: str) -> Sequence[ImportSource]:
        """Return all sources of an owner, ordered by path."""

    async def source(self, owner: str, path: str) -> ImportSource | None:
        """Return the source with this path."""

    async def keep_source(self, owner: str, source: ImportSource) -> int:
        """Insert a source or, by its path, replace it, and return its number."""

    async def lines(self, ref: Ref, *, after: int, limit: int) -> Sequence[ImportLine]:
        """Return the lines of entries with a greater seq, in order of seq."""

    async def write_at(self, ref: Ref, source: int, first_byte: int, more: bytes) -> None:
        """Write lines that are no messages after the message before them: that part of the file now has these bytes.
        Repeating it changes nothing. Without a message before them, nothing is written."""

    async def detach_lines(self, ref: Ref, source: int) -> None:
        """Record that all lines of this source are in the file no more; those that still are will be written again."""
