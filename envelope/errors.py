"""Errors of the envelope.

EnvelopeError
├── DecodeError          the bytes are no envelope (they are kept in `frame`)
│   └── NewerVersionError  a newer Refdesk wrote it; update this one first
└── ContractError        an agent's Reads or Writes do not fit the payload catalogue
"""


class EnvelopeError(Exception):
    """Something about an envelope is wrong."""


class DecodeError(EnvelopeError):
    """The bytes are no envelope; `frame` keeps them."""

    def __init__(self, reason: str, frame: bytes) -> None:
        super().__init__(reason)
        self.frame = frame


class NewerVersionError(DecodeError):
    """A newer Refdesk wrote this envelope."""


class ContractError(EnvelopeError):
    """What an agent reads or writes does not fit the payload catalogue."""
