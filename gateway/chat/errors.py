"""Errors of a platform, by what the door can do about them.

GatewayError
└── UnreadableError   what the platform sent has not the form that it should have

PushError
├── LaterError    try again after `seconds`; `told`: the platform named them
├── NeverError    the platform will never take this: who was to read it cannot be reached
│   └── GoneError     what was to be edited is no more: post it anew
├── SkippedError  it would come too late to be of use: left out, nothing was called
└── AlreadyError  it is as it was to become
"""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import GatewayError, MessageError


class UnreadableError(GatewayError):
    """What came has not the form that it should have; sent again, it will be the same."""


class PushError(GatewayError):
    """A platform did not do what it was told."""


class LaterError(PushError):
    """It may work after `seconds`."""

    def __init__(self, message: str, seconds: float, *, told: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.told = told


class NeverError(PushError):
    """It will never work."""


class GoneError(NeverError):
    """The post is no more."""


class SkippedError(PushError):
    """It was left out."""


class AlreadyError(PushError):
    """Nothing was to be done."""


_OF_FORM = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MessageError)


@contextmanager
def reads_foreign_form(what: str) -> Iterator[None]:
    """Raise `UnreadableError` for whatever a value of another form does to the code inside.

    What was found is not repeated.
    """
    try:
        yield
    except _OF_FORM as error:
        raise UnreadableError(f"expected {what}, found another form") from error
