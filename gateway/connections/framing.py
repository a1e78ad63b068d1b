"""Counts the bytes of a request outside its body: head, chunk framing and trailers."""

from gateway.connections.limits import (
    CHUNK_BYTES,
    FRAMING_BYTES,
    HEAD_BYTES,
    HEADER_COUNT,
    READ_BYTES,
    URL_BYTES,
)
from gateway.connections.refusals import BAD_FRAMING, HEAD_TOO_LARGE, URL_TOO_LONG, Refusal


class RefusedError(Exception):
    """A request exceeds a limit."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Framing:
    """Counts the requests of one connection, one after the other; raises `RefusedError`.

    The parser reports a header only when it is complete, so the bytes read are counted as well as
    the parsed ones. One read may contain the end of one request and the beginning of the next, so
    that the count of bytes read may be off by one read.
    """

    def __init__(self) -> None:
        self.in_head = True
        self.read_bytes = 0
        """Read since the last request was complete, or since its headers were."""
        self._head_bytes = 0
        self._headers = 0
        self._url_bytes = 0
        self._body_bytes = 0
        self._chunks = 0

    @property
    def has_begun(self) -> bool:
        """Whether a part of a request has arrived, and not all of its headers."""
        return self.in_head and self.read_bytes > 0

    def read(self, nbytes: int) -> None:
        """Count the bytes that the parser gets next."""
        self.read_bytes += nbytes

    def check(self) -> None:
        """Compare the bytes read with the parsed ones."""
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
        """Count a part of the address."""
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
