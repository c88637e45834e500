"""The dependency container: everything that the conversations of one open database share.

`bootstrap` fills it from settings and arguments; `Everthread` and `Conversation` hold it and hand each room its part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic, perf_counter
from typing import Final, TypeVar

from everthread.compaction.driver import CompactionDriver
from everthread.compaction.policy import NO_MODEL, CompactionPolicy
from everthread.compaction.sources import Redact
from everthread.compaction.summarise import CircuitBreaker, Summariser
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock
from everthread.core.documents import Read, no_reader
from everthread.core.embeddings import Embedder, Vectors
from everthread.core.errors import StoreError
from everthread.core.events import Listener, NoListener
from everthread.core.jobs import EMBED, OF_OWNER, NewJob, Priority
from everthread.core.log import Intent
from everthread.core.nouns import Ref
from everthread.core.ports import Store
from everthread.core.timings import Timings, TimingsByLabel
from everthread.core.workspaces import Workspaces
from everthread.history import intents
from everthread.history.titles import Titler
from everthread.recall.embedding import SemanticIndex
from everthread.recall.policy import RecallPolicy
from everthread.recall.search import RecallServices
from everthread.text.secrets import redact_secrets

R = TypeVar("R")

TO_EMBED: Final = NewJob(kind=EMBED, priority=Priority.WHEN_IDLE, gather_seconds=1.0)
"""A vector more takes little, but each beginning takes the writer three times: what is said within a second goes
together, and until then its words find it."""
MISSED_VECTORS: Final = (replace(TO_EMBED, priority=Priority.IN_USE),)
"""Somebody looked for what has no vectors yet."""
VECTORS_OF_OWNER: Final = (replace(TO_EMBED, details={OF_OWNER: True}),)
"""Somebody looked in everything an owner has."""
_OWNER_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What all conversations of one open database work with: the store, the clock, models and policies."""

    store: Store
    clock: Clock
    blobs: Blobs | None = None
    """Where large payloads are, when that is not the database."""
    workspaces: Workspaces | None = None
    """Where the files of conversations are."""
    listener: Listener = field(default_factory=NoListener)
    """Receives the events of compactions, recall and turns."""
    policy: CompactionPolicy = field(default_factory=CompactionPolicy)
    """The settings of compaction below those kept in the database."""
    summariser: Summariser | None = None
    summariser_named: Callable[[str], Summariser] | None = None
    """Makes the one that a policy names as its `summary_model`, which goes before the other."""
    titler: Titler | None = None
    """Names conversations; without one, rules do."""
    read: Read = no_reader
    """Reads the files of documents."""
    redact: Redact = redact_secrets
    """Takes secrets out of what summaries are made from."""
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    embedder: Embedder | None = None
    """Turns texts into vectors; without one, words alone are searched."""
    vectors: Vectors | None = None
    """Where vectors are kept."""
    recall: RecallPolicy = field(default_factory=RecallPolicy)
    """Recall settings."""
    owners_embedded: dict[str, float] = field(default_factory=dict)
    """When vectors were last asked for of all that an owner has, by a clock that only goes on."""
    appends: Timings = field(default_factory=Timings)
    """How long writes to the log took, from the call until they were durable."""
    job_timings: TimingsByLabel = field(default_factory=lambda: TimingsByLabel("kind", "outcome"))
    """How long background jobs took in this process."""

    @property
    def meaning(self) -> SemanticIndex | None:
        """What finds by meaning; None where words alone are searched."""
        if self.embedder is None or self.vectors is None:
            return None
        return SemanticIndex(embedder=self.embedder, vectors=self.vectors)

    @property
    def recall_services(self) -> RecallServices:
        """What recall works with."""
        return RecallServices(store=self.store, meaning=self.meaning, policy=self.recall, clock=self.clock)

    @property
    def vectors_outside(self) -> Vectors | None:
        """Vectors that the erase of the database does not reach by itself."""
        return None if self.vectors is self.store.vectors else self.vectors

    @property
    def compaction(self) -> CompactionDriver:
        """What compacts conversations here."""
        return CompactionDriver(
            store=self.store,
            clock=self.clock,
            listener=self.listener,
            policy=self.policy,
            redact=self.redact,
            breaker=self.breaker,
            summariser_for=self.summariser_for,
        )

    async def embed_if_behind(self, is_behind: bool, owner: str, conversation: str | None) -> None:
        """Have vectors made where meaning was asked for and some are missing: in one conversation, or in all that an
        owner has, whose vectors are looked through at most once a minute."""
        if self.meaning is None:
            return
        if conversation is not None:
            if is_behind:
                await self.put_jobs_if_possible(Ref(owner, conversation), MISSED_VECTORS)
            return
        now = monotonic()
        if self.recall.embed_ahead or now - self.owners_embedded.get(owner, -inf) < _OWNER_SECONDS:
            return
        self.owners_embedded[owner] = now
        newest, _ = await self.store.conversations.list(
            owner, limit=1, position=None, include_deleted=False, parent_id=None
        )
        for info in newest:
            await self.put_jobs_if_possible(Ref(owner, info.id), VECTORS_OF_OWNER)

    async def put_jobs_if_possible(self, ref: Ref, jobs: Sequence[NewJob]) -> None:
        """Where nothing can be written it can be read all the same: whoever reads next finds the same work."""
        with suppress(StoreError):
            await self.store.log.write(ref, intents.PutJobs(jobs=jobs))

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        """Commit what an intent decides; where conversations are compacted ahead and this one has become long enough,
        have a compaction checked for."""
        started = perf_counter()
        ahead = self.policy.enabled and self.policy.compact_ahead
        check = intents.CheckCompaction(intent=intent, every=self.policy.ahead_mark + 1, ahead=ahead)
        result = await self.store.log.write(ref, check)
        self.appends.observe(perf_counter() - started)
        return result

    def summariser_for(self, policy: CompactionPolicy) -> Summariser | None:
        """Who writes summaries under this policy; None while the model is left alone, or when there is none."""
        if policy.summary_model == NO_MODEL or not self.breaker.allows(policy):
            return None
        if policy.summary_model is None or self.summariser_named is None:
            return self.summariser
        return self.summariser_named(policy.summary_model)
