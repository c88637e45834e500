"""What each kind of job does. A job may be begun twice, by a worker that died and by the one after it; so each of
these leaves the same behind however often it runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from everthread.compaction.due import DueCompaction, is_ahead
from everthread.context.read_view import effective_policy
from everthread.conversation import Conversation
from everthread.core.errors import Erased, NotFound
from everthread.core.jobs import COMPACT, EMBED, IF_AHEAD, OF_OWNER, REMEMBER, TITLE, Job, JobHandler
from everthread.core.nouns import Message, Ref
from everthread.history import read
from everthread.history.intents import SetCompactionCheck
from everthread.history.titles import FIRST_MESSAGES, title_by_model, title_by_rules
from everthread.recall.embedding import SemanticIndex, catch_up
from everthread.recall.memory_extraction import ExtractionOptions, Extractor, extract_memories
from everthread.runtime import Runtime

_EXCHANGE = 4
_BEGINNING = 2000
"""How many messages, and characters of each, a model is shown to name a conversation."""


def job_handlers(runtime: Runtime) -> Mapping[str, JobHandler]:
    """The kinds of jobs that can be done here; what needs an embedder waits for a process that has one."""
    every: dict[str, JobHandler] = {
        COMPACT: partial(_compact, runtime),
        REMEMBER: partial(_remember, runtime),
        TITLE: partial(_title, runtime),
    }
    return every if runtime.meaning is None else {**every, EMBED: partial(_embed, runtime, runtime.meaning)}


async def _compact(runtime: Runtime, job: Job) -> None:
    """Compact a conversation if it still is due. Nothing is left to do for one that was erased meanwhile."""
    try:
        if job.details.get(IF_AHEAD) and not await _is_compacted_ahead(runtime, job):
            await runtime.store.log.write(job.ref, SetCompactionCheck(at_depth=None))
            return
        due = DueCompaction.of(job.details)
        await runtime.compaction.compact_if_due(job.ref, due, is_ahead=is_ahead(job.details))
    except (NotFound, Erased):
        return


async def _is_compacted_ahead(runtime: Runtime, job: Job) -> bool:
    """Whether the conversation itself is set to be compacted ahead."""
    policy = effective_policy(runtime.policy, await runtime.store.views.inputs(job.ref, None))
    return policy.compact_ahead


async def _title(runtime: Runtime, job: Job) -> None:
    """Name a conversation after how it begins, by the model that is set for it, else by its first question; a title
    that somebody gave it stays."""
    try:
        conv = Conversation(runtime, await runtime.store.conversations.get(job.ref))
        if conv.title is not None:
            return
        first = [
            message async for message in conv.messages(limit=FIRST_MESSAGES) if message.role in ("user", "assistant")
        ]
        by_rules = _title_by_rules(first)
        if by_rules is not None:  # else the talk has no subject yet, and the next turn tries again
            await conv.update(title=await _title_by_model(runtime, first) or by_rules)
    except (NotFound, Erased):
        return


async def _title_by_model(runtime: Runtime, first: Sequence[Message]) -> str | None:
    """A title by the model; None if there is no model, or if it fails."""
    if runtime.titler is None or not first:
        return None
    beginning = "\n".join(f"{one.role}: {one.text[:_BEGINNING]}" for one in first[:_EXCHANGE])
    return await title_by_model(runtime.titler, runtime.redact(beginning), runtime.policy.summary_timeout_seconds)


def _title_by_rules(first: Sequence[Message]) -> str | None:
    titles = (title_by_rules(message.text) for message in first if message.role == "user")
    return next((title for title in titles if title is not None), None)


async def _remember(runtime: Runtime, job: Job) -> None:
    """Read what was said since the last time. The rules read also where a model fails."""
    try:
        policy = effective_policy(runtime.policy, await runtime.store.views.inputs(job.ref, None))
        if not policy.extract_memories:
            return
        model = runtime.summariser_for(policy)
        options = ExtractionOptions(
            redact=runtime.redact,
            model=model if isinstance(model, Extractor) else None,
            timeout_seconds=policy.summary_timeout_seconds,
            embedder=runtime.embedder,
        )
        outcome = await extract_memories(runtime.store, job.ref, options)
    except (NotFound, Erased):
        return
    if outcome.model_asked:
        runtime.breaker.note(policy, failed=outcome.model_failed)


async def _embed(runtime: Runtime, meaning: SemanticIndex, job: Job) -> None:
    """Bring the vectors of a conversation up to its log, or those of all that its owner has, the newest first."""
    if not job.details.get(OF_OWNER):
        await _embed_one(runtime, meaning, job.ref)
        return
    async for info in read.conversations(runtime.store.conversations, job.ref.owner):
        await _embed_one(runtime, meaning, Ref(info.owner, info.id))


async def _embed_one(runtime: Runtime, meaning: SemanticIndex, ref: Ref) -> None:
    try:
        await catch_up(runtime.store, meaning, ref)
    except (NotFound, Erased):
        return
