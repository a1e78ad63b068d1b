"""The broker's connections: they encode quickly, and notice soon that a server no longer answers.

A batch of settlements has hundreds of arguments, for each of which redis-py makes several calls.
And a connection of redis-py has one time limit for everything. Here a blocking command may take its
time, any other command must be answered soon, and a server that did not answer before has even less
time to accept a new connection.
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
"""Time limit of the handshake with a server that was silent: it is repeated until it succeeds."""
ANSWER_SECONDS = 10.0
"""Time limit of any command; then its connection is closed."""
LATE_SECONDS = 1.0
"""How much longer than its own limit a blocking read may take."""
HANGING_SECONDS = 2.5
"""How long a server counts as hung; it is checked again earlier."""
BATCH_BYTES = 1_000_000
"""Size of the send buffer: a batch of settlements fits into it."""
HEADS = tuple(b"$%d" % length for length in range(2048))
"""The encoded lengths (RESP) of nearly all arguments."""
BLOCKING = frozenset({"XREAD", "XREADGROUP"})


def encode_command(args: Sequence[Any]) -> bytes:
    """Return an encoded command (RESP), equal to the result of `hiredis.pack_command`.

    `pack_command` takes 1.5 times as long for a batch of settlements with hundreds of arguments.
    Raises `TypeError` for an argument that is neither bytes nor text nor a number.
    """
    parts = [b"*%d" % len(args)]
    for arg in args:
        encoded = (
            arg
            if type(arg) is bytes
            else arg.encode()
            if type(arg) is str
            else _encode_argument(arg)
        )
        length = len(encoded)
        parts += (HEADS[length] if length < len(HEADS) else b"$%d" % length, encoded)
    parts.append(b"")
    return b"\r\n".join(parts)


def _encode_argument(arg: object) -> bytes:
    if isinstance(arg, str):
        return arg.encode()
    if isinstance(arg, int | float):
        return repr(arg).encode()
    raise TypeError(f"expected bytes, text or a number, found {type(arg).__name__}")


class ServerLink:
    """The state that all connections of a process to one server share; for any thread.

    When one connection gets no answer, the idle ones in pools are probably half open as well: each
    is opened again before it is used.
    """

    def __init__(self) -> None:
        self.answered_at = float("-inf")
        self.suspected_at = float("-inf")
        self.hung_at = float("-inf")
        self.unwatched = False
        self._made: WeakSet[_PackedConnection] = WeakSet()
        self._lock = threading.Lock()

    @property
    def silent(self) -> bool:
        """Whether no answer arrived since a call waited in vain."""
        return self.answered_at < self.suspected_at

    @property
    def hangs(self) -> bool:
        """Whether the server was recently found to answer on no connection."""
        return self.silent and time.monotonic() - self.hung_at < HANGING_SECONDS

    def hang(self) -> None:
        """Record that the server answers on no connection, not even on a new one."""
        self.hung_at = self.suspected_at = time.monotonic()

    def watch_again(self) -> None:
        """Restart reads that began without a heartbeat: their connections may have died since."""
        if self.unwatched:
            self.unwatched = False
            self.hung_at = float("-inf")
            self.suspect()
            self.give_up(only_reads=True)

    def suspect(self) -> None:
        """Record that a call waited in vain."""
        self.suspected_at = time.monotonic()

    def record_connection(self, connection: "_PackedConnection") -> None:
        """Record that a connection was opened."""
        with self._lock:
            self._made.add(connection)

    def give_up(self, *, only_reads: bool = False) -> None:
        """Break every connection without an answer since a call waited in vain.

        `only_reads`: only those on which a read waits, which can be repeated safely.
        """
        with self._lock:
            connections = list(self._made)
        for connection in connections:
            if connection.reads or not only_reads:
                connection.give_up()


class _PackedConnection:
    """Overrides how a connection of redis-py encodes, sends and waits."""

    socket_timeout: float | None

    def __init__(self, *, line: ServerLink, **options: Any) -> None:
        super().__init__(**{**options, "socket_timeout": ANSWER_SECONDS})
        self._line = line
        self._answered_at = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self.reads = False

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Write without waiting, unless the send buffer of the socket is full.

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
        """Whether a call waited in vain since the last answer on this connection."""
        return self._answered_at < self._line.suspected_at

    def give_up(self) -> None:
        """Break the connection if it is suspected: waiting tasks get an error. For any thread."""
        if self._loop is not None:
            # In a closed loop no task waits.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._break)

    def _break(self) -> None:
        writer = self._writer  # type: ignore[attr-defined] # of the connection
        if writer is not None and self.suspected:
            writer.transport.abort()

    async def can_read(self) -> bool:
        """Return True also for a suspected connection, which its pool then opens again."""
        if self.suspected:
            return True
        readable: bool = await super().can_read()  # type: ignore[misc] # as above
        return readable

    def _record_answer(self) -> None:
        self.socket_timeout = ANSWER_SECONDS
        self.reads = False
        self._answered_at = self._line.answered_at = time.monotonic()

    async def connect_check_health(self, *args: Any, **options: Any) -> None:
        """Open the connection; a server that was silent gets less time for the handshake."""
        if not self.is_connected:  # type: ignore[attr-defined] # of the connection
            self.socket_timeout = GREETING_SECONDS if self._line.silent else ANSWER_SECONDS
            self._loop = asyncio.get_running_loop()
            self._line.record_connection(self)
        await super().connect_check_health(*args, **options)  # type: ignore[misc] # as above


class _PackingConnection(_PackedConnection, Connection):
    """A connection over TCP."""


class _PackingSSLConnection(_PackedConnection, SSLConnection):
    """A connection over TLS."""


class _PackingUnixConnection(_PackedConnection, UnixDomainSocketConnection):
    """A connection over a Unix socket, whose buffer must fit a batch because it does not grow."""

    async def _connect(self) -> None:
        await super()._connect()  # type: ignore[no-untyped-call] # of redis-py
        writer: Any = self._writer
        # The system caps it; the rest of a batch is copied, and sent in the next turn of the loop.
        end = writer.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BATCH_BYTES)


_PACKING: dict[type, type] = {
    Connection: _PackingConnection,
    SSLConnection: _PackingSSLConnection,
    UnixDomainSocketConnection: _PackingUnixConnection,
}


def is_open(connection: Any) -> bool:
    """Return whether a connection is open, the server did not close it, and it is not suspected."""
    reader = connection._reader  # noqa: SLF001 - redis-py reports it only by a read, which may wait
    return reader is not None and not reader.at_eof() and not connection.suspected


def read_buffered_answers(connection: Any, most: int) -> list[Any]:
    """Return up to `most` answers that have arrived already, among them errors of commands.

    Raises the errors that end a connection.
    """
    reader = connection._parser._reader  # noqa: SLF001 - redis-py gives one answer at a time, and waits
    answers: list[Any] = []
    while len(answers) < most and (answer := reader.gets()) is not NOT_ENOUGH_DATA:
        if isinstance(answer, RedisConnectionError):
            raise answer
        answers.append(answer)
    return answers


def line_of(pool: "ConnectionPool") -> ServerLink:
    """Return the shared state of a pool's connections."""
    line: ServerLink = pool.connection_kwargs["line"]
    return line


def use_ours(pool: "ConnectionPool", line: ServerLink) -> None:
    """Have the pool, which has no open connection yet, use the broker's connection classes."""
    pool.connection_class = _PACKING[pool.connection_class]
    pool.connection_kwargs["line"] = line
