"""Ends tasks that were cancelled and did not notice it."""

import asyncio


def raise_if_cancelled() -> None:
    """Raise a cancellation that a client swallowed: a task group cancels a task only once.

    For long loops within a task group. An expired time limit does not count, because
    `asyncio.timeout` withdraws its own cancellation.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
