"""`everthread why`: whether a model saw a text when it answered, and if not, why not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.output import counted
from everthread.core.errors import Invalid, NotFound
from everthread.core.turns import Turn, TurnQuery
from everthread.imports.find import find_conversation, only_one
from everthread.text.printable import one_line

if TYPE_CHECKING:
    from everthread.context.read_view import SeenContext
    from everthread.conversation import Conversation
    from everthread.core.nouns import Message
    from everthread.instance import Everthread

_PAGE = 200
_KEY = "everthread"
_SHOWN = 20
_MOST_ARGUMENTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSighting:
    """Where one request had a message that contains the text."""

    request: int
    """1 for the first request of the turn."""
    seq: int
    role: str
    where: str
    """window, summary, recalled, left_out or later."""
    why: str


@command(app)
async def why(
    cli: Invocation,
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="[TURN] TEXT",
            help="Words from the conversation, after the turn's id or its beginning; without it, the newest turn.",
        ),
    ],
    conversation: Annotated[
        str | None, typer.Option("-c", "--conversation", metavar="ID", help="The turn's conversation; by default any.")
    ] = None,
) -> None:
    """Show whether a model saw a text when it answered: in the window, summarised, recalled, or left out and why."""
    if len(asked) > _MOST_ARGUMENTS:
        raise typer.BadParameter('put the words in quotes, such as: everthread why "my passport"')
    text, turn = asked[-1], asked[0] if len(asked) == _MOST_ARGUMENTS else None
    if not text.strip():
        raise Invalid("must not be empty; give words from the conversation", field="text")
    async with cli.open() as et:
        found, row = await find_turn(et, cli.owner, conversation, turn)
        seen = [await found.seen_context(id) for id in await kept_requests(found, row)]
        said = found.messages(include_deleted=True)
        matching = [one async for one in said if text.casefold() in one.text.casefold()]
        places = [place for at, one in enumerate(seen, 1) for place in sightings_in(one, at, matching, text)]
        containing = [one.summary for one in await _summaries(found, seen) if text.casefold() in one.summary.casefold()]
    _print(cli, row, text, len(seen), places, is_summarised=bool(containing))


async def find_turn(et: Everthread, owner: str, conversation: str | None, id: str | None) -> tuple[Conversation, Turn]:
    """The turn with this id, or whose id begins so; the newest one where there is no id."""
    within = None if conversation is None else (await find_conversation(et, owner, conversation)).id
    found: dict[str, Turn] = {}
    before = None
    while page := await et.store.turns.list(TurnQuery(owner=owner, conversation=within, before=before, limit=_PAGE)):
        found |= {one.id: one for one in page if id is None or one.id.startswith(id)}
        if id in found or (id is None and found):
            break
        before = page[-1].number
    if id is not None:
        turn = found[only_one(id, found, "turn", "without one, the newest is taken")]
    elif found:
        turn = next(iter(found.values()))
    else:
        raise NotFound("no turns yet: `everthread chat` runs one")
    return await et.conversations.get(turn.conversation_id, owner), turn


async def kept_requests(conversation: Conversation, turn: Turn) -> Sequence[str]:
    """The ids of the requests that were kept of a turn, which the answer's message carries."""
    try:
        payload = (await conversation.message(turn.answer_id)).payload
    except NotFound:
        return ()
    about = payload.get("additional_kwargs", {}).get(_KEY, {})
    return [str(id) for id in about.get("manifests", ())]


async def _summaries(conversation: Conversation, seen: Sequence[SeenContext]) -> Sequence[Any]:
    ids = dict.fromkeys(id for one in seen for id in one.manifest.summary_ids)
    gone = {id for one in seen for id in one.erased_summaries}
    return [await conversation.compaction(id) for id in ids if id not in gone]


def sightings_in(seen: SeenContext, request: int, matching: Sequence[Message], text: str) -> Iterator[TextSighting]:
    """Each message that has the text, and where the request has it, by its manifest."""
    manifest = seen.manifest
    window = {seq for seq, _ in (*manifest.window, *manifest.pinned, *manifest.standing)}
    recalled = {seq for seq, *_ in manifest.recalled}
    parts = {seq: part for part in seen.context.parts for seq in part.seqs}
    for message in matching:
        seq = message.seq
        if seq in window:
            where, reason = "window", _window_reason(seen, seq, text)
        elif seq in recalled:
            where, reason = "recalled", "the question recalled it from before the window"
        elif left_out := _omission(seen, seq):
            where, reason = "left_out", left_out
        elif seq > max(window, default=0):
            where, reason = "later", "said after this request"
        elif manifest.summary_ids:
            kind = parts[seq].kind if seq in parts else "summaries"
            where, reason = "summary", f"covered by one of the {kind}"
        else:
            where, reason = "left_out", "on another branch, or hidden at that time"
        yield TextSighting(request=request, seq=seq, role=message.role, where=where, why=reason)


def _window_reason(seen: SeenContext, seq: int, text: str) -> str:
    if seq not in seen.manifest.clamped:
        return "shown in full"
    is_shown = any(text.casefold() in str(one.get("content")).casefold() for one in seen.context.messages)
    return f"shown in part, {'with' if is_shown else 'without'} these words"


_IN_A_SUMMARY = ("summaries_merged", "recall_over_budget")
"""Reasons to leave a message out because a summary stands for it."""


def _omission(seen: SeenContext, seq: int) -> str | None:
    for one in seen.manifest.omitted:
        if one.reason not in _IN_A_SUMMARY and one.seq <= seq <= (one.last_seq or one.seq):
            return one.reason.replace("_", " ")
    return None


def _print(
    cli: Invocation, turn: Turn, text: str, requests: int, places: Sequence[TextSighting], *, is_summarised: bool
) -> None:
    if cli.out.json:
        cli.out.document(
            {
                "turn_id": turn.id,
                "conversation_id": turn.conversation_id,
                "state": turn.state,
                "text": text,
                "requests": requests,
                "in_summary_text": is_summarised,
                "places": list(places),
            }
        )
        return
    cli.out.text(f"turn {turn.id} ({turn.state}) made {counted(requests, 'model request')}; {one_line(text)!r}:")
    if not requests:
        cli.out.text("no record of what the model was shown: the turn ended before an answer, or the record was erased")
    elif not places:
        cli.out.text("no message of the conversation contains these words")
    else:
        cli.out.table(
            (">request", ">message", "role", "where", "why"),
            [(one.request, one.seq, one.role, one.where.replace("_", " "), one.why) for one in places[:_SHOWN]],
        )
        if len(places) > _SHOWN:
            cli.out.note(f"{len(places) - _SHOWN} more; --json shows all")
    if is_summarised:
        cli.out.text("a summary shown to the model contains these words itself")
