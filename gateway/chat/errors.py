"""Errors of a chat platform, by the possible reaction.

GatewayError
└── UnreadableError   an event of the platform does not have the expected form

PushError
├── RetryableError     try again after `seconds`; `by_platform`: the platform named them
├── PermanentError     the platform will never accept this call
│   └── PostNotFoundError   the post to edit does not exist: create a new one
├── CallSkippedError   the call would come too late to be useful, and was not made
└── NoOpError          the platform reports that nothing had to change
"""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import GatewayError, MessageError


class UnreadableError(GatewayError):
    """An event does not have the expected form; a repetition will not either."""


class PushError(GatewayError):
    """A platform did not carry out a call."""


class RetryableError(PushError):
    """The call may succeed after `seconds`; `by_platform`: the platform named them."""

    def __init__(self, message: str, seconds: float, *, by_platform: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.by_platform = by_platform


class PermanentError(PushError):
    """The call will never succeed."""


class PostNotFoundError(PermanentError):
    """The post does not exist."""


class CallSkippedError(PushError):
    """The call was not made."""


class NoOpError(PushError):
    """Nothing had to change."""


_OF_FORM = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MessageError)


@contextmanager
def reads_foreign_form(what: str) -> Iterator[None]:
    """Raise `UnreadableError` for any error that a value of another form causes inside.

    The message does not repeat the value.
    """
    try:
        yield
    except _OF_FORM as error:
        raise UnreadableError(f"expected {what}, found another form") from error
