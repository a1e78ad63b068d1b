"""Runs of agents, as a worker begins them."""

import asyncio

from envelope.question import Question
from envelope.run import Run


def start_run(
    question: Question,
    *,
    stage: str,
    attempt: int = 0,
    remaining_seconds: float | None = None,
    branch: str = "",
) -> Run:
    """Return a run that begins now; called inside a running event loop."""
    if remaining_seconds is None:
        return Run(question, stage, attempt, branch)
    deadline = asyncio.get_running_loop().time() + remaining_seconds
    return Run(question, stage, attempt, branch, deadline)
