"""Problems as clients get them (RFC 9457): the only place that knows status codes.

Every body says what failed (`detail`), what is safe (`safe`) and what to do next (`next_step`). None holds a stack, a
password, or anything that tells another owner's id from one that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from everthread.core import errors
from everthread.core.errors import EverthreadError, Invalid
from everthread.http.responses import dumps
from everthread.settings import without_passwords

MEDIA_TYPE = "application/problem+json"

_NOTHING_STORED = "Nothing of this request was stored."
_AS_BEFORE = "Everything is as it was before this request."


class ProblemType(NamedTuple):
    """How one kind of error is told."""

    status: int
    title: str
    safe: str
    next_step: str


PROBLEM_TYPES: Mapping[type[EverthreadError], ProblemType] = {
    EverthreadError: ProblemType(500, "It failed", _AS_BEFORE, "Report it with the request id."),
    errors.NotFound: ProblemType(404, "Not found", _AS_BEFORE, "Check the id; lists give those there are."),
    errors.Conflict: ProblemType(409, "The present state does not allow it", _AS_BEFORE, "Read it again, then decide."),
    errors.HeadMoved: ProblemType(
        409, "Somebody else was first", _NOTHING_STORED, "Read the newest messages, then retry."
    ),
    errors.TurnRunning: ProblemType(
        409, "Another turn is running", _NOTHING_STORED, "Wait until it ends, or cancel it; its stream can be read."
    ),
    errors.Erased: ProblemType(409, "It was erased", _NOTHING_STORED, "Use another id: what is erased stays erased."),
    errors.Invalid: ProblemType(
        422, "It cannot be taken", _NOTHING_STORED, "Mend what `detail` names, then send it again."
    ),
    errors.KeyReused: ProblemType(
        422,
        "The idempotency key is taken",
        _NOTHING_STORED,
        "Use a new key for a new request, and the old for a retry.",
    ),
    errors.ContextOverflow: ProblemType(
        422,
        "It does not fit the model",
        "Every message is kept.",
        "Choose a model with a larger window, or less to say.",
    ),
    errors.ModelError: ProblemType(
        502, "The model failed", "What was said before is kept.", "Try again, or another model."
    ),
    errors.MissingExtra: ProblemType(501, "Not installed here", _AS_BEFORE, "Install the extra that `detail` names."),
    errors.StoreError: ProblemType(
        503, "The database failed", "What was acknowledged before is kept.", "Try again; see the server's log."
    ),
    errors.StoreBusy: ProblemType(503, "The database is busy", _NOTHING_STORED, "Try again in a moment."),
    errors.StoreFull: ProblemType(
        503, "There is no room left", _NOTHING_STORED, "Make room on the server, then try again."
    ),
    errors.StoreGone: ProblemType(
        503, "The database went away", "It may or may not be stored.", "Send it again with the same ids and key."
    ),
    errors.StoreDamaged: ProblemType(
        500, "The database is damaged", "Backups are.", "Run everthread verify; restore a backup."
    ),
}
"""Each error, or the nearest above it; a test fails for one that would be told as the root."""

OVERLOADED_SECONDS = 1


class FieldProblem(BaseModel):
    """One part of the input that is wrong."""

    field: str
    message: str


class Problem(BaseModel):
    """What every answer that is no success holds."""

    type: str = Field(description="`urn:everthread:problem:` and the code.")
    title: str
    status: int
    detail: str = Field(description="What failed.")
    code: str = Field(description="A word for programs.")
    retryable: bool = Field(description="Whether the very same request may succeed later.")
    safe: str = Field(description="What is safe.")
    next_step: str = Field(description="What to do next.")
    errors: list[FieldProblem] = Field(default=[], description="Each part of the input that is wrong.")


class HttpProblem(Exception):
    """A request that the doors turn away before any of ours sees it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        next_step: str,
        retryable: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.next_step = next_step
        self.retryable = retryable
        self.headers = headers or {}

    def response(self) -> Response:
        kind = ProblemType(self.status, _TITLES.get(self.status, "Refused"), _NOTHING_STORED, self.next_step)
        return _response(kind, self.code, self.detail, retryable=self.retryable, headers=self.headers)


_TITLES = {
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Not a method of this address",
    409: "Not now",
    413: "Too large",
    422: "It cannot be taken",
    429: "Too many requests",
    500: "It failed",
    503: "Not now",
}


def problem_type(error: type[EverthreadError]) -> ProblemType:
    """How an error is told."""
    return next(PROBLEM_TYPES[one] for one in error.__mro__ if one in PROBLEM_TYPES)


def problem_response(problem: EverthreadError) -> Response:
    """An error of ours as an answer."""
    kind = problem_type(type(problem))
    headers = {"Retry-After": str(OVERLOADED_SECONDS)} if kind.status == 503 else {}
    field = problem.field if isinstance(problem, Invalid) else None
    parts = [{"field": field, "message": str(problem).removeprefix(f"{field}: ")}] if field else []
    detail = without_passwords(str(problem)) if kind.status < 500 or problem.retryable else _only_kind(problem)
    return _response(kind, problem.code, detail, retryable=problem.retryable, headers=headers, parts=parts)


def _only_kind(problem: EverthreadError) -> str:
    """What failed inside is for the server's log; what a caller can act on, such as a missing key, is not."""
    if isinstance(problem, errors.ModelError | errors.MissingExtra):
        return without_passwords(str(problem))
    return "the server could not do it; its log says why, by the request id"


def internal_error_response() -> Response:
    """For what nobody foresaw: no word of it leaves the server's log."""
    kind = PROBLEM_TYPES[EverthreadError]
    return _response(kind, "defect", "a defect of the server; its log says which, by the request id")


def _response(
    kind: ProblemType,
    code: str,
    detail: str,
    *,
    retryable: bool = False,
    headers: Mapping[str, str] | None = None,
    parts: Sequence[Mapping[str, str]] = (),
) -> Response:
    body: dict[str, Any] = {
        "type": f"urn:everthread:problem:{code}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "code": code,
        "retryable": retryable,
        "safe": kind.safe,
        "next_step": kind.next_step,
    }
    if parts:
        body["errors"] = list(parts)
    return Response(dumps(body), kind.status, dict(headers or {}), MEDIA_TYPE)


async def _on_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, EverthreadError)
    return problem_response(problem)


async def _on_refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HttpProblem)
    return problem.response()


async def _on_invalid(request: Request, problem: Exception) -> Response:
    """What FastAPI found wrong, without the values that came in: one of them may be a secret."""
    assert isinstance(problem, RequestValidationError)
    parts = [{"field": _path(error["loc"]), "message": str(error["msg"])} for error in problem.errors()]
    detail = "; ".join(f"{part['field']}: {part['message']}" for part in parts[:5])
    return _response(PROBLEM_TYPES[errors.Invalid], "invalid", detail, parts=parts)


def _path(place: Sequence[object]) -> str:
    """`messages[2].content`, without the word for where it came from."""
    steps = list(place[1:]) or list(place)
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


async def _on_http(request: Request, problem: Exception) -> Response:
    """What the framework itself turns away: an address or a method that there is not."""
    assert isinstance(problem, HTTPException)
    if problem.status_code == 400:  # its word for a body that is no text; for one that is no JSON it has 422, as we do
        return _response(PROBLEM_TYPES[errors.Invalid], "invalid", str(problem.detail).lower())
    code, next_step = _BY_STATUS.get(problem.status_code, ("refused", "See the reference of the API."))
    kind = ProblemType(problem.status_code, _TITLES.get(problem.status_code, "Refused"), _AS_BEFORE, next_step)
    return _response(kind, code, str(problem.detail).lower(), headers=problem.headers)


_BY_STATUS = {
    404: ("not_found", "See the reference of the API for the addresses there are."),
    405: ("method_not_allowed", "See the reference of the API for the methods there are."),
}


def install(app: FastAPI) -> None:
    """Let the app answer with problems."""
    app.add_exception_handler(EverthreadError, _on_error)
    app.add_exception_handler(HttpProblem, _on_refused)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These problems, as an operation declares them."""
    return {
        status: {
            "model": Problem,
            "description": _TITLES.get(status, "Problem"),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


COMMON_PROBLEMS = problem_responses(401, 403, 404, 409, 413, 422, 429, 503)
"""What any operation may answer beside its own."""
