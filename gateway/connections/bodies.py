"""Reads the body of a request within limits: per body, per address, and per process.

GatewayError
└── BodyError               the body cannot be read
    ├── BodyTooLargeError   it is longer than allowed
    ├── BodyTooSlowError    it does not arrive in time
    ├── BuffersFullError    the process, or the caller's address, holds too many bodies already
    └── CallerGoneError     the connection broke: there is no client to answer
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from gateway.connections.limits import BODY_SECONDS
from gateway.connections.registry import group_address
from gateway.errors import GatewayError

BUFFERED_BYTES = 16 * 1024 * 1024
BUFFERED_BYTES_PER_ADDRESS = 4 * 1024 * 1024
SMALL_BYTES = 16 * 1024
LARGE_SHARE = 0.75
"""The share of the budget for the parts of bodies beyond 16 kB; the rest is reserved for small
bodies.
"""
RETRY_SECONDS = 2


class BodyError(GatewayError):
    """The body of a request cannot be read."""


class BodyTooLargeError(BodyError):
    """The body is longer than allowed."""


class BodyTooSlowError(BodyError):
    """The body does not arrive in time."""


class BuffersFullError(BodyError):
    """Too many bodies are already in memory."""


class CallerGoneError(BodyError):
    """The connection broke before the body was complete."""


class Lease:
    """The part of a budget that one request uses."""

    def __init__(self, budget: "BufferBudget", group: str) -> None:
        self._budget = budget
        self._group = group
        self.held_bytes = 0

    def check(self, nbytes: int) -> None:
        """Raise `BuffersFullError` if there is not enough room for this many more bytes; reserve
        nothing.

        The announced length of a body is not reserved, because the announcement costs the sender
        nothing.
        """
        self._budget.check(self._group, nbytes, is_small=nbytes <= SMALL_BYTES)

    def take(self, nbytes: int) -> None:
        """Reserve more bytes. If there is not enough room, raises `BuffersFullError` and reserves
        nothing.
        """
        is_small = self.held_bytes + nbytes <= SMALL_BYTES
        self._budget.take(self._group, nbytes, is_small=is_small)
        self.held_bytes += nbytes

    def release(self) -> None:
        """Release all bytes."""
        self._budget.give_back(self._group, self.held_bytes)
        self.held_bytes = 0


class BufferBudget:
    """Limits the bytes of request bodies in this process, in total and per address.

    A request keeps its bytes until it is answered, because its text is needed until then.
    """

    def __init__(
        self,
        nbytes: int = BUFFERED_BYTES,
        *,
        per_address: int = BUFFERED_BYTES_PER_ADDRESS,
    ) -> None:
        self._bytes = nbytes
        self._per_address = per_address
        self._held_of: dict[str, int] = {}
        self.held_bytes = 0

    @property
    def largest_body(self) -> int:
        """The size of the largest body that fits into an empty budget, in bytes."""
        return min(self._per_address, int(self._bytes * LARGE_SHARE))

    @contextmanager
    def lease(self, scope: Scope) -> Iterator[Lease]:
        """Provide the lease of a request, and release it when the context exits."""
        client = scope.get("client")
        lease = Lease(self, group_address(client[0]) if client else "")
        try:
            yield lease
        finally:
            lease.release()

    def take(self, group: str, nbytes: int, *, is_small: bool) -> None:
        """Reserve bytes for a group of addresses; raises `BuffersFullError`."""
        self.check(group, nbytes, is_small=is_small)
        self._held_of[group] = self._held_of.get(group, 0) + nbytes
        self.held_bytes += nbytes

    def check(self, group: str, nbytes: int, *, is_small: bool) -> None:
        """Raise `BuffersFullError` if there is not enough room for this many bytes."""
        held = self._held_of.get(group, 0)
        most = self._bytes if is_small else self._bytes * LARGE_SHARE
        if self.held_bytes + nbytes > most or held + nbytes > self._per_address:
            raise BuffersFullError("too many requests are being read: try again")

    def give_back(self, group: str, nbytes: int) -> None:
        """Release bytes."""
        self.held_bytes -= nbytes
        left = self._held_of.get(group, 0) - nbytes
        if left > 0:
            self._held_of[group] = left
        else:
            self._held_of.pop(group, None)


async def read_body(
    scope: Scope,
    receive: Receive,
    lease: Lease,
    *,
    longest_bytes: int,
    seconds: float = BODY_SECONDS,
) -> bytes:
    """Return the body; raises a `BodyError`, immediately if the announced length is too large."""
    too_large = BodyTooLargeError(f"expected a body of at most {longest_bytes:,} bytes")
    length = Headers(scope=scope).get("content-length", "0")
    announced = int(length[:20]) if length.isdecimal() else 0
    if announced > longest_bytes:
        raise too_large
    lease.check(announced)
    pieces, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise CallerGoneError("the connection broke before the body was complete")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > longest_bytes:
                    raise too_large
                lease.take(len(chunk))
                # Pieces of one size: growing one buffer would leave holes in the heap.
                pieces.append(chunk)
                more = bool(message.get("more_body", False))
    except TimeoutError as error:
        raise BodyTooSlowError("the body arrived too slowly") from error
    return b"".join(pieces)
