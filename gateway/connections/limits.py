"""The limits on connections, and the server's own responses to requests that exceed them.

These responses have the same format as all HTTP errors, and contain no part of the request.
"""

import json
from dataclasses import dataclass, replace
from http import HTTPStatus
from uuid import uuid4

import structlog

HEAD_BYTES = 64 * 1024
"""Maximum size of the request line and all headers of a request."""
HEADER_COUNT = 100
URL_BYTES = 16 * 1024
READ_BYTES = 8 * 1024
"""Maximum size of one read from a connection; all connections share its buffer."""
FRAMING_BYTES = 16 * 1024
"""Maximum total size of the chunk extensions and trailers of a request."""
CHUNK_BYTES = 16
"""The framing of one chunk, which is its size and its line ends."""
PIPELINED_REQUESTS = 8
"""Maximum number of requests on one connection that wait for the response to an earlier request."""
WRITE_BUFFER_BYTES = 64 * 1024
"""The part of a response that is buffered in this process for a slow reader."""
LINGER_SECONDS = 2.0
LINGER_BYTES = 8 * 1024 * 1024
BODY_SECONDS = 20.0
"""How long a request's body may take to arrive."""
PROBE_CONNECTIONS = 16
"""Additional connections above the limit, reserved for health probes."""
RESERVED_DESCRIPTORS = 256
"""File descriptors that are reserved for Redis, the index, files, and child processes."""
log = structlog.get_logger("gateway")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response with a status, a code, and a human-readable description."""

    status: int
    code: str
    message: str

    def write(self) -> bytes:
        """Return the bytes of the response, which ends the connection, and log it in one line."""
        request_id = uuid4().hex
        log.info("request_refused", status=self.status, code=self.code, request_id=request_id)
        return self.render(request_id)

    def render(self, request_id: str) -> bytes:
        """Return the bytes of the response."""
        body = self.body(request_id)
        waiting = "Retry-After: 2\r\n" if self.status == HTTPStatus.SERVICE_UNAVAILABLE else ""
        head = (
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
            "Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "Cache-Control: no-store\r\n"
            f"X-Request-Id: {request_id}\r\n"
            f"{waiting}"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + body

    def body(self, request_id: str) -> bytes:
        """Return the body of the response."""
        kind = "api_error" if self.status >= 500 else "invalid_request_error"
        problem = {
            "message": self.message,
            "type": kind,
            "param": None,
            "code": self.code,
            "request_id": request_id,
        }
        return json.dumps({"error": problem}).encode()


MALFORMED = Refusal(400, "malformed_request", "expected a valid HTTP/1.1 request")
NO_HOST = Refusal(400, "malformed_request", "expected exactly one header Host")
BAD_FRAMING = Refusal(
    400, "malformed_request", "expected a body without long chunk extensions and trailers"
)
TOO_MANY_AT_ONCE = Refusal(400, "too_many_pipelined_requests", "expected fewer unanswered requests")
HEAD_TOO_SLOW = Refusal(408, "timeout", "the headers arrived too slowly")
URL_TOO_LONG = Refusal(414, "url_too_long", f"expected an address of at most {URL_BYTES:,} bytes")
HEAD_TOO_LARGE = Refusal(
    431,
    "headers_too_large",
    f"expected at most {HEAD_BYTES:,} bytes of headers, and at most {HEADER_COUNT} of them",
)
BUSY = Refusal(503, "busy", "too many connections are open: try again")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits that operators can set; times are in seconds."""

    connections: int = 4096
    connections_per_address: int = 256
    head_seconds: float = 10.0
    """Maximum time from accepting a connection, or from the first byte of a later request, until
    the headers are complete.
    """
    idle_seconds: float = 75.0
    """Maximum time between two requests on a connection."""
    write_seconds: float = 30.0
    """How long a client may take to read enough of a response that more of it can be sent."""

    def within(self, descriptors: int) -> "ConnectionLimits":
        """Return the limits reduced to what this many file descriptors allow."""
        room = max(1, descriptors - RESERVED_DESCRIPTORS - PROBE_CONNECTIONS)
        return replace(self, connections=min(self.connections, room))
