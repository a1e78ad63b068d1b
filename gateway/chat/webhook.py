"""The web application that a platform calls. It has one URL, accepts only small bodies, and reveals
no details of errors.

Callers other than the platform are rejected before the body is read, if the headers are sufficient
to detect them. Every rejection is logged in one line, without any content of the request.
"""

from collections.abc import Awaitable, Callable

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from gateway.chat.ports import UnreadableError
from gateway.connections.bodies import (
    RETRY_SECONDS,
    BodyError,
    BodyTooLargeError,
    BodyTooSlowError,
    BufferBudget,
    CallerGoneError,
    Lease,
    read_body,
)
from gateway.errors import GatewayError, MessageError

log = structlog.get_logger("gateway")

MOST_BYTES = 1024 * 1024
HandleEvent = Callable[[Request, bytes], Awaitable[Response]]
Check = Callable[[Headers], None]


class WebhookRefusedError(GatewayError):
    """A request was rejected: `status`, a slug, and a human-readable description."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class _WebhookEndpoint:
    def __init__(
        self,
        path: str,
        handle: HandleEvent,
        check: Check,
        unavailable: tuple[type[Exception], ...],
        budget: BufferBudget,
    ) -> None:
        self._path = path
        self._handle = handle
        self._check = check
        self._unavailable = unavailable
        self._budget = budget

    async def receive(self, request: Request) -> Response:
        with self._budget.lease(request.scope) as lease:
            try:
                return await self._answer(request, lease)
            except WebhookRefusedError as error:
                return self._refuse(error.status, error.reason, str(error))
            except UnreadableError as error:
                return self._refuse(400, "unreadable_event", str(error))
            except MessageError:
                return self._refuse(400, "invalid_name", "the names of header fields are not valid")
            except self._unavailable as error:
                log.warning("webhook_deferred", path=self._path, error=str(error))
                return _later()
            except Exception as error:
                log.error("webhook_failed", path=self._path, exc_info=error)
                return PlainTextResponse("something went wrong on our side", 500)

    async def _answer(self, request: Request, lease: Lease) -> Response:
        self._check(request.headers)
        try:
            body = await read_body(request.scope, request.receive, lease, longest_bytes=MOST_BYTES)
        except CallerGoneError:
            return Response(status_code=400)  # nobody receives it
        except BodyTooLargeError as error:
            raise WebhookRefusedError(413, "body_too_large", str(error)) from error
        except BodyTooSlowError as error:
            raise WebhookRefusedError(408, "body_too_slow", str(error)) from error
        except BodyError as error:
            log.warning("webhook_deferred", path=self._path, error=str(error))
            return _later()
        return await self._handle(request, body)

    def _refuse(self, status: int, reason: str, message: str) -> Response:
        log.info("webhook_rejected", path=self._path, status=status, reason=reason)
        return PlainTextResponse(message, status)


def webhook(
    path: str,
    handle: HandleEvent,
    *,
    check: Check,
    unavailable: tuple[type[Exception], ...],
) -> Starlette:
    """Return an application. If `handle` currently cannot accept an event, the response has status
    503.

    The platform sends such an event again. `check` checks the headers before the body is read.
    `handle` and `check` raise `WebhookRefusedError`, and `UnreadableError` for an event in an
    unexpected format.
    """
    answering = _WebhookEndpoint(path, handle, check, unavailable, BufferBudget())

    async def alive(_request: Request) -> Response:
        return PlainTextResponse("ok")

    app = Starlette(
        routes=[
            Route(path, answering.receive, methods=["POST"]),
            Route("/healthz", alive, methods=["GET"]),
        ]
    )
    # A redirect would lead to any host that the request names.
    app.router.redirect_slashes = False
    return app


def _later() -> Response:
    return PlainTextResponse("try again", 503, headers={"Retry-After": str(RETRY_SECONDS)})
