"""Errors of HTTP responses, in the format that OpenAI clients understand.

GatewayError
└── HttpError                 has a status, a code and, if waiting helps, the seconds to wait
    ├── InvalidRequestError   400, 404, 409, 410, 413, 414, 415, 422: the caller can correct it
    ├── UnauthorizedError     401: the key is missing or unknown
    ├── ForbiddenError        403: the key does not have the required permission
    ├── LimitedError          429: a limit is exhausted
    └── UnavailableError      503: the desk is currently unreachable
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from broker.errors import BrokerUnavailableError
from gateway.errors import BusyError, GatewayError, MessageError, StoppingError
from gateway.review_ports import DocumentRefusedError, DocumentUnknownError

E = TypeVar("E", bound=Exception)
AWAY_SECONDS = 2.0
_STATUS_OF_REFUSALS = {
    "document_too_large": 413, "unsupported_document": 415, "too_many_documents": 409
}  # fmt: skip
_OBJECT_EXPECTED = ("model_attributes_type", "model_type", "dict_type")
_KINDS = {bytes: "text", list: "a list", dict: "an object", bool: "a Boolean", type(None): "null"}
_EXPECTATIONS = {
    "Input should be": "expected",
    "String should match pattern": "expected a string that matches the pattern",
    "String should have": "expected a string with",
    "List should have": "expected a list with",
}
"""Maps the beginnings of pydantic's messages to the beginnings of ours."""


class HttpError(GatewayError):
    """An error with an HTTP status."""

    status: int = 500
    kind: ClassVar[str] = "api_error"
    """OpenAI's `type` for an error."""

    def __init__(
        self,
        message: str,
        *,
        code: str,
        param: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.param = param
        self.retry_after_seconds = retry_after_seconds
        self.headers: dict[str, str] = {}


class InvalidRequestError(HttpError):
    """The caller can correct the request."""

    kind = "invalid_request_error"

    def __init__(
        self, message: str, *, code: str, param: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message, code=code, param=param)
        self.status = status


class UnauthorizedError(HttpError):
    """The API key is missing or unknown."""

    status = 401
    kind = "authentication_error"


class ForbiddenError(HttpError):
    """The API key does not have the required permission."""

    status = 403
    kind = "permission_error"


class LimitedError(HttpError):
    """A limit is exhausted."""

    status = 429
    kind = "rate_limit_error"


class UnavailableError(HttpError):
    """The desk is currently unreachable."""

    status = 503


class Problem(BaseModel):
    """The description of an error."""

    message: str
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = Field(None, description="invalid field of the request")
    code: str | None = None
    request_id: str = Field(description="id of this request in the logs")


class Failure(BaseModel):
    """The body of every error."""

    error: Problem


def unknown(what: str) -> InvalidRequestError:
    """Return the error for an object that does not exist or belongs to another caller; the two are
    indistinguishable.
    """
    return InvalidRequestError(f"there is no such {what}", code="not_found", status=404)


def failure(error: HttpError, request_id: str) -> Response:
    """Return the response for an error."""
    problem = Problem(
        message=str(error),
        type=error.kind,
        param=error.param,
        code=error.code,
        request_id=request_id,
    )
    headers = {**error.headers, **waiting_headers(error)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    # ASCII only: names from a request may contain characters that cannot be encoded.
    body = json.dumps({"error": problem.model_dump()})
    return Response(body, error.status, headers, "application/json")


def waiting_headers(error: HttpError) -> dict[str, str]:
    """Return the headers with the time to wait, if it is known."""
    if error.retry_after_seconds is None:
        return {}
    return {"Retry-After": str(max(1, math.ceil(error.retry_after_seconds)))}


def describe_problem(error: Mapping[str, Any]) -> str:
    """Return what was expected, and the type of the value that was received."""
    if error["type"] == "extra_forbidden":
        return "unknown field"
    if error["type"] == "missing":
        return "expected a value; found none"
    expected = str(error["msg"])
    if error["type"] in _OBJECT_EXPECTED:
        expected = "expected a JSON object"
    for words, ours in _EXPECTATIONS.items():
        expected = expected.replace(words, ours)
    return f"{expected}; found {_name_kind(error['input'])}"


def add_error_handlers(app: FastAPI, *, unavailable: Sequence[type[Exception]] = ()) -> None:
    """Convert errors raised in routes into responses; `unavailable` are the errors of stores that
    do not respond.
    """
    _add_handler(app, HttpError, lambda error: error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer_unrouted)
    _add_handler(
        app, MessageError, lambda error: InvalidRequestError(str(error), code="invalid_message")
    )
    _add_handler(app, DocumentRefusedError, _refuse_document)
    _add_handler(
        app,
        DocumentUnknownError,
        lambda error: InvalidRequestError(str(error), code="unknown_document", status=404),
    )
    _add_handler(app, BusyError, _busy)
    _add_handler(app, StoppingError, _stopping)
    away_kinds: tuple[type[Exception], ...] = (BrokerUnavailableError, *unavailable)
    for kind in away_kinds:
        _add_handler(app, kind, lambda _error: away())
    _add_handler(app, Exception, lambda _error: unforeseen())


def away() -> UnavailableError:
    """Return the error for an unreachable desk."""
    return UnavailableError(
        "the desk is temporarily unavailable: try again",
        code="unavailable",
        retry_after_seconds=AWAY_SECONDS,
    )


def unforeseen() -> HttpError:
    """Return the error for an unexpected exception, which the request log records."""
    return HttpError("something went wrong on our side", code="internal_error")


def _add_handler(app: FastAPI, kind: type[E], read: Callable[[E], HttpError]) -> None:
    async def answer(request: Request, error: Exception) -> Response:
        return failure(read(cast("E", error)), str(request.state.request_id))

    app.add_exception_handler(kind, answer)


async def _answer_invalid(request: Request, error: Exception) -> Response:
    http_error = _invalid(cast("RequestValidationError", error), request.scope.get("route"))
    return failure(http_error, str(request.state.request_id))


async def _answer_unrouted(request: Request, error: Exception) -> Response:
    raised = cast("HTTPException", error)
    message = str(raised.detail)
    if raised.status_code == 404 and message == "Not Found":
        message = "this path does not exist; GET /openapi.json lists all paths"
    if raised.status_code == 405:
        allowed = (raised.headers or {}).get("Allow", "another method")
        message = f"the method is not allowed at this path: expected {allowed}"
    code = f"http_{raised.status_code}"
    failed = InvalidRequestError(message, code=code, status=raised.status_code)
    failed.headers.update(raised.headers or {})
    return failure(failed, str(request.state.request_id))


def _invalid(error: RequestValidationError, route: object) -> HttpError:
    """Return the error for an invalid request.

    It states the location of the fault, the expected value with an example, and the type of the
    received value without the value itself. The name of an unexpected field is the caller's own
    text, so only the enclosing object is named.
    """
    first = error.errors()[0]
    where = [str(part) for part in first["loc"]]
    end = -1 if first["type"] == "extra_forbidden" else None
    param = (".".join(where[1:end]) or where[0])[:100]
    shown = _make_example(route) if where[0] == "body" else ""
    return InvalidRequestError(
        f"{param}: {describe_problem(first)}{shown}", code="invalid_request", param=param
    )


def _make_example(route: object) -> str:
    """Return an example of the body of a route, with its required fields, or nothing if the route
    has no body.
    """
    field = getattr(route, "body_field", None)
    model = None if field is None else field.field_info.annotation
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return ""
    fields = model.model_fields
    required = {
        name: field_info.examples for name, field_info in fields.items() if field_info.is_required()
    }
    if not required or not all(required.values()):
        return ""
    body = {name: examples[0] for name, examples in required.items() if examples}
    return f"; an example of the body: {json.dumps(body)}"


def _name_kind(value: object) -> str:
    """Return the JSON type of a value, without the value itself."""
    if isinstance(value, str):
        return f"a string of {len(value)} characters"
    kind = _KINDS.get(type(value), "a number")
    is_text = isinstance(value, bytes)
    return f"{kind}; send the header Content-Type: application/json" if is_text else kind


def _refuse_document(error: DocumentRefusedError) -> HttpError:
    status = _STATUS_OF_REFUSALS.get(error.kind, 400)
    return InvalidRequestError(str(error), code=error.kind, status=status)


def _busy(error: BusyError) -> HttpError:
    return LimitedError(str(error), code="busy", retry_after_seconds=error.retry_after_seconds)


def _stopping(error: StoppingError) -> HttpError:
    return UnavailableError(str(error), code="shutting_down", retry_after_seconds=1.0)
