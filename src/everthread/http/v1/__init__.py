"""/api/v1: conversations and everything kept of them, for the owner of the key.

To add a route, write it in the module of its resource below; a new module gets a `router` and a place in `ROUTERS`.
Every route gets the shared dependencies and error responses from here. Add its row to docs/reference/http.md and
docs/zh/http.md. A route whose reply holds a conversation's text, but which does not take `ConversationDep`, must set
`request.state.conversation` to its id, or to None if it shows several (see `copy_conversation`), so that an erase
reaches stored idempotent replies.

    about          the server and the caller             chat         a message in, an answer out
    conversations  rows and branches                     turns        follow and cancel an answer
    messages       read, append, edit, search, recall    context      what a model sees
    compactions    summaries and their settings          memories     memories and knowledge documents
    files          uploads and downloads                 exports      files out, archives in
    shares         links to read a conversation           feedback     what a person thinks of an answer
    agent_sessions  sessions of coding agents, and their files
    maintenance    counts, logs, verify, erase            holds        what must not be erased
    schemas        response models that several of them share
"""

from __future__ import annotations

from fastapi import APIRouter

from everthread.http.dependencies import COMMON_DEPENDENCIES
from everthread.http.errors import COMMON_PROBLEMS
from everthread.http.v1 import (
    about,
    agent_sessions,
    chat,
    compactions,
    context,
    conversations,
    exports,
    feedback,
    files,
    holds,
    maintenance,
    memories,
    messages,
    shares,
    turns,
)

ROUTERS = (
    about.router,
    chat.router,
    conversations.router,
    conversations.branch_router,
    messages.router,
    messages.search_router,
    messages.recall_router,
    turns.router,
    context.router,
    compactions.router,
    files.router,
    memories.router,
    exports.router,
    shares.router,
    feedback.router,
    agent_sessions.router,
    maintenance.router,
    holds.router,
)

router = APIRouter(prefix="/api/v1", dependencies=COMMON_DEPENDENCIES, responses=COMMON_PROBLEMS)
for one in ROUTERS:
    router.include_router(one)
