"""Ids for messages without one, derived from the list so that every capture of it gives the same id."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from everthread.history.ingest import canonical


def made_id(scope: Sequence[str], position: int, payload: Mapping[str, Any]) -> str:
    """Return an id for a message without one; every capture of the same list returns the same."""
    said = canonical(payload)
    return "made-" + sha256(json.dumps([list(scope), position, said]).encode()).hexdigest()[:32]
