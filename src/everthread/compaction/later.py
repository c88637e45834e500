"""A compaction that can wait: what it was found due with, as the details of a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from everthread.context.budget import Budget
from everthread.core.jobs import COMPACT, NewJob
from everthread.core.log import BranchName

BOUNDLESS = Budget(window=100_000_000, output_reserve=0)
"""For who does not know the model: no token mark is ever passed, only that of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What somebody knew who found a compaction due."""

    budget: Budget = BOUNDLESS
    system_tokens: int = 0
    """What the system prompt counted to: it is not kept, and the same mark is to be passed again."""
    branch: BranchName = None
    compaction: Mapping[str, Any] | None = None
    """The request's own settings."""

    @property
    def known_budget(self) -> Budget | None:
        return None if self.budget == BOUNDLESS else self.budget

    def as_job(self) -> NewJob:
        return NewJob(kind=COMPACT, details=asdict(self))

    @classmethod
    def of(cls, details: Mapping[str, Any]) -> Found:
        """From a job; an append's has no details."""
        return cls(**{**details, "budget": Budget(**details["budget"])}) if details else cls()
