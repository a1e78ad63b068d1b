"""Errors of the worker.

WorkerError
├── HandlerTimeoutError   a handler took longer than it may
├── RunFailedError        a run failed; its cause is the error, `journal` what it had done
│   └── SuspectFailedError    it failed in quarantine, in another process
└── HealthPortError       the port for probes cannot be had
"""

from collections.abc import Sequence

from broker.journaling import Note


class WorkerError(Exception):
    """Something about running a handler is wrong."""


class HandlerTimeoutError(WorkerError):
    """A handler took longer than it may."""


class RunFailedError(WorkerError):
    """A run failed; what it had done, such as model calls, is kept for the journal."""

    def __init__(self, error: Exception, journal: Sequence[Note]) -> None:
        super().__init__(f"{type(error).__name__}: {error}")
        self.journal = tuple(journal)


class SuspectFailedError(RunFailedError):
    """A run failed in quarantine; told by the process that ran it."""

    def __init__(self, told: str, journal: Sequence[Note]) -> None:
        WorkerError.__init__(self, told)
        self.journal = tuple(journal)


class HealthPortError(WorkerError):
    """The port for probes cannot be had."""
