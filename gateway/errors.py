"""Errors of the gateway.

GatewayError
├── MessageError     the message is invalid; the sender can correct it
├── BusyError        too many messages wait; try again after `retry_after_seconds`
├── HandOverLimitedError  too many conversations were handed over today
└── StoppingError    this process is shutting down; another process handles the message
"""


class GatewayError(Exception):
    """The root of the gateway's errors."""


class MessageError(GatewayError):
    """The message is invalid; the sender can correct it."""


class BusyError(GatewayError):
    """Too many messages are waiting; `reason` comes from the broker."""

    def __init__(self, message: str, retry_after_seconds: float, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class HandOverLimitedError(GatewayError):
    """Too many conversations were handed over; another one is possible after
    `retry_after_seconds`.
    """

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class StoppingError(GatewayError):
    """This process is stopping; other processes handle the message."""
