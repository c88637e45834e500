"""What each kind of job does. A job may be begun twice, by a worker that died and by the one after it; so each of
these leaves the same behind however often it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from everthread.compaction.later import Found
from everthread.contexts import Means
from everthread.conversation import Conversation
from everthread.core.errors import Erased, NotFound
from everthread.core.jobs import COMPACT, Job, Work


def chores(means: Means) -> Mapping[str, Work]:
    """The kinds of jobs that this version knows how to do."""
    return {COMPACT: partial(_compact, means)}


async def _compact(means: Means, job: Job) -> None:
    """Compact a conversation if it still is due. What was erased meanwhile has nothing left to do."""
    try:
        conv = Conversation(means, await means.store.get(job.ref))
        await conv.compact_if_due(Found.of(job.details))
    except (NotFound, Erased):
        return
