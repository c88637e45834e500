"""Finds a conversation by its id, by the beginning of that, or by the id that its agent gave it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from everthread.core.errors import Invalid, NotFound
from everthread.core.nouns import MAX_PAGE

if TYPE_CHECKING:
    from everthread.conversation import Conversation
    from everthread.instance import Everthread

_SHOWN_MATCHES = 5


async def find_conversation(
    et: Everthread, owner: str, given: str, *, among: Callable[[Conversation], bool] = lambda _: True
) -> Conversation:
    """The conversation with this id, or the only one of those `among` others whose id begins so, with or without the
    name of its agent. The ids of a session and of its subagents begin alike: they mean the session."""
    with suppress(NotFound):
        return await et.conversations.get(given, owner)
    found: dict[str, Conversation] = {}
    cursor = None
    while given:
        page = await et.conversations.list(owner, limit=MAX_PAGE, cursor=cursor, include_deleted=True)
        found |= {one.id: one for one in page.items if _begins_so(one.id, given) and among(one)}
        cursor = page.next_cursor
        if cursor is None:
            break
    exact = [id for id in found if id.partition(":")[2] == given]
    above = [id for id, one in found.items() if one.parent_id not in found]
    return found[_only_one(given, exact or above, "conversation", "`everthread ls` lists them")]


def _begins_so(id: str, given: str) -> bool:
    return id.startswith(given) or id.partition(":")[2].startswith(given)


def only_one(given: str, ids: Iterable[str], what: str, see: str) -> str:
    """The id that was given, or the only one that begins so; else an error that says what it is an id of."""
    return _only_one(given, [id for id in ids if given and id.startswith(given)], what, see)


def _only_one(given: str, matching: Sequence[str], what: str, see: str) -> str:
    if given in matching or len(matching) == 1:
        return given if given in matching else matching[0]
    if not matching:
        raise NotFound(f"no {what} {given!r}; {see}")
    some = ", ".join(matching[:_SHOWN_MATCHES]) + (", …" if len(matching) > _SHOWN_MATCHES else "")
    raise Invalid(f"{given!r} begins {len(matching):,} ids: {some}; give more of it", field=what)
