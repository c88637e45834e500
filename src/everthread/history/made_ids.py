"""Who a message without an id is: every capture of the same list gives it the same one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from everthread.history.ingest import canonical


def made_id(scope: Sequence[str], position: int, payload: Mapping[str, Any]) -> str:
    """An id for a message that has none, which every capture of the same list makes again."""
    said = canonical(payload)
    return "made-" + sha256(json.dumps([list(scope), position, said]).encode()).hexdigest()[:32]
