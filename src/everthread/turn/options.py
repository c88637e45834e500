"""What a request may say beside its message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler

from everthread.core.turns import WhenBusy
from everthread.turn.agent import GENERAL
from everthread.turn.ports import ModelGiven


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The fields that `run_turn` takes by name."""

    model: ModelGiven = None
    """A name such as `openai:gpt-5-mini`, or a LangChain chat model; None: the one that is set."""
    model_pref: str | None = None
    """default, vision, code or reasoning: which of the models that are set."""
    agent_type: str = GENERAL
    system: str | None = None
    """Goes before the prompt of the agent's type."""
    features: Mapping[str, bool] | None = None
    """Switches of this request: summary, recall, memory, retrieval."""
    allowed_tools: Sequence[str] = ()
    """Tools beside those of the agent's type."""
    persistent_tools: Sequence[str] | None = None
    """Tools that the session keeps from here on; None leaves them as they are."""
    active_skill: str | None = None
    max_loops: int | None = None
    kb_prefix: str | None = None
    use_retrieval: bool | None = None
    workspace: Any = None
    uploaded_files: Sequence[Mapping[str, Any]] | None = None
    when_busy: WhenBusy = "enqueue"
    """What becomes of the message while another turn of the conversation runs."""
    debug: bool = False
    callbacks: Sequence[BaseCallbackHandler] = ()
    """LangChain callbacks, such as Langfuse's."""
    turn_id: str | None = None
    """The same id again is the same turn."""
    kind: str = "turn"
    assistant: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Kept with the turn's row."""
