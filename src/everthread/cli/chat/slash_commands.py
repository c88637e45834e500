"""Commands inside the chat, such as /search. Each takes what follows its name and returns the text to show."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from everthread.cli.output import counted, cut, format_bytes, format_time
from everthread.compaction.policy import window_bounds
from everthread.context import read_view
from everthread.context.budget import Budget
from everthread.context.message_format import calls_of
from everthread.core.errors import EverthreadError, Invalid, NotFound
from everthread.core.nouns import Message, Ref
from everthread.history import export as exporting
from everthread.text.printable import one_line
from everthread.turn.listing import agent_part
from everthread.turn.request import TurnOptions

if TYPE_CHECKING:
    from everthread.cli.chat.screen import Details
    from everthread.cli.chat.session import ChatSession
    from everthread.conversation import Conversation

Command = Callable[["ChatConsole", str], Awaitable[str]]
NOTHING_YET: Final = "Nothing was said yet."
_RECAP_READ: Final = 20
"""Tool calls and results are read too, and not shown."""
_RECAP_SHOWN: Final = 4
_RECAP_CHARACTERS: Final = 200
NO_FILES: Final = "No files yet; /upload FILE adds one."


@dataclass(slots=True, kw_only=True)
class ChatConsole:
    """What the commands work on."""

    session: ChatSession
    details: Details
    """Thinking and tool calls of the last turn."""
    is_over: bool = False


async def run(console: ChatConsole, line: str) -> str:
    """Run a line that begins with a slash; Invalid for an unknown command."""
    name, _, rest = line.strip().partition(" ")
    if name not in COMMANDS:
        meant = "".join(f"did you mean {one}? " for one in get_close_matches(name, COMMANDS, n=1))
        raise Invalid(f"unknown command {name}; {meant}/help lists the commands")
    return await COMMANDS[name][0](console, rest.strip())


async def current(console: ChatConsole, _rest: str) -> str:
    session = console.session
    (model, _notice) = await session.model_name()
    if session.conversation is None:
        return f"{NOTHING_YET}\nmodel      {model}"
    found = await session.conversation.refresh()
    policy = await session.et.compaction_config.get(found)
    view = await read_view.read_view(session.et.store, Ref(found.owner, found.id), None, policy)
    most = window_bounds(policy).max_message_history
    return "\n".join(
        [
            f"session    {found.id}  {one_line(found.title or '')}",
            f"messages   {view.uncovered}/{most} (window), {found.info.entry_count:,} in the log",
            f"workspace  {await session.workspace_path()}",
            f"model      {model}",
            *([f"skill      {session.skill}"] if session.skill else []),
        ]
    )


async def context(console: ChatConsole, _: str) -> str:
    session = console.session
    if session.conversation is None:
        return NOTHING_YET
    chat_model = await session.agent.models.get(session.model, None)
    options = TurnOptions(model=session.model, active_skill=session.skill)
    added = await agent_part(session.agent, session.conversation, options)
    report = await session.conversation.preview_context(
        system=added.system, tools=added.tools, budget=chat_model.budget
    )
    made, policy = report.context, report.policy
    rows = [f"  {part.kind:<10} {part.tokens:>8,} tokens" for part in made.parts]
    left_out = len(made.omitted)
    note = [f"  {left_out:,} messages or stretches are left out"] if left_out else []
    count = "exact" if report.is_exact else "estimated"
    full = f"{made.tokens:,} of {made.limit:,} tokens ({made.tokens / made.limit:.1%}, {count}, for {chat_model.name})"
    return "\n".join([f"{full}; compaction begins at {policy.threshold:.0%}", *rows, *note])


async def compact(console: ChatConsole, _: str) -> str:
    if console.session.conversation is None:
        return NOTHING_YET
    outcome = await console.session.conversation.compact(budget=Budget())
    if not outcome.compacted:
        return f"Nothing was compacted: {outcome.error or outcome.reason or 'everything is recent'}."
    return f"{outcome.original_count:,} messages in view became {outcome.new_count:,}; nothing is lost."


async def search(console: ChatConsole, words: str) -> str:
    session = console.session
    if not words:
        raise Invalid("give words to search for, such as /search passport", field="words")
    hits = await session.et.search(words, owner=session.owner, limit=10)
    lines = [f"{hit.conversation_id}  {hit.seq:>6}  {one_line(hit.snippet)}" for hit in hits]
    return "\n".join(lines) or "Nothing found."


async def resume(console: ChatConsole, name: str) -> str:
    session = console.session
    if not name:
        lines = [
            f"{at:>3}  {format_time(one.info.last_said_at)}  {one_line(one.title or one.id)}"
            for at, one in enumerate(await session.recent(), start=1)
        ]
        return "\n".join([*lines, "/resume NUMBER continues one."]) if lines else "No conversations yet."
    try:
        return await recap(await session.resume(name))
    except NotFound as problem:
        raise NotFound(f"no conversation {name!r}; /resume lists them") from problem


async def recap(conversation: Conversation) -> str:
    """Where a conversation was left: its title and its last messages."""
    said = [one for one in await conversation.tail(_RECAP_READ) if one.text and one.role in ("user", "assistant")]
    lines = [f"{_speaker(one)}: {cut(one_line(one.text), _RECAP_CHARACTERS)}" for one in said[-_RECAP_SHOWN:]]
    title = one_line(conversation.title or "") or conversation.id
    return "\n".join([f"Continuing “{title}”, {counted(conversation.info.message_count, 'message')}.", *lines])


def _speaker(message: Message) -> str:
    return message.name or ("you" if message.role == "user" else message.role)


async def fork(console: ChatConsole, seq: str) -> str:
    conversation = console.session.conversation
    if conversation is None:
        return NOTHING_YET
    if not seq:
        tail = [one for one in await conversation.tail(20) if one.role in ("user", "assistant")]
        lines = [f"{one.seq:>6}  {one.role}: {_preview(one)}" for one in tail]
        return "\n".join([*lines, "/fork SEQ continues from there on a new branch."])
    if not seq.isdecimal():
        raise Invalid(f"must be the number of a message, not {seq!r}", field="seq")
    branch = await conversation.fork(int(seq), activate=True)
    return f"Now on branch {branch.id}, from message {seq}; the other branch stays."


def _preview(message: Message) -> str:
    """Its text, or the tools it calls if it has none."""
    called = ", ".join(call.name for call in calls_of(message.payload))
    return one_line(message.text)[:80].strip() or (f"(calls {called})" if called else "(nothing)")


async def model(console: ChatConsole, name: str) -> str:
    session = console.session
    before = session.model
    session.model = name or before
    try:
        called, notice = await session.model_name()
    except EverthreadError:
        session.model = before
        raise
    return f"model      {called}" + (f"\n{notice}" if notice else "")


async def skills(console: ChatConsole, name: str) -> str:
    session = console.session
    if name:
        found = session.skills.get(name.removeprefix("@"))
        if found is None and name != "none":
            raise Invalid(f"unknown skill {name!r}", field="skill")
        session.skill = None if found is None else found.name
        return "No skill is active." if found is None else f"{found.name} is active from the next message on."
    lines = [f"@{one.name:<20} {one.description}" for one in session.skills.skills]
    broken = [f"broken: {one.folder.name}: {one.reason}" for one in session.skills.problems]
    silent = [f"MCP server {name}: {why}" for name, why in session.failed_servers().items()]
    return "\n".join([*lines, *broken, *silent])


async def todos(console: ChatConsole, _: str) -> str:
    signs = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}
    return "\n".join(f"{signs[one['status']]} {one['content']}" for one in await console.session.todos()) or "None."


async def upload(console: ChatConsole, file: str) -> str:
    if not file:
        found = await console.session.uploads() if console.session.conversation else ()
        return "\n".join(f"{one.path}  {one.mime}  {format_bytes(one.size_bytes)}" for one in found) or NO_FILES
    one = await console.session.upload(_path(file))
    return f"{one.path}  {one.mime}  {format_bytes(one.size_bytes)}"


async def clean(console: ChatConsole, how: str) -> str:
    dry_run = how in ("--dry-run", "dry")
    report = await console.session.et.workspaces.clean(dry_run=dry_run)
    done = "would be removed" if dry_run else "removed"
    return (
        f"{counted(len(report.removed), 'workspace')} {done} ({format_bytes(report.size_bytes)}); "
        f"{report.in_use:,} are in use, "
        f"{report.recent} were used recently."
    )


async def export(console: ChatConsole, file: str) -> str:
    conversation = console.session.conversation
    if conversation is None:
        return NOTHING_YET
    target = _path(file or f"{conversation.id}.md")
    written = [piece async for piece in exporting.export(conversation.info, conversation.messages(), "md")]
    await asyncio.to_thread(_write_new, target, b"".join(written))
    return f"Written: {target}"


def _path(typed: str) -> Path:
    return Path(typed).expanduser()


def _write_new(target: Path, body: bytes) -> None:
    try:
        with target.open("xb") as opened:
            opened.write(body)
    except FileExistsError:
        raise Invalid(f"{target} already exists; name another file", field="file") from None
    except OSError as problem:
        raise Invalid(f"{target} cannot be written: {problem.strerror}", field="file") from problem


async def details(console: ChatConsole, _: str) -> str:
    return console.details.whole() or "No details."


async def help_(_: ChatConsole, __: str) -> str:
    return "\n".join(f"{name:<10} {about}" for name, (_, about) in COMMANDS.items())


async def leave(console: ChatConsole, _: str) -> str:
    console.is_over = True
    return ""


COMMANDS: Final[dict[str, tuple[Command, str]]] = {
    "/current": (current, "the session, its messages, workspace and model"),
    "/context": (context, "what a model would see now, and how full it is"),
    "/compact": (compact, "summarise old messages in the model's view"),
    "/search": (search, "WORDS: find messages in all conversations"),
    "/resume": (resume, "[NUMBER or beginning of an ID]: continue another conversation"),
    "/fork": (fork, "[SEQ]: continue from an earlier message"),
    "/model": (model, "[NAME]: show or choose the model, such as openai:gpt-5-mini"),
    "/skills": (skills, "[NAME]: list skills; activate one (none: deactivate)"),
    "/todos": (todos, "the to-do list"),
    "/upload": (upload, "[FILE]: upload a file, or list uploads"),
    "/clean": (clean, "[--dry-run]: remove workspaces that have been idle for days"),
    "/export": (export, "[FILE]: write the conversation as Markdown"),
    "/details": (details, "thinking and tool calls of the last answer"),
    "/help": (help_, "this list"),
    "/exit": (leave, "leave, as Ctrl-D does"),
}
