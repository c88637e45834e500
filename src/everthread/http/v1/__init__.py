"""/api/v1: conversations and everything that is kept of them, for the owner that asks.

conversations.py  their rows        messages.py  what was said      branches.py  other ways it went
contexts.py       what a model sees  compactions.py  summaries       searching.py  finding it again
exporting.py      files out, archives in                              keeping.py  counts, logs, proof, erasure
chat.py           a message in, an answer out                         turns.py  following and stopping it
memories.py       memories and knowledge                              files.py  uploads and downloads
about.py          what a page asks first                              shapes.py  what answers look like
"""

from __future__ import annotations

from fastapi import APIRouter

from everthread.http.asking import ALWAYS
from everthread.http.errors import EVERYWHERE
from everthread.http.v1 import (
    about,
    branches,
    chat,
    compactions,
    contexts,
    conversations,
    exporting,
    files,
    keeping,
    memories,
    messages,
    searching,
    turns,
)

router = APIRouter(prefix="/api/v1", dependencies=ALWAYS, responses=EVERYWHERE)
for part in (
    about, chat, conversations, messages, branches, turns, contexts, compactions, searching, files, memories,
    exporting, keeping,
):  # fmt: skip
    router.include_router(part.router)
