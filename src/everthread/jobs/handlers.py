"""What each kind of job does. A job may be begun twice, by a worker that died and by the one after it; so each of
these leaves the same behind however often it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from everthread.compaction.later import Found
from everthread.context.read_view import policy_of
from everthread.contexts import Means
from everthread.conversation import Conversation
from everthread.core.errors import Erased, NotFound
from everthread.core.jobs import COMPACT, EMBED, REMEMBER, TITLE, Job, Work
from everthread.core.nouns import Message
from everthread.history.titling import title_by, title_of
from everthread.recall import reading
from everthread.recall.embedding import Meaning, catch_up
from everthread.recall.extraction import Extractor

_FIRST = 20
"""Among so many messages a first question is looked for."""
_EXCHANGE = 4
_BEGINNING = 2000
"""So many messages, and characters of each, a model is shown to name a conversation."""


def chores(means: Means) -> Mapping[str, Work]:
    """The kinds of jobs that can be done here; what needs an embedder waits for a process that has one."""
    every: dict[str, Work] = {
        COMPACT: partial(_compact, means),
        REMEMBER: partial(_remember, means),
        TITLE: partial(_title, means),
    }
    return every if means.meaning is None else {**every, EMBED: partial(_embed, means, means.meaning)}


async def _compact(means: Means, job: Job) -> None:
    """Compact a conversation if it still is due. What was erased meanwhile has nothing left to do."""
    try:
        conv = Conversation(means, await means.store.conversations.get(job.ref))
        await conv.compact_if_due(Found.of(job.details))
    except (NotFound, Erased):
        return


async def _title(means: Means, job: Job) -> None:
    """Name a conversation after how it begins, by the model that is set for it, else by its first question; a title
    that somebody gave it stays."""
    try:
        conv = Conversation(means, await means.store.conversations.get(job.ref))
        if conv.title is not None:
            return
        first = [message async for message in conv.messages(limit=_FIRST) if message.role in ("user", "assistant")]
        title = await _title_by_model(means, first) or _title_by_rules(first)
        if title is not None:
            await conv.update(title=title)
    except (NotFound, Erased):
        return


async def _title_by_model(means: Means, first: Sequence[Message]) -> str | None:
    """None where none is set, or where it fails: then the rules name it."""
    if means.titler is None or not first:
        return None
    beginning = "\n".join(f"{one.role}: {one.text[:_BEGINNING]}" for one in first[:_EXCHANGE])
    return await title_by(means.titler, means.redact(beginning), means.policy.summary_timeout_seconds)


def _title_by_rules(first: Sequence[Message]) -> str | None:
    titles = (title_of(message.text) for message in first if message.role == "user")
    return next((title for title in titles if title is not None), None)


async def _remember(means: Means, job: Job) -> None:
    """Read what was said since the last time. The rules read also where a model fails."""
    try:
        policy = policy_of(means.policy, await means.store.views.inputs(job.ref, None))
        if not policy.extract_memories:
            return
        model = means.summariser_for(policy)
        reader = reading.Reader(
            redact=means.redact,
            model=model if isinstance(model, Extractor) else None,
            seconds=policy.summary_timeout_seconds,
            embedder=means.embedder,
        )
        outcome = await reading.read(means.store, job.ref, reader)
    except (NotFound, Erased):
        return
    if outcome.model_asked:
        means.breaker.note(policy, failed=outcome.model_failed)


async def _embed(means: Means, meaning: Meaning, job: Job) -> None:
    """Bring the vectors of a conversation up to its log."""
    try:
        await catch_up(means.store, meaning, job.ref)
    except (NotFound, Erased):
        return
