"""Errors of the worker.

WorkerError
├── HandlerTimeoutError   a handler took longer than it may
├── RunFailedError        a run failed; its cause is the error, `journal` what it had done
│   └── SuspectFailedError    it failed in quarantine, in another process
└── HealthPortError       the port for probes cannot be had
"""

import traceback
from collections.abc import Sequence
from pathlib import Path

from broker.journal_events import JournalEvent


class WorkerError(Exception):
    """Something about running a handler is wrong."""


class HandlerTimeoutError(WorkerError):
    """A handler took longer than it may."""


class RunFailedError(WorkerError):
    """A run failed; what it had done, such as model calls, is kept for the journal."""

    def __init__(self, error: Exception, journal: Sequence[JournalEvent]) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.journal = tuple(journal)


class SuspectFailedError(RunFailedError):
    """A run failed in quarantine; told by the process that ran it."""

    def __init__(self, told: str, journal: Sequence[JournalEvent]) -> None:
        WorkerError.__init__(self, told)
        self.journal = tuple(journal)


class HealthPortError(WorkerError):
    """The port for probes cannot be had."""


def name_error(error: BaseException) -> str:
    """Return what a log may tell of an error: its kind and its place, no word of its text.

    Errors of agents and models quote what people wrote; the journal keeps that, and is forgotten.
    """
    if isinstance(error, SuspectFailedError):
        return str(error).partition(":")[0]
    cause = error.__cause__ if isinstance(error, RunFailedError) else None
    known = error if cause is None else cause
    frames = traceback.extract_tb(known.__traceback__)
    if not frames:
        return type(known).__name__
    path = Path(frames[-1].filename)
    return f"{type(known).__name__} at {path.parent.name}/{path.name}:{frames[-1].lineno}"
