"""`everthread recall`: what would be brought back for a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.cli.options import ConversationArgument, SecretsOption
from everthread.cli.output import Styled, format_time
from everthread.imports.find import find_conversation
from everthread.text.printable import one_line, printable
from everthread.text.secrets import redact_secrets

if TYPE_CHECKING:
    from everthread.core.nouns import Message
    from everthread.instance import Everthread
    from everthread.recall.search import RecallHit

_LEAST_SHOWN = 0.0005
REASONS = {
    "words": "it has words of the question, or related ones: those in brackets",
    "meaning": "it says something similar in other words",
    "neighbours": "messages beside it that it belongs to have to do with the question",
    "topic": "the question's words are used around it",
    "speaker": "who said it: somebody whom the question names; else the user, or the assistant if it is asked for",
    "date": "it was said when the question asks about",
    "wish": "a standing wish that may govern what is to be done",
}
"""What each part of a score means, as `--explain` prints it."""


@command(app)
async def recall(
    cli: Invocation,
    conversation: ConversationArgument,
    question: Annotated[list[str], typer.Argument(metavar="QUESTION…", help="What is asked.")],
    limit: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="The maximum number.")] = 10,
    max_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="The maximum of all hits together, in tokens.")
    ] = 2000,
    scope: Annotated[str | None, typer.Option(metavar="SCOPE", help="conversation or owner.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why each was found, with its score's parts.")
    ] = False,
    around: Annotated[
        int, typer.Option(min=0, max=50, metavar="N", help="Show so many messages before and after each, too.")
    ] = 0,
    show_secrets: SecretsOption = False,
) -> None:
    """Show what earlier messages would be recalled for a question, best first."""
    from everthread.recall.policy import check_scope  # noqa: PLC0415 - startup

    text = " ".join(question)
    if not text.strip():
        raise typer.BadParameter("give a question, such as: what can she not eat?")
    where = None if scope is None else check_scope(scope)
    async with cli.open() as et:
        found = await find_conversation(et, cli.owner, conversation)
        hits = await found.recall(text, limit=limit, max_tokens=max_tokens, scope=where, show_secrets=show_secrets)
        beside = [await _beside(et, cli.owner, hit, around, show_secrets=show_secrets) for hit in hits]
    if cli.out.json:
        cli.out.document(
            {
                "hits": [
                    asdict(hit) | (beside_it if around else {}) for hit, beside_it in zip(hits, beside, strict=True)
                ],
                "only_weak": hits.only_weak,
                "asks_for_several": hits.asks_for_several,
                "by_meaning": hits.by_meaning,
                "is_behind": hits.is_behind,
                "truncated": hits.truncated,
                "unanswered": list(hits.unanswered),
            }
        )
        return
    shown = list(zip(hits, beside, strict=True))
    for hit, beside_it in sorted(shown, key=lambda one: one[0].said_at) if hits.asks_for_several else shown:
        cli.out.pieces(map(_as_line, beside_it["before"]))
        cli.out.pieces(_as_text(hit, "" if hit.conversation_id == found.id else hit.conversation_id))
        cli.out.pieces(map(_as_line, beside_it["after"]))
        if explain:
            cli.out.pieces([(f"       {hit.score:.3f} = {_explained(hit)}\n", "dim")])
    if explain:
        for name in (name for name in REASONS if any(name in _shown_parts(hit) for hit in hits)):
            cli.out.note(f"{name}: {REASONS[name]}")
    if not hits:
        cli.out.note("nothing found; try a word that was actually said, such as a name or a number")
    elif hits.only_weak:
        cli.out.note("only weak matches: what you ask for was probably said in other words, or never")
    if not hits.by_meaning:
        cli.out.note("searched by words only; `everthread doctor` tells how to search by meaning too")


async def _beside(
    et: Everthread, owner: str, hit: RecallHit, count: int, *, show_secrets: bool
) -> dict[str, list[dict[str, Any]]]:
    """The messages right before and after a hit."""
    if not count:
        return {"before": [], "after": []}
    conv = await et.conversations.get(hit.conversation_id, owner=owner)
    after = [message async for message in conv.messages(after=hit.seqs[-1], limit=count)]
    beside = {"before": await conv.tail(count, before=hit.seqs[0]), "after": after}
    return {name: [_as_row(one, show_secrets=show_secrets) for one in those] for name, those in beside.items()}


def _as_row(message: Message, *, show_secrets: bool) -> dict[str, Any]:
    text = message.text if show_secrets else redact_secrets(message.text)
    return {"seq": message.seq, "speaker": message.name or message.role, "text": text}


def _as_line(row: Mapping[str, Any]) -> Styled:
    return f"{'#' + str(row['seq']):>6}  {one_line(row['speaker'])}: {one_line(row['text'])}\n", "dim"


def _explained(hit: RecallHit) -> str:
    """Such as `words 0.610 (harbour) + neighbours 0.200`; what rounds to nothing is left out."""
    parts = [
        f"{name} {part:.3f}" + (f" ({', '.join(hit.words)})" if name == "words" else "")
        for name, part in _shown_parts(hit).items()
    ]
    return " + ".join(parts)


def _shown_parts(hit: RecallHit) -> dict[str, float]:
    return {name: part for name, part in hit.parts.items() if part >= _LEAST_SHOWN}


def _as_text(hit: RecallHit, where: str) -> list[Styled]:
    numbers = ", ".join(f"#{seq}" for seq in hit.seqs)
    place = f"  {one_line(where)}" if where else ""
    weak = "  weak match" if hit.match == "weak" else ""
    head = f"  {one_line(hit.speaker)}  {format_time(hit.said_at)}{place}{weak}\n"
    lines = [(f"       {line}\n", "") for line in printable(hit.text).split("\n")]
    return [(f"{numbers:>6}", "bold cyan"), (head, "dim"), *lines]
