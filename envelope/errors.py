"""Errors of the envelope.

EnvelopeError
├── DecodeError            the bytes are not an envelope (`frame` contains them)
│   └── NewerVersionError  a newer version of Refdesk wrote the envelope; update this one first
└── ContractError          an agent's Reads or Writes do not match the payload catalogue
"""


class EnvelopeError(Exception):
    """The root of all errors of this package."""


class DecodeError(EnvelopeError):
    """The bytes are not an envelope; `frame` contains them."""

    def __init__(self, reason: str, frame: bytes) -> None:
        super().__init__(reason)
        self.frame = frame


class NewerVersionError(DecodeError):
    """A newer version of Refdesk wrote this envelope."""


class ContractError(EnvelopeError):
    """The attributes of an agent's `Reads` or `Writes` do not match the payload catalogue."""
