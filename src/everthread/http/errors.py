"""Errors as clients get them: problem details (RFC 9457). The only module that knows status codes.

Every body says what failed (`detail`), what is safe (`safe`) and what to do next (`next_step`). None holds a stack
trace, a password, or anything that tells another owner's id from one that does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from everthread.core import errors
from everthread.core.errors import EverthreadError, Invalid
from everthread.core.plain_words import plain_words
from everthread.http.responses import dumps
from everthread.settings import without_passwords

MEDIA_TYPE = "application/problem+json"

_NOTHING_STORED = "Nothing from this request was stored."
_UNCHANGED = "Nothing was changed."
_UNKNOWN = "Everything acknowledged before is kept; what this request did before it failed is not known."


class ProblemType(NamedTuple):
    """The parts of a problem that all errors of one type share."""

    status: int
    title: str
    safe: str
    next_step: str


PROBLEM_TYPES: Mapping[type[EverthreadError], ProblemType] = {
    EverthreadError: ProblemType(500, "Internal error", _UNKNOWN, "Report it with the request id."),
    errors.NotFound: ProblemType(404, "Not found", _UNCHANGED, "Check the id; the list endpoints show what exists."),
    errors.Conflict: ProblemType(409, "Conflict with the current state", _UNCHANGED, "Read it again, then decide."),
    errors.HeadMoved: ProblemType(
        409, "Someone else wrote first", _NOTHING_STORED, "Read the newest messages, then retry."
    ),
    errors.TurnRunning: ProblemType(
        409, "Another turn is running", _NOTHING_STORED, "Wait until it ends, or cancel it; its stream can be followed."
    ),
    errors.Held: ProblemType(
        409, "Under a legal hold", "Nothing was erased.", "Ask whoever holds it; an admin can release it."
    ),
    errors.Erased: ProblemType(409, "Erased", _NOTHING_STORED, "Use another id: what was erased stays erased."),
    errors.Invalid: ProblemType(422, "Invalid input", _NOTHING_STORED, "Fix what `detail` names and send it again."),
    errors.KeyReused: ProblemType(
        422, "Idempotency key reused", _NOTHING_STORED, "Use a new key for a new request, the same key for a retry."
    ),
    errors.ContextOverflow: ProblemType(
        422,
        "Too long for the model",
        "Every message is kept.",
        "Use a model with a larger window, or say less.",
    ),
    errors.GraphFailed: ProblemType(
        424,
        "The graph could not be made",
        _UNCHANGED,
        "Fix the function that makes it; `detail` and the server's log say what it raised.",
    ),
    errors.ModelError: ProblemType(
        502, "The model failed", "Everything said so far is kept.", "Try again, or use another model."
    ),
    errors.MissingExtra: ProblemType(501, "Not installed", _UNCHANGED, "Install the extra that `detail` names."),
    errors.StoreError: ProblemType(
        503, "The database failed", "Everything acknowledged before is kept.", "Try again; see the server's log."
    ),
    errors.StoreBusy: ProblemType(503, "The database is busy", _NOTHING_STORED, "Try again in a moment."),
    errors.StoreFull: ProblemType(
        503, "No disk space left", _NOTHING_STORED, "Free some space on the server, then try again."
    ),
    errors.StoreGone: ProblemType(
        503, "The database went away", "It may or may not have been stored.", "Send it again with the same ids and key."
    ),
    errors.StoreDamaged: ProblemType(
        500, "The database is damaged", "Backups are safe.", "Run `everthread verify`; restore a backup."
    ),
}
"""An error has the type of its nearest ancestor here; a test fails for one whose nearest is the root."""

RETRY_AFTER_SECONDS = 1
"""Sent with every 503."""


class FieldProblem(BaseModel):
    """One invalid part of the input."""

    field: str
    message: str


class Problem(BaseModel):
    """The body of every error response."""

    type: str = Field(description="`urn:everthread:problem:` and the code.")
    title: str
    status: int
    detail: str = Field(description="What failed.")
    code: str = Field(description="For programs: stable, one per kind of error.")
    retryable: bool = Field(description="Whether the very same request may succeed later.")
    safe: str = Field(description="What is safe.")
    next_step: str = Field(description="What to do next.")
    errors: list[FieldProblem] = Field(default=[], description="Each invalid part of the input.")


class HttpProblem(Exception):
    """A request that is refused by HTTP itself (its caller, size, rate …), not by what it asks for; or a turn that
    failed, whose question is kept (`safe`)."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        next_step: str,
        safe: str = _NOTHING_STORED,
        retryable: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.next_step = next_step
        self.safe = safe
        self.retryable = retryable
        self.headers = headers or {}

    def response(self) -> Response:
        type = ProblemType(self.status, _TITLES.get(self.status, "Refused"), self.safe, self.next_step)
        return _response(type, self.code, self.detail, retryable=self.retryable, headers=self.headers)


_TITLES = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    413: "Too large",
    422: "Invalid input",
    424: "Failed dependency",
    429: "Too many requests",
    500: "Internal error",
    501: "Not installed",
    502: "The model failed",
    503: "Service unavailable",
}


def problem_type(error: type[EverthreadError]) -> ProblemType:
    return next(PROBLEM_TYPES[ancestor] for ancestor in error.__mro__ if ancestor in PROBLEM_TYPES)


def problem_response(problem: EverthreadError) -> Response:
    """An error of ours as a response."""
    type_ = problem_type(type(problem))
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if type_.status == 503 else {}
    field = problem.field if isinstance(problem, Invalid) else None
    parts = [{"field": field, "message": str(problem).removeprefix(f"{field}: ")}] if field else []
    # What failed inside is for the server's log; what a caller can act on, such as a model's missing key, is not.
    is_for_caller = (
        type_.status < 500 or problem.retryable or isinstance(problem, errors.ModelError | errors.MissingExtra)
    )
    detail = without_passwords(str(problem)) if is_for_caller else "the server failed; its log has the request id"
    return _response(type_, problem.code, detail, retryable=problem.retryable, headers=headers, parts=parts)


def internal_error_response() -> Response:
    """The response to an unforeseen exception: its details stay in the server's log."""
    return _response(PROBLEM_TYPES[EverthreadError], "defect", "a bug in the server; its log has the request id")


def _response(
    type: ProblemType,
    code: str,
    detail: str,
    *,
    retryable: bool = False,
    headers: Mapping[str, str] | None = None,
    parts: Sequence[Mapping[str, str]] = (),
) -> Response:
    body: dict[str, Any] = {
        "type": f"urn:everthread:problem:{code}",
        "title": type.title,
        "status": type.status,
        "detail": _sentence(detail),
        "code": code,
        "retryable": retryable,
        "safe": _sentence(type.safe),
        "next_step": _sentence(type.next_step),
    }
    if parts:
        body["errors"] = list(parts)
    return Response(dumps(body), type.status, dict(headers or {}), MEDIA_TYPE)


def _sentence(text: str) -> str:
    """The text with a full stop, since clients show what failed and what to do next one after the other."""
    return text if not text or text.endswith((".", "!", "?", "…", "。", "！", "？")) else f"{text}."


async def _on_error(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, EverthreadError)
    return problem_response(problem)


async def _on_http_problem(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, HttpProblem)
    return problem.response()


async def _on_invalid_request(request: Request, problem: Exception) -> Response:
    """What FastAPI found wrong, without the values that came in: one of them may be a secret."""
    assert isinstance(problem, RequestValidationError)
    found = problem.errors()
    if found and found[0]["type"] == "json_invalid":
        detail = f"the body is not valid JSON, at character {found[0]['loc'][-1]}"
        return _response(PROBLEM_TYPES[errors.Invalid], "invalid", detail, parts=[{"field": "body", "message": detail}])
    messages: dict[str, list[str]] = {}
    for error in found:
        field = _field_path(error["loc"], is_unknown=error["type"] == "extra_forbidden")
        messages.setdefault(field, []).append(plain_words(str(error["msg"])))
    parts = [{"field": field, "message": ", or ".join(dict.fromkeys(said))} for field, said in messages.items()]
    detail = "; ".join(f"{part['field']}: {part['message']}" for part in parts[:5])
    return _response(PROBLEM_TYPES[errors.Invalid], "invalid", detail, parts=parts)


_TYPE_NAME = re.compile(r"(?:str|int|float|bool|none|(?:list|dict)\b.*|[\w-]{1,100}\[.{0,500}\])")
"""How pydantic names the one of several types that it tried."""


def _field_path(location: Sequence[object], *, is_unknown: bool) -> str:
    """`messages[2].content`, without FastAPI's first word (`body`, `query` …) and without the names of types. The last
    step of an unknown field is what the caller calls it."""
    steps = list(location[1:]) or list(location)
    last = steps[-1:] if is_unknown else []
    kept = [
        step for step in steps[: len(steps) - len(last)] if isinstance(step, int) or not _TYPE_NAME.fullmatch(str(step))
    ]
    steps = [*kept, *last]
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


async def _on_http_exception(request: Request, problem: Exception) -> Response:
    """What the framework itself refuses: an unknown path or method."""
    assert isinstance(problem, HTTPException)
    if problem.status_code == 400:  # a body that is not text; for one that is not JSON FastAPI has 422, as we do
        return _response(PROBLEM_TYPES[errors.Invalid], "invalid", str(problem.detail).lower())
    code, next_step = _FRAMEWORK_ERRORS.get(problem.status_code, ("refused", "See the API reference."))
    type = ProblemType(problem.status_code, _TITLES.get(problem.status_code, "Refused"), _UNCHANGED, next_step)
    return _response(type, code, str(problem.detail).lower(), headers=problem.headers)


_FRAMEWORK_ERRORS = {
    404: ("not_found", "See the API reference for the available paths."),
    405: ("method_not_allowed", "See the API reference for the available methods."),
}


def install(app: FastAPI) -> None:
    """Let the app answer with problem details."""
    app.add_exception_handler(EverthreadError, _on_error)
    app.add_exception_handler(HttpProblem, _on_http_problem)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_exception)


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """These errors, as an operation declares them in OpenAPI."""
    return {
        status: {
            "model": Problem,
            "description": _TITLES.get(status, "Problem"),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status in statuses
    }


COMMON_PROBLEMS = problem_responses(401, 403, 404, 409, 413, 422, 429, 503)
"""What any operation may answer beside its own errors."""
