"""Reads a request's body before its route runs, within limits."""

import re

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.connections.bodies import RETRY_SECONDS, BufferBudget, read_body
from gateway.connections.errors import (
    BodyError,
    BodyTooLargeError,
    BodyTooSlowError,
    CallerGoneError,
)
from gateway.http.access import Principal
from gateway.http.error_responses import failure
from gateway.http.errors import (
    ForbiddenError,
    HttpError,
    InvalidRequestError,
    UnavailableError,
)
from gateway.http.middleware.authentication import BODILESS
from gateway.http.middleware.strict_json import check_json

UPLOADS = re.compile(r"/v1/(?:reviews|conversations/[^/]{1,200}/documents)")
"""Where documents are given, which are larger than messages; not open to public keys."""


class BodyLimit:
    """Rejects bodies that are too large, too slow, too many at a time, or invalid JSON.

    A document may be as large as the budget of one address.
    """

    def __init__(self, app: ASGIApp, *, longest_bytes: int, budget: BufferBudget) -> None:
        self._app = app
        self._longest_bytes = longest_bytes
        self._budget = budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in BODILESS:
            await self._app(scope, receive, send)
            return
        is_upload = UPLOADS.fullmatch(scope["path"]) is not None
        caller = scope["state"].get("caller")
        if is_upload and isinstance(caller, Principal) and caller.public:
            # Before the body: everybody could fill the memory with bodies that end with a refusal.
            await _refuse(visitors_refused(), scope, receive, send)
            return
        longest = self._budget.largest_body if is_upload else self._longest_bytes
        with self._budget.lease(scope) as lease:
            try:
                body = await read_body(scope, receive, lease, longest_bytes=longest)
                check_json(scope, body)
            except CallerGoneError:
                return
            except BodyError as error:
                await _refuse(_translate_error(error), scope, receive, send)
            except HttpError as error:
                await _refuse(error, scope, receive, send)
            else:
                await self._app(scope, _replay(body, receive), send)


def visitors_refused() -> ForbiddenError:
    """Return the error for a public key that gives a document or starts a review."""
    return ForbiddenError(
        "expected a secret key: documents and reviews are not open to visitors",
        code="secret_key_required",
    )


def _translate_error(error: BodyError) -> HttpError:
    if isinstance(error, BodyTooLargeError):
        return InvalidRequestError(str(error), code="body_too_large", status=413)
    if isinstance(error, BodyTooSlowError):
        return InvalidRequestError(str(error), code="timeout", status=408)
    return UnavailableError(str(error), code="busy", retry_after_seconds=RETRY_SECONDS)


async def _refuse(error: HttpError, scope: Scope, receive: Receive, send: Send) -> None:
    await failure(error, str(scope["state"]["request_id"]))(scope, receive, send)


def _replay(body: bytes, receive: Receive) -> Receive:
    is_delivered = False

    async def replay() -> Message:
        nonlocal is_delivered
        if is_delivered:
            return await receive()
        is_delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
