"""Errors of the doors.

GatewayError
├── MessageError     the message cannot be accepted as it is; the sender can mend it
├── BusyError        too much waits already; try again after `retry_after_seconds`
└── StoppingError    this process stops; another has, or will have, the same answer
"""


class GatewayError(Exception):
    """Something about a door is wrong."""


class MessageError(GatewayError):
    """The message cannot be accepted as it is."""


class BusyError(GatewayError):
    """Too much waits already; `reason` is the broker's."""

    def __init__(self, message: str, retry_after_seconds: float, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class StoppingError(GatewayError):
    """This process stops; what it waited for goes on."""
