"""Reads requests from a connection within limits, on top of uvicorn's protocol.

Only this module uses uvicorn's internals: the callbacks of its parser, and the attributes `cycle`,
`flow`, `headers`, `pipeline`, `timeout_keep_alive` and `timeout_keep_alive_task`. The project
therefore bounds uvicorn's version, and a test lists these names.
"""

import asyncio
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from gateway.connections.framing import Framing, RefusedError
from gateway.connections.limits import BODY_SECONDS, PIPELINED_REQUESTS, READ_BYTES
from gateway.connections.refusals import (
    BUSY,
    HEAD_TOO_SLOW,
    MALFORMED,
    NO_HOST,
    TOO_MANY_AT_ONCE,
    Refusal,
)
from gateway.connections.registry import Admission, ConnectionRegistry
from gateway.connections.transport import LingeringTransport

PROBES_ONLY = "probes_only"
"""The key of a request's state that restricts the connection to health probes."""
BODY_GRACE_SECONDS = 5.0
"""The application rejects a slow body; this much later the connection is closed."""
HEADER_LINE_BYTES = 4
"""The bytes around a header: a colon, a space and the line end."""


class BoundedHttpProtocol(HttpToolsProtocol, asyncio.BufferedProtocol):
    """One connection: bounded in bytes and time, and listed in the registry."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        registry: ConnectionRegistry,
        buffer: memoryview,
    ) -> None:
        self._framing = Framing()  # the parser looks for the callbacks when it is made
        super().__init__(config, server_state, app_state, _loop)
        self._registry = registry
        self._limits = registry.limits
        self._buffer = buffer
        self._admission = Admission.REFUSED
        self._deadline: asyncio.TimerHandle | None = None
        self._has_body = False
        self._lingering: LingeringTransport

    # the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Admit the connection, or reject it at little cost."""
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if isinstance(peer, tuple) else ""
        self._lingering = LingeringTransport(
            transport,
            self.loop,
            write_seconds=self._limits.write_seconds,
            has_unread=self._has_unread,
        )
        self._admission = self._registry.admit(self, host)
        if self._admission is Admission.REFUSED:
            transport.write(BUSY.render("-"))
            self._lingering.close()
            return
        super().connection_made(self._lingering)
        self._set_deadline(self._limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the registry."""
        self._clear_deadline()
        self._lingering.end()
        self._registry.release(self)
        if self._admission is not Admission.REFUSED:
            super().connection_lost(exc)

    def eof_received(self) -> None:
        """Close the connection: the client no longer listens."""
        self._lingering.watch_writing()

    def evict(self) -> None:
        """Close at once, to make room for another connection."""
        self._lingering.abort()

    def pause_writing(self) -> None:
        """Wait for a slow reader for a limited time."""
        self._lingering.watch_writing()
        if self._admission is not Admission.REFUSED:
            super().pause_writing()

    def resume_writing(self) -> None:
        """Continue writing: the reader has made room."""
        self._lingering.stop_watching()
        if self._admission is not Admission.REFUSED:
            super().resume_writing()

    # received data

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that all connections read into, one at a time."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the bytes in the buffer."""
        self.data_received(self._buffer[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Parse bytes; an invalid request, or one beyond a limit, ends the connection."""
        if self._lingering.is_closing():
            self._lingering.discard(len(data))
            return
        self._unset_keepalive_if_required()
        self._framing.read(len(data))
        try:
            self.parser.feed_data(data)
            self._framing.check()
        except httptools.HttpParserUpgrade:
            # The request is answered normally; the data after it belongs to another protocol.
            self._framing.end()
        except RefusedError as error:
            self._refuse(error.refusal)
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause.refusal if isinstance(cause, RefusedError) else MALFORMED)
        else:
            self._watch_reading()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._framing.begin()
        self._has_body = False
        super().on_message_begin()
        if self._admission is Admission.PROBES_ONLY:
            self.scope["state"][PROBES_ONLY] = True

    def on_url(self, url: bytes) -> None:
        """Add a part of the address."""
        self._framing.count_url(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers are only counted, because the headers were checked already."""
        self._framing.count_header(len(name) + len(value) + HEADER_LINE_BYTES)
        if not self._framing.in_head:
            return
        super().on_header(name, value)
        lower = name.lower()
        if lower == b"transfer-encoding" or (lower == b"content-length" and value.strip(b"0 ")):
            self._has_body = True

    def on_headers_complete(self) -> None:
        """Start the request; its body is read when the application asks for it."""
        self._check_host()
        if len(self.pipeline) >= PIPELINED_REQUESTS:
            raise RefusedError(TOO_MANY_AT_ONCE)
        super().on_headers_complete()
        self._framing.end_head()
        self._clear_deadline()
        self._registry.mark_busy(self)
        if self.parser.should_upgrade():
            self.cycle.keep_alive = False
        if self._has_body:
            self.flow.pause_reading()

    def on_chunk_header(self) -> None:
        """Count a chunk."""
        self._framing.count_chunk()

    def on_body(self, body: bytes) -> None:
        """Add a part of the body."""
        self._framing.count_body(len(body))
        super().on_body(body)
        if not self._is_answered():
            # Sooner than uvicorn: unrequested data stays in the buffer of the system.
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """End the request."""
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()
        self._framing.end()
        self._clear_deadline()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.pipeline and self.cycle.response_complete:
            self._registry.mark_idle(self)

    # missing data

    def _watch_reading(self) -> None:
        """Set the time until which the rest of a request must arrive."""
        if self._deadline is not None or self._lingering.is_closing():
            return
        if not self._framing.in_head:
            self._set_deadline(BODY_SECONDS + BODY_GRACE_SECONDS)
        elif self._framing.has_begun:
            self._set_deadline(self._limits.head_seconds)
        elif self._is_answered() and self.timeout_keep_alive_task is None:
            # The rest of a request that was answered before it was complete.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._end_late)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_late(self) -> None:
        self._deadline = None
        if self._framing.has_begun:
            self._refuse(HEAD_TOO_SLOW)
        elif self._framing.in_head:
            self._lingering.close()
        else:
            self._lingering.abort()

    def _refuse(self, refusal: Refusal) -> None:
        """Answer and close; only close if another answer has begun or must come before."""
        self._clear_deadline()
        answer = refusal.write()
        if not self._may_answer():
            self._lingering.abort()
            return
        self._lingering.write(answer)
        if not self._is_answered():
            # The application is at this request: for it, the caller is gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._framing.in_head = False  # further data is not read
        self._lingering.close()

    def _check_host(self) -> None:
        hosts = sum(name == b"host" for name, _ in self.headers)
        if hosts > 1 or (hosts == 0 and self.parser.get_http_version() == "1.1"):
            raise RefusedError(NO_HOST)

    def _may_answer(self) -> bool:
        if self._is_answered():
            return True
        is_own = not self._framing.in_head and not self.pipeline
        return is_own and not self.cycle.response_started

    def _is_answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is None or cycle.response_complete

    def _has_unread(self) -> bool:
        return self._admission is not Admission.REFUSED and not self._framing.in_head


def new_buffer() -> memoryview:
    """Return a buffer for all connections of a server."""
    return memoryview(bytearray(READ_BYTES))
