"""A transport that, on close, waits until the client has received the response, but not for a
client that never reads.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gateway.connections.limits import LINGER_BYTES, LINGER_SECONDS, WRITE_BUFFER_BYTES


class LingeringTransport(asyncio.Transport):
    """Closes in two steps if the client is still sending, and aborts if a response is not read.

    If a socket is closed with unread input, the connection is reset, and the client may lose the
    response. Therefore, the write side is closed first, and further input is discarded for a
    moment.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        write_seconds: float,
        has_unread: Callable[[], bool],
    ) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._write_seconds = write_seconds
        self._has_unread = has_unread
        self._is_closing = False
        self._is_paused = False
        self._is_held = False
        self._discarded_bytes = 0
        self._write_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write, unless the transport is closing."""
        if not self._is_closing:
            self._transport.write(data)

    def close(self) -> None:
        """Send the written data, then close."""
        if self._is_closing:
            return
        self._is_closing = True
        self.watch_writing()
        if not self._has_unread():
            self._transport.close()
            return
        with suppress(OSError):  # the client may be gone
            self._transport.write_eof()
        self._transport.resume_reading()
        self._linger_timer = self._loop.call_later(LINGER_SECONDS, self._transport.close)

    def abort(self) -> None:
        """Close immediately; unsent data is lost."""
        self._is_closing = True
        self._transport.abort()

    def discard(self, nbytes: int) -> None:
        """Discard input while closing; if there is too much of it, the connection is aborted."""
        self._discarded_bytes += nbytes
        if self._discarded_bytes > LINGER_BYTES:
            self.abort()

    def watch_writing(self) -> None:
        """Abort if the client does not read the data in time."""
        if self._write_timer is None and self._transport.get_write_buffer_size():
            self._write_timer = self._loop.call_later(self._write_seconds, self.abort)

    def stop_watching(self) -> None:
        """Record that the client has read data. While closing, wait again until it has read the
        rest.
        """
        self._stop_timer()
        if self.is_closing():
            self.watch_writing()

    def end(self) -> None:
        """Stop all timers and release the protocol, because the connection is gone."""
        self._is_closing = True
        self._has_unread = _nothing
        self._stop_timer()
        if self._linger_timer is not None:
            self._linger_timer.cancel()

    def is_closing(self) -> bool:
        """Return whether the transport is closing or closed."""
        return self._is_closing or self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop reading, on behalf of the server, until `resume_reading`."""
        self._is_paused = True
        self._update_reading()

    def resume_reading(self) -> None:
        """Continue reading, unless `hold_reading` was called and `release_reading` was not."""
        self._is_paused = False
        self._update_reading()

    def hold_reading(self) -> None:
        """Stop reading until `release_reading`, independently of the server."""
        self._is_held = True
        self._update_reading()

    def release_reading(self) -> None:
        """Continue reading, unless the server has paused it."""
        self._is_held = False
        self._update_reading()

    def is_reading(self) -> bool:
        """Return whether data is being read."""
        return self._transport.is_reading()

    def get_write_buffer_size(self) -> int:
        """Return the number of written bytes that have not been sent."""
        return self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection."""
        return self._transport.get_extra_info(name, default)

    def _update_reading(self) -> None:
        if self._is_closing:
            return  # further data is discarded
        if self._is_paused or self._is_held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _stop_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def _nothing() -> bool:
    return False
