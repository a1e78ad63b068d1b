"""Ends what was told to end, also when it did not hear that."""

import asyncio


def heed_cancellation() -> None:
    """Raise the cancellation that a client lost inside a command: a task is cancelled once only.

    For loops that never end by themselves and run within a task group.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
