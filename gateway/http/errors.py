"""Errors that an HTTP answer tells, in the form that OpenAI's clients know.

GatewayError
└── HttpError                 has a status, a code and, where waiting helps, seconds to wait
    ├── InvalidRequestError   400, 404, 409, 410, 413, 415, 422: the caller can mend it
    ├── UnauthorizedError     401: no key, or none that is known
    ├── ForbiddenError        403: a key that may not do this
    ├── LimitedError          429: later
    └── UnavailableError      503: the desk cannot be reached just now
"""

from typing import ClassVar

from gateway.errors import GatewayError


class HttpError(GatewayError):
    """An answer that is none."""

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
    """The caller can mend it."""

    kind = "invalid_request_error"

    def __init__(
        self, message: str, *, code: str, param: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message, code=code, param=param)
        self.status = status


class UnauthorizedError(HttpError):
    """No key, or none that is known."""

    status = 401
    kind = "authentication_error"


class ForbiddenError(HttpError):
    """A key that may not do this."""

    status = 403
    kind = "permission_error"


class LimitedError(HttpError):
    """Too much, too fast."""

    status = 429
    kind = "rate_limit_error"


class UnavailableError(HttpError):
    """The desk cannot be reached just now."""

    status = 503


def unknown(what: str) -> InvalidRequestError:
    """Return the error of what is not there, or not the caller's: both look the same."""
    return InvalidRequestError(f"there is no such {what}", code="not_found", status=404)
