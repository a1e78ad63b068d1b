"""Ends what was told to end, also when it did not hear that."""

import asyncio


def raise_if_cancelled() -> None:
    """Raise the cancellation that a client lost inside a command: a group cancels a task once.

    For what may go on for long within a task group. A time limit that ran out counts as nothing:
    whoever sets one takes its cancellation back.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
