"""Limits a connection in front of uvicorn's protocol, so that data which exceeds a limit does not
reach uvicorn.

Every byte is first parsed here, with the same parser that uvicorn uses, and then passed on. The
application reports through `BoundedResponses` when it is waiting for a body and when a response has
ended, so only the asyncio protocol interface of uvicorn is used.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from enum import Enum
from itertools import islice
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from gateway.connections.limits import (
    BAD_FRAMING,
    BODY_SECONDS,
    BUSY,
    CHUNK_BYTES,
    FRAMING_BYTES,
    HEAD_BYTES,
    HEAD_TOO_LARGE,
    HEAD_TOO_SLOW,
    HEADER_COUNT,
    MALFORMED,
    NO_HOST,
    PIPELINED_REQUESTS,
    READ_BYTES,
    TOO_MANY_AT_ONCE,
    URL_BYTES,
    URL_TOO_LONG,
    Refusal,
)
from gateway.connections.registry import Admission, ConnectionRegistry
from gateway.connections.transport import LingeringTransport

CONNECTION = "connection"
"""The key in a request's state under which the application finds the connection."""
BODY_GRACE_SECONDS = 5.0
"""The application rejects a slow body. If it does not, the connection is closed after this
additional time.
"""
HEADER_LINE_BYTES = 4
"""The bytes around a header: a colon, a space, and the line end."""

Header = tuple[bytes, bytes]


class RefusedError(Exception):
    """A request exceeds a limit."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Framing:
    """Counts the bytes of the requests on a connection; raises `RefusedError` for a request that
    exceeds a limit.

    The parser reports a header only once it is complete, so the bytes read are counted as well as
    the parsed ones. A read may contain the end of one request and the beginning of the next, so the
    count of bytes read may be off by one read.
    """

    def __init__(self) -> None:
        self.in_head = True
        self.read_bytes = 0
        """Bytes read since the last request was complete, or since its headers were."""
        self._head_bytes = 0
        self._headers = 0
        self._url_bytes = 0
        self._body_bytes = 0
        self._chunks = 0

    @property
    def has_begun(self) -> bool:
        """Whether a part of a request has arrived, but not all of its headers."""
        return self.in_head and self.read_bytes > 0

    def read(self, nbytes: int) -> None:
        """Count the bytes that the parser gets next."""
        self.read_bytes += nbytes

    def check(self) -> None:
        """Compare the number of bytes read with the number parsed."""
        if self.in_head:
            if self.read_bytes > HEAD_BYTES + READ_BYTES:
                raise RefusedError(HEAD_TOO_LARGE)
            return
        framing = self.read_bytes - self._body_bytes - CHUNK_BYTES * self._chunks
        if framing > FRAMING_BYTES + READ_BYTES:
            raise RefusedError(BAD_FRAMING)

    def begin(self) -> None:
        """Begin a request."""
        self._head_bytes = self._headers = self._url_bytes = 0

    def count_url(self, nbytes: int) -> None:
        """Count a part of the URL."""
        self._url_bytes += nbytes
        if self._url_bytes > URL_BYTES:
            raise RefusedError(URL_TOO_LONG)

    def count_header(self, nbytes: int) -> None:
        """Count one complete header or trailer."""
        self._headers += 1
        self._head_bytes += nbytes
        if self._headers > HEADER_COUNT or self._head_bytes + self._url_bytes > HEAD_BYTES:
            raise RefusedError(HEAD_TOO_LARGE if self.in_head else BAD_FRAMING)

    def end_head(self) -> None:
        """Record that the headers are complete."""
        self.in_head = False
        self.read_bytes = self._body_bytes = self._chunks = 0

    def count_chunk(self) -> None:
        """Count the size of a chunk."""
        self._chunks += 1

    def count_body(self, nbytes: int) -> None:
        """Count a part of the body."""
        self._body_bytes += nbytes

    def end(self) -> None:
        """Record that the request is complete."""
        self.in_head = True
        self.read_bytes = 0


class _Missing(Enum):
    """The data that must arrive before a deadline."""

    HEAD = "head"
    BODY = "body"
    REQUEST = "request"
    """The next request, on an idle connection."""


class BoundedProtocol(asyncio.BufferedProtocol):
    """A connection that is limited in bytes and time, and listed in the registry.

    `given` contains the arguments of uvicorn's protocol.
    """

    transport: LingeringTransport

    def __init__(
        self,
        *,
        registry: ConnectionRegistry,
        buffer: memoryview,
        app_state: dict[str, Any],
        **given: Any,
    ) -> None:
        self._uvicorn = HttpToolsProtocol(app_state={**app_state, CONNECTION: self}, **given)
        self._loop = asyncio.get_running_loop()
        self._registry = registry
        self._limits = registry.limits
        self._buffer = buffer
        self._framing = Framing()
        self._parser = httptools.HttpRequestParser(self)
        # As uvicorn does: a client may send on after a request that ends the connection.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._admission = Admission.REFUSED
        self._is_served = False
        self._missing: _Missing | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._url = b""
        self._hosts = 0
        self._headers = 0
        self._header_counts: deque[int] = deque()
        """The header counts of the requests that the application has not received yet."""
        self._has_body = False
        self._unanswered = 0
        """The number of requests whose headers are complete but whose responses are not."""
        self._is_answering = False

    # the connection

    @property
    def is_for_probes(self) -> bool:
        """Whether only health probes are answered."""
        return self._admission is Admission.PROBES_ONLY

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # of a stream
        """Admit the connection, or reject it at low cost."""
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if isinstance(peer, tuple) else ""
        self.transport = LingeringTransport(
            transport,
            self._loop,
            write_seconds=self._limits.write_seconds,
            has_unread=self._has_unread,
        )
        self._admission = self._registry.admit(self, host)
        if self._admission is Admission.REFUSED:
            transport.write(BUSY.render("-"))
            self.transport.close()
            return
        self._is_served = True
        self._uvicorn.connection_made(self.transport)
        self._wait_for(_Missing.HEAD)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the registry."""
        self._clear_deadline()
        self.transport.end()
        self._registry.release(self)
        self._end_serving(exc)

    def eof_received(self) -> None:
        """Close the connection, because the client no longer listens."""
        self.transport.watch_writing()

    def evict(self) -> None:
        """Close immediately, to make room for another connection."""
        self.transport.abort()

    def pause_writing(self) -> None:
        """Wait for a slow reader, for a limited time."""
        self.transport.watch_writing()
        if self._is_served:
            self._uvicorn.pause_writing()

    def resume_writing(self) -> None:
        """Continue writing, because the reader has made room."""
        self.transport.stop_watching()
        if self._is_served:
            self._uvicorn.resume_writing()

    # messages from the application

    def begin_request(self, headers: Iterable[Header]) -> list[Header]:
        """Return the headers of the next request, without the trailers that uvicorn adds to
        them.
        """
        return list(islice(headers, self._header_counts.popleft()))

    def want_body(self) -> None:
        """Read more of the body, because the application waits for it."""
        self.transport.release_reading()

    def begin_answer(self) -> None:
        """Record that a response has begun."""
        self._is_answering = True

    def end_answer(self) -> None:
        """Record that a response is complete, and wait for the next request."""
        self._is_answering = False
        self._unanswered -= 1
        if not self._unanswered:
            self.transport.release_reading()
            self._registry.mark_idle(self)
            self._watch_reading()

    # received data

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that all connections read into, one at a time."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Parse the bytes in the buffer. An invalid request, or one that exceeds a limit, ends the
        connection.
        """
        if self.transport.is_closing():
            self.transport.discard(nbytes)
            return
        data = bytes(self._buffer[:nbytes])
        self._framing.read(nbytes)
        try:
            self._parser.feed_data(data)
            self._framing.check()
        except httptools.HttpParserUpgrade:
            # The request is answered normally; the data after it belongs to another protocol.
            self._framing.end()
        except RefusedError as error:
            self._refuse(error.refusal)
            return
        except httptools.HttpParserError as error:
            cause = error.__context__
            self._refuse(cause.refusal if isinstance(cause, RefusedError) else MALFORMED)
            return
        self._watch_reading()
        self._uvicorn.data_received(data)

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._framing.begin()
        self._url = b""
        self._hosts = self._headers = 0
        self._has_body = False

    def on_url(self, url: bytes) -> None:
        """Add a part of the URL."""
        self._framing.count_url(len(url))
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Check a header; trailers are only counted."""
        self._framing.count_header(len(name) + len(value) + HEADER_LINE_BYTES)
        if not self._framing.in_head:
            return
        lower = name.lower()
        self._headers += 1
        self._hosts += lower == b"host"
        if lower == b"transfer-encoding" or (lower == b"content-length" and value.strip(b"0 ")):
            self._has_body = True

    def on_headers_complete(self) -> None:
        """Admit the request. Its body is read when the application asks for it."""
        self._check_url()
        self._check_host()
        if self._unanswered > PIPELINED_REQUESTS:
            raise RefusedError(TOO_MANY_AT_ONCE)
        self._framing.end_head()
        self._clear_deadline()
        self._unanswered += 1
        self._header_counts.append(self._headers)
        self._registry.mark_busy(self)
        if self._has_body:
            self.transport.hold_reading()

    def on_chunk_header(self) -> None:
        """Count a chunk."""
        self._framing.count_chunk()

    def on_body(self, body: bytes) -> None:
        """Count a part of the body; data that was not requested stays in the operating system's
        buffer.
        """
        self._framing.count_body(len(body))
        if self._unanswered:
            self.transport.hold_reading()

    def on_message_complete(self) -> None:
        """End the request."""
        if self._unanswered <= 1:
            self.transport.release_reading()
        self._framing.end()
        self._clear_deadline()

    def _check_url(self) -> None:
        path = httptools.parse_url(self._url).path
        if not path or not path.isascii():
            raise RefusedError(MALFORMED)

    def _check_host(self) -> None:
        if self._hosts > 1 or (self._hosts == 0 and self._parser.get_http_version() == "1.1"):
            raise RefusedError(NO_HOST)

    # missing data

    def _watch_reading(self) -> None:
        """Set the deadline for missing data, unless it is already set."""
        if not self._framing.in_head:
            self._wait_for(_Missing.BODY)
        elif self._framing.has_begun:
            self._wait_for(_Missing.HEAD)
        elif not self._unanswered:
            self._wait_for(_Missing.REQUEST)

    def _wait_for(self, missing: _Missing) -> None:
        if missing is self._missing or self.transport.is_closing():
            return
        seconds = {
            _Missing.HEAD: self._limits.head_seconds,
            _Missing.BODY: BODY_SECONDS + BODY_GRACE_SECONDS,
            _Missing.REQUEST: self._limits.idle_seconds,
        }
        self._clear_deadline()
        self._missing = missing
        self._deadline = self._loop.call_later(seconds[missing], self._end_late)

    def _clear_deadline(self) -> None:
        self._missing = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end_late(self) -> None:
        self._clear_deadline()
        if self._framing.has_begun:
            self._refuse(HEAD_TOO_SLOW)
        elif self._framing.in_head:
            self.transport.close()
        else:
            self.transport.abort()

    def _refuse(self, refusal: Refusal) -> None:
        """Respond and close. If another response has begun or must come first, only close."""
        self._clear_deadline()
        answer = refusal.write()
        if not self._may_answer():
            self.transport.abort()
            return
        self.transport.write(answer)
        self._framing.in_head = False  # further data is not read
        self.transport.close()
        # The application may be at this request: for it, the caller is gone.
        self._end_serving(None)

    def _end_serving(self, exc: Exception | None) -> None:
        if self._is_served:
            self._is_served = False
            self._uvicorn.connection_lost(exc)

    def _may_answer(self) -> bool:
        if not self._unanswered:
            return True
        is_own = not self._framing.in_head and self._unanswered == 1
        return is_own and not self._is_answering

    def _has_unread(self) -> bool:
        return self._admission is not Admission.REFUSED and not self._framing.in_head


def new_buffer() -> memoryview:
    """Return a buffer for all connections of a server."""
    return memoryview(bytearray(READ_BYTES))
