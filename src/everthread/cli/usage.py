"""`everthread usage`: what turns, and the sessions of agents, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from everthread.cli.app import app, command
from everthread.cli.invocation import Invocation
from everthread.core.errors import NotFound
from everthread.core.nouns import MAX_PAGE
from everthread.core.turns import TurnQuery, TurnState
from everthread.imports.find import find_conversation
from everthread.imports.usage import TOKENS, spent_by_agents

if TYPE_CHECKING:
    from everthread.core.nouns import ConversationInfo
    from everthread.instance import Everthread

_PAGE = 200
_OF_TURNS = ("input_tokens", "output_tokens", "total_tokens")
_NAMED = {
    "model": ("agent", "model"), "project": ("agent", "project"), "session": ("agent", "session", "title"),
}  # fmt: skip
"""The columns that name a row, by what is added up in it."""


@dataclass(slots=True)
class _Row:
    turns: int = 0
    failed: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    cost: float = 0.0


class _Rows(dict[tuple[str | None, ...], _Row]):
    """Rows by what is added up in them."""

    def __init__(self, by: str, infos: Iterable[ConversationInfo]) -> None:
        super().__init__()
        self._by = by
        self._known = {info.id: info for info in infos}

    def of(self, id: str, agent: object, model: str | None) -> _Row:
        """The row of what a model answered in a conversation. A subagent's answers count to its session."""
        info = self._known.get(id)
        while info is not None and info.parent_id in self._known:
            info = self._known[info.parent_id]
        named: tuple[Any, ...] = (agent, model)
        if self._by == "project":
            named = (agent, None if info is None else info.metadata.get("cwd"))
        elif self._by == "session":
            named = (agent, id, None) if info is None else (agent, info.id, info.title)
        return self.setdefault(named, _Row())


@command(app)
async def usage(
    cli: Invocation,
    conversation: Annotated[
        str | None, typer.Argument(metavar="[CONVERSATION]", help="Its id, or its beginning; without it, all.")
    ] = None,
    by: Annotated[
        Literal["model", "project", "session"], typer.Option("--by", help="What to add up in a row.")
    ] = "model",
) -> None:
    """Show how many tokens turns and the sessions of agents took, as the providers counted them, and what they cost."""
    async with cli.open() as et:
        id = None if conversation is None else (await find_conversation(et, cli.owner, conversation)).id
        rows = _Rows(by, await _conversations(et, cli.owner))
        await _add_turns(et, cli.owner, id, rows)
        async for spent in spent_by_agents(et, cli.owner, id):
            row = rows.of(spent.conversation.id, spent.conversation.metadata.get("agent"), spent.model)
            row.turns += spent.answers
            row.tokens.update(spent.tokens, total_tokens=spent.tokens.total())
            row.cost += spent.cost
    found = sorted(rows.items(), key=lambda one: -one[1].tokens["total_tokens"])
    if cli.out.json:
        for named, row in found:
            cli.out.document(_as_document(by, named, row))
    elif not found:
        raise NotFound("no tokens were counted yet, neither in turns (`everthread chat`) nor in sessions of agents")
    else:
        columns = (*_NAMED[by], ">turns", ">failed", ">tokens in", ">from cache", ">to cache", ">tokens out", ">cost")
        cli.out.table(columns, [(*_names(by, named), *_figures(row)) for named, row in found])


async def _conversations(et: Everthread, owner: str) -> list[ConversationInfo]:
    found: list[ConversationInfo] = []
    cursor = None
    while True:
        page = await et.conversations.list(owner, limit=MAX_PAGE, cursor=cursor, include_deleted=True)
        found += [conversation.info for conversation in page.items]
        if (cursor := page.next_cursor) is None:
            return found


async def _add_turns(et: Everthread, owner: str, id: str | None, rows: _Rows) -> None:
    before = None
    while page := await et.store.turns.list(TurnQuery(owner=owner, conversation=id, before=before, limit=_PAGE)):
        for turn in page:
            row = rows.of(turn.conversation_id, None, turn.model)
            row.turns += 1
            row.failed += turn.state is TurnState.FAILED
            row.tokens.update({name: turn.usage.get(name, 0) for name in _OF_TURNS})
        before = page[-1].number


def _as_document(by: str, named: Sequence[str | None], row: _Row) -> dict[str, Any]:
    tokens = {name: row.tokens[name] for name in (*TOKENS, "total_tokens")}
    return {
        **dict(zip(_NAMED[by], named, strict=True)), "turns": row.turns, "failed": row.failed, **tokens,
        "cost": round(row.cost, 6) if row.cost else None,
    }  # fmt: skip


def _names(by: str, named: Sequence[str | None]) -> list[str]:
    own = "as set" if by == "model" and named[0] is None else ""  # no model was named: the one that is set
    return [name or (own if index == 1 else "") for index, name in enumerate(named)]


def _figures(row: _Row) -> list[str]:
    tokens = [f"{row.tokens[name]:,}" for name in TOKENS]
    return [f"{row.turns:,}", f"{row.failed:,}", *tokens, f"${row.cost:,.2f}" if row.cost else ""]
