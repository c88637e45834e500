"""Whether it lives, whether it can work, and what it counts."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

from everthread.core.errors import StoreError
from everthread.http.asking import ALWAYS, Et
from everthread.http.edge import RequestCounts
from everthread.http.errors import EVERYWHERE, Refused, declared
from everthread.http.json import Json

router = APIRouter(tags=["health"], dependencies=ALWAYS)


class Health(BaseModel):
    """That it is there."""

    status: str


@router.get("/healthz", response_model=Health, responses=declared(422))
async def healthz() -> Response:
    """The process lives."""
    return Json({"status": "ok"})


@router.get("/readyz", response_model=Health, responses=declared(422, 503))
async def readyz(et: Et, request: Request) -> Response:
    """It can work: the database answers, and it is not about to stop."""
    if getattr(request.app.state, "is_stopping", False):
        raise Refused(503, "stopping", "the server is about to stop", next_step="Ask another one.", retryable=True)
    try:
        await et.store.policy(None)
    except StoreError as problem:
        raise Refused(
            503, "not_ready", "the database does not answer", next_step="Try again in a moment.", retryable=True
        ) from problem
    return Json({"status": "ready"})


@router.get("/metrics", response_class=PlainTextResponse, responses=EVERYWHERE)
async def metrics(et: Et, request: Request) -> Response:
    """Counts in Prometheus' text format: requests, compactions, and what waits to be done."""
    counts: RequestCounts = request.app.state.counts
    counts.note_jobs(await et.jobs(limit=0))
    text = et.metrics.text() + counts.text()
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")
