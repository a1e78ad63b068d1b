"""Tells every error in one form, OpenAI's, without repeating what was sent."""

import json
import math
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from broker.errors import BrokerUnavailableError
from gateway.errors import BusyError, MessageError, StoppingError
from gateway.http.errors import HttpError, InvalidRequestError, LimitedError, UnavailableError

E = TypeVar("E", bound=Exception)
AWAY_SECONDS = 2.0


class Problem(BaseModel):
    """What went wrong."""

    message: str
    type: str = Field(examples=["invalid_request_error"])
    param: str | None = Field(None, description="field of the request that is wrong")
    code: str | None = None
    request_id: str = Field(description="id of this request in the logs")


class Failure(BaseModel):
    """The form of every error."""

    error: Problem


def failure(error: HttpError, request_id: str) -> Response:
    """Return an error as an answer."""
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
    # Ascii alone: what is told of a request may hold signs that no encoding has.
    body = json.dumps({"error": problem.model_dump()})
    return Response(body, error.status, headers, "application/json")


def waiting_headers(error: HttpError) -> dict[str, str]:
    """Return what tells a caller how long to wait, where that is known."""
    if error.retry_after_seconds is None:
        return {}
    return {"Retry-After": str(max(1, math.ceil(error.retry_after_seconds)))}


def tell_failures(app: FastAPI, *, unavailable: Sequence[type[Exception]] = ()) -> None:
    """Answer what the routes raise; `unavailable` are errors of stores that do not answer."""
    _tell(app, HttpError, lambda error: error)
    _tell(app, RequestValidationError, _invalid)
    _tell(app, HTTPException, _of_framework)
    _tell(app, MessageError, lambda error: InvalidRequestError(str(error), code="invalid_message"))
    _tell(app, BusyError, _busy)
    _tell(app, StoppingError, _stopping)
    away_kinds: tuple[type[Exception], ...] = (BrokerUnavailableError, *unavailable)
    for kind in away_kinds:
        _tell(app, kind, lambda _error: away())
    _tell(app, Exception, lambda _error: unforeseen())


def away() -> UnavailableError:
    """Return the error of a desk that cannot be reached."""
    return UnavailableError(
        "the desk cannot be reached just now: try again",
        code="unavailable",
        retry_after_seconds=AWAY_SECONDS,
    )


def unforeseen() -> HttpError:
    """Return the error of what should not happen; whoever receives requests logs it."""
    return HttpError("something went wrong on our side", code="internal_error")


def _tell(app: FastAPI, kind: type[E], read: Callable[[E], HttpError]) -> None:
    async def answer(request: Request, error: Exception) -> Response:
        return failure(read(cast("E", error)), str(request.state.request_id))

    app.add_exception_handler(kind, answer)


def _invalid(error: RequestValidationError) -> HttpError:
    """Tell where a request is not as expected, and what was expected; not what was found.

    The place of a field that is not expected at all is the caller's own text: only what holds it
    is named.
    """
    first = error.errors()[0]
    where = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        param, told = ".".join(where[1:-1]), "a field is not expected here"
    else:
        param, told = ".".join(where[1:]), str(first["msg"])
    param = (param or where[0])[:100]
    return InvalidRequestError(f"{param}: {told}", code="invalid_request", param=param)


def _of_framework(error: HTTPException) -> HttpError:
    code = f"http_{error.status_code}"
    told = InvalidRequestError(str(error.detail), code=code, status=error.status_code)
    told.headers.update(error.headers or {})
    return told


def _busy(error: BusyError) -> HttpError:
    return LimitedError(str(error), code="busy", retry_after_seconds=error.retry_after_seconds)


def _stopping(error: StoppingError) -> HttpError:
    return UnavailableError(str(error), code="shutting_down", retry_after_seconds=1.0)
