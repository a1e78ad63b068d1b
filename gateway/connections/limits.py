"""The limits of connections: those that operators set, and those that are fixed."""

from dataclasses import dataclass, replace

HEAD_BYTES = 64 * 1024
"""The request line and all headers of one request."""
HEADER_COUNT = 100
URL_BYTES = 16 * 1024
READ_BYTES = 8 * 1024
"""The most that one read takes from a connection; all connections share its buffer."""
FRAMING_BYTES = 16 * 1024
"""Chunk extensions and trailers of one request, in all."""
CHUNK_BYTES = 16
"""The framing of one chunk: its size and its line ends."""
PIPELINED_REQUESTS = 8
"""Requests that may wait on one connection for the answer to an earlier one."""
WRITE_BUFFER_BYTES = 64 * 1024
"""The part of an answer that waits in this process for a slow reader."""
LINGER_SECONDS = 2.0
LINGER_BYTES = 8 * 1024 * 1024
BODY_SECONDS = 20.0
"""How long a request's body may take to arrive."""
PROBE_CONNECTIONS = 16
"""Connections beyond the limit that are open to health probes alone."""
RESERVED_DESCRIPTORS = 256
"""File descriptors that connections leave to Redis, the index, files and child processes."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits that operators set; times are seconds."""

    connections: int = 4096
    connections_per_address: int = 256
    head_seconds: float = 10.0
    """From accepting a connection, or the first byte of a later request, to complete headers."""
    idle_seconds: float = 75.0
    """Between two requests of a connection."""
    write_seconds: float = 30.0
    """How long a reader may take to make room for more of its answer."""

    def within(self, descriptors: int) -> "ConnectionLimits":
        """Return the limits that this many file descriptors allow."""
        room = max(1, descriptors - RESERVED_DESCRIPTORS - PROBE_CONNECTIONS)
        return replace(self, connections=min(self.connections, room))
