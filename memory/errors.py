"""Errors of the memory.

MemoryStoreError
├── MemoryUnavailableError   Redis does not answer; try again later
└── QuestionEndedError       whatever is done for this question changes nothing any more
"""


class MemoryStoreError(Exception):
    """Something about remembering is wrong."""


class MemoryUnavailableError(MemoryStoreError):
    """Redis does not answer."""


class QuestionEndedError(MemoryStoreError):
    """The question has its outcome: whoever still works on it has lost it, and need not go on."""
