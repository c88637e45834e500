"""The scripted model, for tests; models by name find it in `adapters/models`."""

from __future__ import annotations

from everthread.adapters.models.scripted import Reply, Request, Script, ScriptedModel, ScriptEnded, Step

__all__ = ["Reply", "Request", "Script", "ScriptEnded", "ScriptedModel", "Step"]
