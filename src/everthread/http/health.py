"""Health checks and metrics; and what LangGraph's clients ask before they start (`/ok`, `/info`)."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from everthread.core.errors import StoreError
from everthread.http.admission import stopping_problem
from everthread.http.dependencies import COMMON_DEPENDENCIES, EverthreadDep
from everthread.http.errors import COMMON_PROBLEMS, HttpProblem, problem_responses
from everthread.http.request_metrics import RequestMetrics
from everthread.http.responses import JsonResponse
from everthread.instance import Everthread

_READY_SECONDS = 5.0

router = APIRouter(dependencies=COMMON_DEPENDENCIES)


class Health(BaseModel):
    """The state of the server."""

    status: str


@router.get("/healthz", tags=["health"], response_model=Health, responses=problem_responses(422))
async def healthz() -> Response:
    """The process is running."""
    return JsonResponse({"status": "ok"})


@router.get("/readyz", tags=["health"], response_model=Health, responses=problem_responses(422, 503))
async def readyz(et: EverthreadDep, request: Request) -> Response:
    """The server can work: the database answers, and it is not about to stop."""
    if request.app.state.is_stopping:
        raise stopping_problem()
    if not await _is_database_there(request.app, et):
        raise HttpProblem(
            503, "not_ready", "the database is not responding", next_step="Try again in a moment.", retryable=True
        )
    return JsonResponse({"status": "ready"})


async def _is_database_there(app: FastAPI, et: Everthread) -> bool:
    """Whether it answers soon. One question at a time: where none is answered, more of them would take up all
    connections."""
    asked: asyncio.Task[bool] | None = app.state.database_probe
    if asked is None or asked.done():
        asked = app.state.database_probe = asyncio.create_task(_ask(et), name="is the database there?")
    await asyncio.wait([asked], timeout=_READY_SECONDS)
    return asked.done() and asked.result()


async def _ask(et: Everthread) -> bool:
    try:
        await et.store.views.policy(None)
    except StoreError:
        return False
    return True


@router.get("/metrics", tags=["health"], response_class=PlainTextResponse, responses=COMMON_PROBLEMS)
async def metrics(et: EverthreadDep, request: Request) -> Response:
    """Metrics in Prometheus' text format: requests, turns, compactions, background jobs, and waits."""
    requests: RequestMetrics = request.app.state.metrics
    requests.set_jobs(await et.jobs(limit=0), await et.store.jobs.backlog(), et.runtime.clock())
    text = et.metrics.text() + requests.text()
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/ok", tags=["LangGraph: server"], responses=COMMON_PROBLEMS)
async def get_ok() -> Response:
    """The server is there."""
    return JsonResponse({"ok": True})


@router.get("/info", tags=["LangGraph: server"], responses=COMMON_PROBLEMS)
async def get_info() -> Response:
    """The versions, and which parts of the protocol are served."""
    flags = {"assistants": True, "crons": True, "langsmith": False, "full_history": True}
    return JsonResponse(
        {
            "version": version("everthread"),
            "langgraph_py_version": version("langgraph"),
            "flags": flags,
            "host": {"kind": "self-hosted"},
        }
    )
