"""Errors of the worker.

WorkerError
├── HandlerTimeoutError   a handler exceeded its time limit
├── RunFailedError        a run failed; `__cause__` is the error, `journal` its events so far
│   └── SuspectFailedError    a run failed in a child process, in quarantine
└── HealthPortError       the port for health probes is not available
"""

import traceback
from collections.abc import Sequence
from pathlib import Path

from broker.journal_events import JournalEvent


class WorkerError(Exception):
    """The root of the worker's errors."""


class HandlerTimeoutError(WorkerError):
    """A handler exceeded its time limit."""


class RunFailedError(WorkerError):
    """A run failed; `journal` contains its events up to the failure, such as model calls."""

    def __init__(self, error: Exception, journal: Sequence[JournalEvent]) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.journal = tuple(journal)


class SuspectFailedError(RunFailedError):
    """A run failed in quarantine; `description` comes from the process that ran it."""

    def __init__(self, description: str, journal: Sequence[JournalEvent]) -> None:
        WorkerError.__init__(self, description)
        self.journal = tuple(journal)


class HealthPortError(WorkerError):
    """The port for health probes is not available."""


def name_error(error: BaseException) -> str:
    """Return the type and the source line of an error for the log, without its message.

    Error messages of agents and models may quote user input, which belongs only in the journal,
    where it expires.
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
