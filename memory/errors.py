"""Errors of the memory.

MemoryStoreError
└── MemoryUnavailableError   Redis does not answer; try again later
"""


class MemoryStoreError(Exception):
    """Something about remembering is wrong."""


class MemoryUnavailableError(MemoryStoreError):
    """Redis does not answer."""
