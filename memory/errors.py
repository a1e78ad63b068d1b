"""Errors of the memory.

MemoryStoreError
├── MemoryUnavailableError   Redis does not respond; a later retry may succeed
└── QuestionEndedError       the message has ended; further work for it has no effect
"""


class MemoryStoreError(Exception):
    """The root of all errors of this package."""


class MemoryUnavailableError(MemoryStoreError):
    """Redis does not respond."""


class QuestionEndedError(MemoryStoreError):
    """The message has ended, so a worker that still processes it can stop."""
