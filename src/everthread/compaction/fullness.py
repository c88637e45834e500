"""How full a request would be now: the one measure that the page, the commands and the chat show."""

from __future__ import annotations

from dataclasses import dataclass

from everthread.compaction.due import due_trigger
from everthread.compaction.policy import CompactionPolicy, Trigger
from everthread.context import read_view
from everthread.context.assemble import Context
from everthread.context.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPreview:
    """A request as it would be sent now, and how far it is from a compaction.

    ```python
    preview = await conv.preview_context(question="What can she not eat?")
    print(preview.due, [(piece.kind, piece.seqs) for piece in preview.context.pieces])
    ```
    """

    context: Context
    policy: CompactionPolicy
    budget: Budget
    due: Trigger | None
    """Why a compaction is due, if one is."""
    uncovered: int
    """Messages that no summary covers."""

    @property
    def mark_tokens(self) -> int:
        """Where compaction begins."""
        return int(self.policy.threshold * self.context.limit)

    @property
    def is_exact(self) -> bool:
        """Whether the count is the model's own: for another vocabulary the limit is divided by an estimated factor."""
        return self.budget.factor == 1.0 and all(part.exact for part in self.context.parts)


def measure(view: read_view.View, context: Context, budget: Budget) -> ContextPreview:
    """How full the view's request for a model with this budget is."""
    return ContextPreview(
        context=context,
        policy=view.policy,
        budget=budget,
        due=due_trigger(view, context, budget),
        uncovered=view.uncovered,
    )
