"""The dependency container: everything that the conversations of one open database share.

`bootstrap` fills it from settings and arguments; `Everthread` and `Conversation` hold it and hand each room its part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

from everthread.compaction.driver import CompactionDriver
from everthread.compaction.policy import NO_MODEL, CompactionPolicy
from everthread.compaction.sources import Redact
from everthread.compaction.summarise import CircuitBreaker, Summariser
from everthread.core.blobs import Blobs
from everthread.core.clock import Clock
from everthread.core.documents import Read, no_reader
from everthread.core.embeddings import Embedder, Vectors
from everthread.core.events import Listener, NoListener
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
    """How the old is looked for."""
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

    @property
    def first_check_at(self) -> int:
        """How many messages make a new conversation worth checking for a due compaction; 0: never by itself."""
        return self.policy.message_mark + 1 if self.policy.enabled else 0

    async def write(self, ref: Ref, intent: Intent[R]) -> R:
        """Commit what an intent decides; when it made the conversation long enough, have a compaction checked for."""
        started = perf_counter()
        result = await self.store.log.write(
            ref, intents.CheckCompaction(intent=intent, first_check_at=self.first_check_at)
        )
        self.appends.observe(perf_counter() - started)
        return result

    def summariser_for(self, policy: CompactionPolicy) -> Summariser | None:
        """Who writes summaries under this policy; None while the model is left alone, or when there is none."""
        if policy.summary_model == NO_MODEL or not self.breaker.allows(policy):
            return None
        if policy.summary_model is None or self.summariser_named is None:
            return self.summariser
        return self.summariser_named(policy.summary_model)
