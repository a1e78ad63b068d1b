"""The broker's connections: they pack fast, and notice soon that nobody answers any more.

A batch of settlements has hundreds of arguments, which redis-py packs with several calls each. And
a connection of its has one time limit for everything: here a command that waits in Redis may take
its time, any other must be answered soon, and who did not answer before must greet even sooner.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from redis._parsers.hiredis import NOT_ENOUGH_DATA
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool

GREETING_SECONDS = 1.25
"""For the greeting on a new connection to a server that was silent: it is tried again and again."""
ANSWER_SECONDS = 10.0
"""For any command; a line on which nothing comes back is given up then."""
LATE_SECONDS = 1.0
"""How much longer than it was asked to wait a blocking read may take."""
HANGING_SECONDS = 2.5
"""How long a server counts as hung that was found to hang; it is looked at again before."""
BATCH_BYTES = 1_000_000
"""Room for a batch of settlements that leaves at once."""
HEADS = tuple(b"$%d" % length for length in range(2048))
"""How arguments of these lengths, which nearly all have, are announced (RESP)."""
BLOCKING = frozenset({"XREAD", "XREADGROUP"})


def encode_command(args: Sequence[Any]) -> bytes:
    """Return a command as it travels (RESP): what `hiredis.pack_command` returns.

    That takes half as long again for a batch of settlements, which has hundreds of arguments.
    Raises `TypeError` for what is neither bytes nor text nor a number.
    """
    parts = [b"*%d" % len(args)]
    for arg in args:
        told = (
            arg
            if type(arg) is bytes
            else arg.encode()
            if type(arg) is str
            else _encode_argument(arg)
        )
        length = len(told)
        parts += (HEADS[length] if length < len(HEADS) else b"$%d" % length, told)
    parts.append(b"")
    return b"\r\n".join(parts)


def _encode_argument(arg: object) -> bytes:
    if isinstance(arg, str):
        return arg.encode()
    if isinstance(arg, int | float):
        return repr(arg).encode()
    raise TypeError(f"expected bytes, text or a number, found {type(arg).__name__}")


class ServerLink:
    """What the connections of a process to one server know of it together; for any thread.

    When one of them hears nothing any more, the others that wait in pools are likely to be half
    open as well: each is made anew before it is used.
    """

    def __init__(self) -> None:
        self.heard_at = float("-inf")
        self.suspected_at = float("-inf")
        self.hung_at = float("-inf")
        self.unwatched = False
        self._made: WeakSet[_PackedConnection] = WeakSet()
        self._lock = threading.Lock()

    @property
    def silent(self) -> bool:
        """Whether nothing was heard since somebody waited in vain."""
        return self.heard_at < self.suspected_at

    @property
    def hangs(self) -> bool:
        """Whether the server was found to answer nobody a moment ago."""
        return self.silent and time.monotonic() - self.hung_at < HANGING_SECONDS

    def hang(self) -> None:
        """Note that the server answers nobody, not even on a new connection."""
        self.hung_at = self.suspected_at = time.monotonic()

    def watch_again(self) -> None:
        """Have reads begin anew that began unwatched: their lines may have died meanwhile."""
        if self.unwatched:
            self.unwatched = False
            self.hung_at = float("-inf")
            self.suspect()
            self.give_up(only_reads=True)

    def suspect(self) -> None:
        """Note that somebody waited in vain."""
        self.suspected_at = time.monotonic()

    def record_connection(self, connection: "_PackedConnection") -> None:
        """Note that a connection was made."""
        with self._lock:
            self._made.add(connection)

    def give_up(self, *, only_reads: bool = False) -> None:
        """Break every connection on which nothing was heard since somebody waited in vain.

        `only_reads`: of these only such as a read waits on, which can be done again at no cost.
        """
        with self._lock:
            connections = list(self._made)
        for connection in connections:
            if connection.reads or not only_reads:
                connection.give_up()


class _PackedConnection:
    """Overrides how a connection packs, sends and waits; the rest is redis-py's."""

    socket_timeout: float | None

    def __init__(self, *, line: ServerLink, **options: Any) -> None:
        super().__init__(**{**options, "socket_timeout": ANSWER_SECONDS})
        self._line = line
        self._heard_at = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self.reads = False

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Write at once; only when the socket takes no more is there something to wait for.

        redis-py waits for every write with a time limit, which costs a task each.
        """
        connection: Any = self
        due = check_health and connection.health_check_interval
        if due or not connection.is_connected or isinstance(command, str):
            await super().send_packed_command(command, check_health)  # type: ignore[misc] # of the connection
            return
        parts = [command] if isinstance(command, bytes) else command
        writer = connection._writer  # noqa: SLF001 - this class is mixed into that of redis-py
        writer.write(b"".join(parts))
        if writer.transport.get_write_buffer_size():
            await super().send_packed_command([], check_health=False)  # type: ignore[misc] # of the connection

    def pack_command(self, *args: Any) -> list[bytes]:
        name = args[0]
        if name in BLOCKING and "BLOCK" in args:
            blocked = int(args[args.index("BLOCK") + 1]) / 1000
            self.socket_timeout = blocked + LATE_SECONDS
            self.reads = True
        # A command of several words is left to redis-py.
        if (" " if isinstance(name, str) else b" ") in name:
            parts: list[bytes] = super().pack_command(*args)  # type: ignore[misc] # of the connection
            return parts
        return [encode_command(args)]

    async def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            answer = await super().read_response(*args, **options)  # type: ignore[misc] # as above
        except RedisTimeoutError:
            self._line.suspect()
            raise
        except ResponseError:
            self._record_answer()
            raise
        self._record_answer()
        return answer

    @property
    def suspected(self) -> bool:
        """Whether somebody waited in vain on this line since anything was heard here."""
        return self._heard_at < self._line.suspected_at

    def give_up(self) -> None:
        """Break it, if it is suspected: whoever waits on it is told so. For any thread."""
        if self._loop is not None:
            # A loop that is closed has nobody left who waits.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._break)

    def _break(self) -> None:
        writer = self._writer  # type: ignore[attr-defined] # of the connection
        if writer is not None and self.suspected:
            writer.transport.abort()

    async def can_read(self) -> bool:
        """Return True for a connection that its pool shall make anew before it is used."""
        if self.suspected:
            return True
        readable: bool = await super().can_read()  # type: ignore[misc] # as above
        return readable

    def _record_answer(self) -> None:
        self.socket_timeout = ANSWER_SECONDS
        self.reads = False
        self._heard_at = self._line.heard_at = time.monotonic()

    async def connect_check_health(self, *args: Any, **options: Any) -> None:
        """Make the connection; a server that was silent has little time to greet."""
        if not self.is_connected:  # type: ignore[attr-defined] # of the connection
            self.socket_timeout = GREETING_SECONDS if self._line.silent else ANSWER_SECONDS
            self._loop = asyncio.get_running_loop()
            self._line.record_connection(self)
        await super().connect_check_health(*args, **options)  # type: ignore[misc] # as above


class _PackingConnection(_PackedConnection, Connection):
    """Over TCP."""


class _PackingSSLConnection(_PackedConnection, SSLConnection):
    """Over TLS."""


class _PackingUnixConnection(_PackedConnection, UnixDomainSocketConnection):
    """Over a unix socket, whose buffer does not grow by itself: a batch is to fit into it."""

    async def _connect(self) -> None:
        await super()._connect()  # type: ignore[no-untyped-call] # of redis-py
        writer: Any = self._writer
        # The system caps it; what does not fit is copied, and waits for another turn of the loop.
        end = writer.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BATCH_BYTES)


_PACKING: dict[type, type] = {
    Connection: _PackingConnection,
    SSLConnection: _PackingSSLConnection,
    UnixDomainSocketConnection: _PackingUnixConnection,
}


def is_open(connection: Any) -> bool:
    """Return whether a connection is made, was not ended by the server, and is not suspected."""
    reader = connection._reader  # noqa: SLF001 - redis-py tells it only by reading, which may wait
    return reader is not None and not reader.at_eof() and not connection.suspected


def at_hand(connection: Any, most: int) -> list[Any]:
    """Return the answers that have come already; an error that the server told is one of them.

    Raises what ends a connection.
    """
    reader = connection._parser._reader  # noqa: SLF001 - redis-py gives one answer at a time, and waits
    answers: list[Any] = []
    while len(answers) < most and (answer := reader.gets()) is not NOT_ENOUGH_DATA:
        if isinstance(answer, RedisConnectionError):
            raise answer
        answers.append(answer)
    return answers


def line_of(pool: "ConnectionPool") -> ServerLink:
    """Return what is known of the lines of a pool's connections."""
    line: ServerLink = pool.connection_kwargs["line"]
    return line


def use_ours(pool: "ConnectionPool", line: ServerLink) -> None:
    """Let the pool's connections, none of which is open yet, be the broker's own."""
    pool.connection_class = _PACKING[pool.connection_class]
    pool.connection_kwargs["line"] = line
