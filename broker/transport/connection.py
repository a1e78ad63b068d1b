"""Connections that detect an unresponsive Redis server early.

A redis-py connection has one time limit for everything. Here, the limit of a blocking command
depends on its own duration, other commands have a fixed limit, and a server that was silent before
has less time to accept a new connection. Another task can also interrupt a pending read, because a
heartbeat detects a dead connection before the limits do.

Only public methods of redis-py's connections are overridden.

Script calls share round trips (`AutoPipeliningRedis`): a single call is sent immediately, and calls
made while others are in flight are sent together in the next round trip. Without this, hundreds of
concurrent calls would need a connection each. Each call has its own answer or error; when a round
trip fails, all its calls fail.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import hiredis
from redis.asyncio import Connection, Redis, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

if TYPE_CHECKING:
    from redis.asyncio import ConnectionPool
    from redis.asyncio.connection import AbstractConnection
else:
    AbstractConnection = object

Result = TypeVar("Result")
GREETING_SECONDS = 1.25
"""Time limit for the handshake with a server that was silent. The handshake is repeated."""
ANSWER_SECONDS = 10.0
"""Time limit for other commands. After that, the connection is closed."""
LATE_SECONDS = 1.0
"""How much longer a blocking read may take than its own time limit."""
HANGING_SECONDS = 2.5
"""How long a server is treated as hanging after a failed check."""
BLOCKING = frozenset({"XREAD", "XREADGROUP"})


class ServerLink:
    """The shared state of all connections of a process to one server; thread-safe.

    If one connection gets no answer, idle connections in pools are probably half open as well; each
    of them is reopened before it is used.
    """

    def __init__(self) -> None:
        self.answered_at = float("-inf")
        self.suspected_at = float("-inf")
        self.hung_at = float("-inf")
        self.unwatched = False
        self._made: WeakSet[BoundedConnection] = WeakSet()
        self._lock = threading.Lock()

    @property
    def silent(self) -> bool:
        """Whether the server has been silent since a call timed out."""
        return self.answered_at < self.suspected_at

    @property
    def hangs(self) -> bool:
        """Whether the server recently failed to answer on any connection."""
        return self.silent and time.monotonic() - self.hung_at < HANGING_SECONDS

    def hang(self) -> None:
        """Record that the server does not answer, not even on a new connection."""
        self.hung_at = self.suspected_at = time.monotonic()

    def watch_again(self) -> None:
        """Restart reads that started without a heartbeat, because their connections may be dead."""
        if self.unwatched:
            self.unwatched = False
            self.hung_at = float("-inf")
            self.suspect()
            self.give_up(only_reads=True)

    def suspect(self) -> None:
        """Record a timed-out call."""
        self.suspected_at = time.monotonic()

    def record_connection(self, connection: "BoundedConnection") -> None:
        """Record that a connection was opened."""
        with self._lock:
            self._made.add(connection)

    def give_up(self, *, only_reads: bool = False) -> None:
        """Interrupt every connection that has received no answer since the last timed-out call.

        If `only_reads` is true, only connections with a pending blocking read are interrupted,
        because such a read can be repeated safely.
        """
        with self._lock:
            connections = list(self._made)
        for connection in connections:
            if connection.reads or not only_reads:
                connection.give_up()


class BoundedConnection(AbstractConnection):
    """A redis-py connection with separate time limits, which can be interrupted."""

    def __init__(self, *, line: ServerLink, **options: Any) -> None:
        # redis-py's limit would create a task for each write.
        super().__init__(**{**options, "socket_timeout": None})
        self._line = line
        self._limit_seconds = ANSWER_SECONDS
        self._wait: asyncio.Timeout | None = None
        self._in_trip = False
        self._answered_at = float("-inf")
        self._loop: asyncio.AbstractEventLoop | None = None
        self.reads = False

    async def connect_check_health(self, *args: Any, **options: Any) -> None:
        """Open the connection. A server that was silent gets less time for the handshake."""
        if not self.is_connected:
            self._limit_seconds = GREETING_SECONDS if self._line.silent else ANSWER_SECONDS
            self._loop = asyncio.get_running_loop()
            self._line.record_connection(self)
        await super().connect_check_health(*args, **options)

    def pack_command(self, *args: Any) -> list[bytes]:
        """Encode a command. A blocking command extends the time limit by its duration."""
        name, *rest = args
        if name in BLOCKING and "BLOCK" in rest:
            blocked = int(rest[rest.index("BLOCK") + 1]) / 1000
            self._limit_seconds = blocked + LATE_SECONDS
            self.reads = True
        return [hiredis.pack_command((*name.split(), *rest))]

    async def send_packed_command(self, command: Any, check_health: bool = True) -> None:
        """Send a command within the time limit."""
        sent = super().send_packed_command(command, check_health)
        await (sent if self._in_trip else self._limited(sent))

    async def make_trip(self, commands: Sequence[bytes]) -> list[Any]:
        """Send packed commands and return an answer to each. An error from the server is returned
        as an answer.

        One time limit applies to the whole round trip, because each limit costs a timer.
        """
        if not self.is_connected:
            await self._limited(self.connect_check_health())
        return await self._limited(self._send_and_read(commands))

    async def _send_and_read(self, commands: Sequence[bytes]) -> list[Any]:
        self._in_trip = True
        try:
            await self.send_packed_command(commands)
            return [await self._read_answer() for _ in commands]
        finally:
            self._in_trip = False

    async def _read_answer(self) -> Any:
        try:
            return await self.read_response()
        except ResponseError as error:
            return error

    async def read_response(self, *args: Any, **options: Any) -> Any:
        """Return the next answer; raises the `TimeoutError` of redis-py at the time limit."""
        try:
            has_limit = self._in_trip or options.get("timeout") is not None
            read = super().read_response(*args, **options)
            answer = await (read if has_limit else self._limited(read))
        except RedisTimeoutError:
            if not self.suspected:
                self._line.suspect()
            raise
        except ResponseError:
            self._record_answer()
            raise
        self._record_answer()
        return answer

    async def _limited(self, work: Awaitable[Result]) -> Result:
        """Await within the time limit, and close the connection if the limit is exceeded."""
        outer = self._wait  # nested if the command connects first
        try:
            async with asyncio.timeout(self._limit_seconds) as self._wait:
                return await work
        except TimeoutError as error:
            await self.disconnect(nowait=True)
            raise RedisTimeoutError("the server did not respond in time") from error
        finally:
            self._wait = outer

    @property
    def suspected(self) -> bool:
        """Whether a call timed out after the last answer on this connection."""
        return self._answered_at < self._line.suspected_at

    def give_up(self) -> None:
        """Fail the pending call if the connection is suspected; thread-safe."""
        if self._loop is not None:
            # Nothing waits in a closed loop.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._end_wait)

    def _end_wait(self) -> None:
        if self._wait is not None and self.suspected:
            self._wait.reschedule(asyncio.get_running_loop().time())

    async def can_read(self) -> bool:
        """Return True also for a suspected connection, so that its pool reopens it."""
        if self.suspected:
            return True
        readable: bool = await super().can_read()
        return readable

    def _record_answer(self) -> None:
        self._limit_seconds = ANSWER_SECONDS
        self.reads = False
        self._answered_at = self._line.answered_at = time.monotonic()


class _TcpConnection(BoundedConnection, Connection):
    """A connection over TCP."""


class _TlsConnection(BoundedConnection, SSLConnection):
    """A connection over TLS."""


class _UnixConnection(BoundedConnection, UnixDomainSocketConnection):
    """A connection over a Unix socket."""


_BOUNDED: dict[type, type] = {
    Connection: _TcpConnection,
    SSLConnection: _TlsConnection,
    UnixDomainSocketConnection: _UnixConnection,
}
LANES = 3
"""Maximum number of shared round trips in flight. While Redis processes one, this process encodes
the next.
"""
AT_ONCE = 128
"""Maximum number of calls per shared round trip."""

Call = tuple[Any, ...]
_Waiting = tuple[Call, asyncio.Future[Any]]


class AutoPipeliningRedis(Redis):
    """A redis-py client for one event loop whose script calls share round trips."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waiting: list[_Waiting] = []
        self._travelling = 0
        self._lanes: set[asyncio.Task[None]] = set()
        self._kept: list[BoundedConnection] = []
        """Connections of earlier round trips, which are faster to reuse than those in the pool."""
        self._is_closed = False

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Return the result of the script; raises the error of the server or the connection."""
        return await self._send_shared(("EVALSHA", sha, numkeys, *keys_and_args))

    async def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Like `evalsha`, but sends the script source, for a server that no longer caches it."""
        return await self._send_shared(("EVAL", script, numkeys, *keys_and_args))

    async def _send_shared(self, call: Call) -> Any:
        if self._travelling >= LANES:
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._waiting.append((call, answer))
            return await answer
        self._travelling += 1
        try:
            [result] = await self._send_trip([call])
        finally:
            self._release_lane()
        if isinstance(result, ResponseError):
            raise result
        return result

    def _release_lane(self) -> None:
        """Start the next round trip if calls are waiting for one."""
        if not self._waiting:
            self._travelling -= 1
            return
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        lane = asyncio.get_running_loop().create_task(self._send_batch(batch))
        self._lanes.add(lane)
        lane.add_done_callback(self._lanes.discard)

    async def _send_batch(self, batch: Sequence[_Waiting]) -> None:
        # A call that was cancelled while it waited is not sent.
        batch = [queued for queued in batch if not queued[1].done()]
        try:
            answers = await self._send_trip([call for call, _ in batch]) if batch else ()
        except Exception as error:  # noqa: BLE001 - each call of this trip raises it
            answers = [error] * len(batch)
        except BaseException:
            for _, answer in batch:
                answer.cancel()
            raise
        finally:
            self._release_lane()
        for (_, answer), result in zip(batch, answers, strict=True):
            if answer.done():
                continue
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)

    async def _send_trip(self, calls: Sequence[Call]) -> list[Any]:
        """Send calls immediately on an unused connection, and return their answers.

        A server error is returned as the answer to its call. If the round trip fails or is
        cancelled, the connection is closed, so that no unread answer remains on it.
        """
        connection = self._kept.pop() if self._kept else await self._new_connection()
        try:
            if not connection.is_connected or await connection.can_read():
                # The server closed it or no longer answers on it: it is reopened below.
                await connection.disconnect(nowait=True)
            return await connection.make_trip([hiredis.pack_command(call) for call in calls])
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            self._kept.append(connection)
            if self._is_closed:
                # This trip was waiting when the client was closed, and has connected again.
                await connection.disconnect(nowait=True)

    async def _new_connection(self) -> BoundedConnection:
        pool: Any = self.connection_pool
        made: BoundedConnection = await pool.get_connection()
        return made

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close the client and its idle connections; pending round trips close theirs later."""
        self._is_closed = True
        while self._kept:
            await self.connection_pool.release(self._kept.pop())
        await super().aclose(close_connection_pool)


def link_of(pool: "ConnectionPool") -> ServerLink:
    """Return the shared state of a pool's connections."""
    line: ServerLink = pool.connection_kwargs["line"]
    return line


def use_bounded_connections(pool: "ConnectionPool", line: ServerLink) -> None:
    """Make a pool that has no open connections use `BoundedConnection`."""
    pool.connection_class = _BOUNDED[pool.connection_class]
    pool.connection_kwargs["line"] = line
