"""/ok and /info: that this server is there and what it is, for clients that ask before they speak."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter
from starlette.responses import Response

from everthread.http.asking import ALWAYS
from everthread.http.errors import EVERYWHERE
from everthread.http.protocol.doors import Answer

router = APIRouter(tags=["LangGraph: server"], dependencies=ALWAYS, responses=EVERYWHERE)


@router.get("/ok")
async def get_ok() -> Response:
    """That it is there."""
    return Answer({"ok": True})


@router.get("/info")
async def get_info() -> Response:
    """The versions here, and what of the protocol is served."""
    flags = {"assistants": True, "crons": False, "langsmith": False, "full_history": True}
    return Answer(
        {
            "version": version("everthread"),
            "langgraph_py_version": version("langgraph"),
            "flags": flags,
            "host": {"kind": "self-hosted"},
        }
    )
