"""/api/v1: conversations and everything that is kept of them, for the owner that asks.

conversations.py  their rows        messages.py  what was said      branches.py  other ways it went
contexts.py       what a model sees  compactions.py  summaries       searching.py  finding it again
exporting.py      files out, archives in                              keeping.py  counts, logs, proof, erasure
shapes.py         what answers look like
"""

from __future__ import annotations

from fastapi import APIRouter

from everthread.http.asking import ALWAYS
from everthread.http.errors import EVERYWHERE
from everthread.http.v1 import (
    branches,
    compactions,
    contexts,
    conversations,
    exporting,
    keeping,
    messages,
    searching,
)

router = APIRouter(prefix="/api/v1", dependencies=ALWAYS, responses=EVERYWHERE)
for part in (conversations, messages, branches, contexts, compactions, searching, exporting, keeping):
    router.include_router(part.router)
