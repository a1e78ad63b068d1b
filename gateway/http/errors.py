"""Errors of HTTP answers, in the form that OpenAI's clients know.

GatewayError
└── HttpError                 has a status, a code and, where waiting helps, seconds to wait
    ├── InvalidRequestError   400, 404, 409, 410, 413, 414, 415, 422: the caller can correct it
    ├── UnauthorizedError     401: no key, or an unknown one
    ├── ForbiddenError        403: a key without this permission
    ├── LimitedError          429: a limit is exhausted
    └── UnavailableError      503: the desk is unreachable at present
"""

from typing import ClassVar

from gateway.errors import GatewayError


class HttpError(GatewayError):
    """An error with an HTTP status."""

    status: int = 500
    kind: ClassVar[str] = "api_error"
    """OpenAI's `type` of an error."""

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
    """No key, or an unknown one."""

    status = 401
    kind = "authentication_error"


class ForbiddenError(HttpError):
    """A key without this permission."""

    status = 403
    kind = "permission_error"


class LimitedError(HttpError):
    """A limit is exhausted."""

    status = 429
    kind = "rate_limit_error"


class UnavailableError(HttpError):
    """The desk is unreachable at present."""

    status = 503


def unknown(what: str) -> InvalidRequestError:
    """Return the error for a missing object, or one of another caller: both look alike."""
    return InvalidRequestError(f"there is no such {what}", code="not_found", status=404)
