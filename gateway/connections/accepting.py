"""Logs once a minute that no connection can be accepted, where asyncio logs every attempt."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gateway.connections.rare_log import RareLog

MESSAGE = "socket.accept() out of system resource"
"""The message for asyncio's exception handler; asyncio tries again after a second."""


@contextmanager
def accept_errors_logged_rarely() -> Iterator[None]:
    """Handle asyncio's errors of failed accepts inside the context; pass on all others."""
    loop = asyncio.get_running_loop()
    previous = loop.get_exception_handler()
    rare = RareLog("accept_failed")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if context.get("message") == MESSAGE:
            error = context.get("exception")
            reason = error.strerror if isinstance(error, OSError) else None
            rare.count("unknown" if reason is None else reason)
        elif previous is None:
            loop.default_exception_handler(context)
        else:
            previous(loop, context)

    loop.set_exception_handler(handle)
    try:
        yield
    finally:
        loop.set_exception_handler(previous)
