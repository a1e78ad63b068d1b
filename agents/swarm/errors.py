"""Errors of plans, tasks and types of workers.

SwarmError
├── PlanRejected          a plan that cannot run as it is; its author can write another one
├── IllegalMove           a task cannot change from its state to the wanted one
└── UnknownName           no strategy, type of worker or field has this name
"""

from collections.abc import Sequence


class SwarmError(Exception):
    """Root of the errors of this package."""


class PlanRejected(SwarmError):  # noqa: N818 - names a state
    """A plan that cannot run; `problems` are sentences, one for each fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class IllegalMove(SwarmError):  # noqa: N818 - as above
    """A move that the ledger does not allow; nothing has changed."""


class UnknownName(SwarmError):  # noqa: N818 - as above
    """A name that no registry has."""
