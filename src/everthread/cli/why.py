"""The command that tells why a model knew or did not know something: why."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import one_line
from everthread.context.read_view import SeenContext
from everthread.conversation import Conversation
from everthread.core.errors import Invalid, NotFound
from everthread.core.nouns import Message
from everthread.core.turns import Turn, TurnQuery
from everthread.instance import Everthread

_PAGE = 200
_KEY = "everthread"
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What became of one message that has the text, in one request."""

    request: int
    """1 for the first time that the model was asked in the turn."""
    seq: int
    role: str
    where: str
    """window, summary, recalled, left_out or later."""
    why: str


@command(app)
async def why(
    cli: Invocation,
    turn: Annotated[str, typer.Argument(metavar="TURN", help="The turn's id.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words that were said some time.")],
    conversation: Annotated[
        str | None, typer.Option(metavar="ID", help="Its conversation; looked for if none.")
    ] = None,
) -> None:
    """Tell whether a model saw a text when it answered: in the window, in a summary, recalled, or left out and why."""
    if not text.strip():
        raise Invalid("is empty; name words that were said", field="text")
    async with cli.open() as et:
        found, row = await _turn(et, cli.owner, conversation, turn)
        seen = [await found.seen_context(id) for id in await _manifests(found, row)]
        having = [one async for one in _having(found, text)]
        places = [place for at, one in enumerate(seen, 1) for place in places_of(one, at, having, text)]
        told = [one.summary for one in await _summaries(found, seen) if text.casefold() in one.summary.casefold()]
    _tell(cli, row, text, len(seen), places, is_summed_up=bool(told))


async def _turn(et: Everthread, owner: str, conversation: str | None, id: str) -> tuple[Conversation, Turn]:
    if conversation is not None:
        found = await et.conversations.get(conversation, owner)
        return found, await found.turn(id)
    before = None
    while page := await et.store.turns.list(TurnQuery(owner=owner, before=before, limit=_PAGE)):
        for one in page:
            if one.id == id:
                return await et.conversations.get(one.conversation_id, owner), one
        before = page[-1].number
    raise NotFound(f"no turn {id!r}; `everthread chat --json` tells the ids of turns")


async def _manifests(conversation: Conversation, turn: Turn) -> Sequence[str]:
    """What the model was shown, by the answer's own word."""
    try:
        payload = (await conversation.message(turn.answer_id)).payload
    except NotFound:
        return ()
    about = payload.get("additional_kwargs", {}).get(_KEY, {})
    return [str(id) for id in about.get("manifests", ())]


async def _having(conversation: Conversation, text: str) -> AsyncIterator[Message]:
    async for message in conversation.messages(include_deleted=True):
        if text.casefold() in message.text.casefold():
            yield message


async def _summaries(conversation: Conversation, seen: Sequence[SeenContext]) -> Sequence[Any]:
    ids = dict.fromkeys(id for one in seen for id in one.manifest.summary_ids)
    gone = {id for one in seen for id in one.erased_summaries}
    return [await conversation.compaction(id) for id in ids if id not in gone]


def places_of(seen: SeenContext, request: int, having: Sequence[Message], text: str) -> Iterator[Place]:
    """Each message that has the text, and where the request has it, by its manifest."""
    manifest = seen.manifest
    window = {seq for seq, _ in (*manifest.window, *manifest.pinned, *manifest.standing)}
    recalled = {seq for seq, *_ in manifest.recalled}
    parts = {seq: part for part in seen.context.parts for seq in part.seqs}
    for message in having:
        seq = message.seq
        if seq in window:
            where, reason = "window", _in_window(seen, seq, text)
        elif seq in recalled:
            where, reason = "recalled", "the question brought it back from before the window"
        elif left_out := _omission(seen, seq):
            where, reason = "left_out", left_out
        elif seq > max(window, default=0):
            where, reason = "later", "it was said after this request"
        elif manifest.summary_ids:
            kind = parts[seq].kind if seq in parts else "summaries"
            where, reason = "summary", f"it stands for it among the {kind}"
        else:
            where, reason = "left_out", "it is on another branch, or was hidden then"
        yield Place(request=request, seq=seq, role=message.role, where=where, why=reason)


def _in_window(seen: SeenContext, seq: int, text: str) -> str:
    if seq not in seen.manifest.clamped:
        return "it was shown whole"
    is_shown = any(text.casefold() in str(one.get("content")).casefold() for one in seen.context.messages)
    return f"the message was shown in part, {'with' if is_shown else 'without'} these words"


def _omission(seen: SeenContext, seq: int) -> str | None:
    for one in seen.manifest.omitted:
        if one.seq <= seq <= (one.last_seq or one.seq):
            return one.reason.replace("_", " ")
    return None


def _tell(
    cli: Invocation, turn: Turn, text: str, requests: int, places: Sequence[Place], *, is_summed_up: bool
) -> None:
    if cli.out.json:
        cli.out.document(
            {
                "turn_id": turn.id,
                "conversation_id": turn.conversation_id,
                "state": turn.state,
                "text": text,
                "requests": requests,
                "in_summary_text": is_summed_up,
                "places": list(places),
            }
        )
        return
    cli.out.text(f"turn {turn.id} ({turn.state}) asked the model {requests} times; {one_line(text)!r}:")
    if not requests:
        cli.out.text("what the model was shown is not known: the turn ended before an answer, or it was erased")
    elif not places:
        cli.out.text("no message of the conversation has these words")
    else:
        cli.out.table(
            (">request", ">message", "role", "where", "why"),
            [(one.request, one.seq, one.role, one.where.replace("_", " "), one.why) for one in places[:_SHOWN]],
        )
        if len(places) > _SHOWN:
            cli.out.note(f"{len(places) - _SHOWN} more; --json shows all")
    if is_summed_up:
        cli.out.text("a summary that was shown has these words itself")
