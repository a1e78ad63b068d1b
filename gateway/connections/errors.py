"""Errors of reading a request.

GatewayError
└── BodyError               the body cannot be read
    ├── BodyTooLargeError   it is longer than allowed
    ├── BodyTooSlowError    it does not arrive in time
    ├── BuffersFullError    the process, or the caller's address, holds too many bodies already
    └── CallerGoneError     the connection broke: there is no client to answer
"""

from gateway.errors import GatewayError


class BodyError(GatewayError):
    """The body of a request cannot be had."""


class BodyTooLargeError(BodyError):
    """The body is longer than allowed."""


class BodyTooSlowError(BodyError):
    """The body does not come in time."""


class BuffersFullError(BodyError):
    """Too many bodies are held already."""


class CallerGoneError(BodyError):
    """The connection broke before the body was complete."""
