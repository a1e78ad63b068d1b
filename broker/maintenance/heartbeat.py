"""Checks each server twice a second, to detect dead connections and hanging servers early.

A blocking read cannot distinguish a server without new entries from a dead connection. Therefore,
one connection of the process sends many short blocking commands in one request. Redis runs the
commands one after the other and responds when each times out. This requires one request every half
minute, which yields a response (a beat) every half second. When a beat is missing, the server is
contacted on a new connection. If the server answers there while the old connection stays silent,
all connections without an answer since then are closed, in all threads. Tasks that wait on these
connections get an error and reconnect.

If a server does not answer on any connection, it may soon resume, and then run every command that
it received. Therefore, calls to a single server keep waiting. In a cluster, the other nodes can
work in the meantime, so calls that wait for a silent node fail.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Any, NoReturn

import hiredis
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from broker.keys import heartbeat_key
from broker.transport.cluster import Address, ClusterClient
from broker.transport.connect import reachable
from broker.transport.connection import AutoPipeliningRedis, link_of

if TYPE_CHECKING:
    from redis.asyncio import Connection

    from broker.context import BrokerContext

BEAT_SECONDS = 0.5
BEATS = 60
"""The number of commands in one request, which covers half a minute."""
LATE_SECONDS = 0.35
"""How late a beat may be. Redis ends a blocked command up to 0.1 s late."""
GREETING_SECONDS = 0.75
"""Time for a server that missed a beat to answer on a new connection."""
GRACE_SECONDS = 0.2
"""Time for the old connection to answer once a new one has, because the server may only have paused
briefly.
"""
AGAIN_SECONDS = 0.25
NEVER_READ_SECONDS = 60.0


class Heartbeat:
    """Checks the server that is responsible for `key`, which never exists.

    If `patient` is true, calls keep waiting for a server that does not answer on any connection,
    instead of failing.
    """

    def __init__(self, client: AutoPipeliningRedis, key: str, *, patient: bool = True) -> None:
        self._pool: Any = client.connection_pool
        self._line = link_of(self._pool)
        self._patient = patient
        beat: tuple[Any, ...] = ("BLPOP", key, BEAT_SECONDS)
        self._beats = BEATS * [hiredis.pack_command(beat)]

    async def keep(self) -> None:
        """Check until the connection fails; raises the error of redis-py if it failed
        immediately.
        """
        try:
            connection: Connection = await self._pool.get_connection()
        except (RedisError, OSError):
            self._line.unwatched = True
            self._miss()
            raise
        self._line.watch_again()
        began = time.monotonic()
        try:
            await self._receive_beats(connection)
        except ResponseError:
            raise  # the server answered, for example that the key has moved to another node
        except (RedisError, OSError):
            self._line.suspect()
            self._line.unwatched = True
            # Reconnect immediately: without a heartbeat, dead connections go unnoticed.
            if time.monotonic() - began < BEAT_SECONDS:
                raise
        finally:
            await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _receive_beats(self, connection: "Connection") -> NoReturn:
        while True:
            await connection.send_packed_command(self._beats)
            for _ in range(BEATS):
                await self._beat(connection)

    async def _beat(self, connection: "Connection") -> None:
        seconds = BEAT_SECONDS + LATE_SECONDS
        while not await _receives(connection, seconds):
            self._line.suspect()
            if not await self._answers():
                self._miss()
                seconds = AGAIN_SECONDS
            elif await _receives(connection, GRACE_SECONDS):
                return
            else:
                self._line.give_up()
                raise RedisTimeoutError(
                    "a connection does not respond, although the server responds on other "
                    "connections"
                )

    def _miss(self) -> None:
        if not self._patient:
            self._line.hang()
            self._line.give_up()

    async def _answers(self) -> bool:
        connection = self._pool.make_connection()
        try:
            async with asyncio.timeout(GREETING_SECONDS):
                await connection.connect()
                await connection.send_command("PING")
                await connection.read_response()
        except ResponseError:
            return True
        except (RedisError, OSError):
            return False
        finally:
            await connection.disconnect(nowait=True)
        return True


class Heartbeats:
    """Checks every server that stores a shard."""

    def __init__(self, context: "BrokerContext") -> None:
        self._context = context
        self._kept: set[Address] = set()

    async def keep(self) -> None:
        """Check until cancelled; raises `BrokerUnavailableError` if a single server is
        unreachable.
        """
        client = self._context.client
        if isinstance(client, AutoPipeliningRedis):
            heartbeat = Heartbeat(client, heartbeat_key(0))
            while True:
                with reachable():
                    await heartbeat.keep()
        if isinstance(client, ClusterClient):
            async with asyncio.TaskGroup() as tasks:
                for shard in range(self._context.shards):
                    tasks.create_task(self._keep(client, heartbeat_key(shard)))
        # fakeredis has no connection.
        await asyncio.Event().wait()

    async def _keep(self, client: ClusterClient, key: str) -> NoReturn:
        """Check the node that is responsible for this key, unless it is already being checked for
        another key.
        """
        while True:
            try:
                address, node = await client.holder(key)
                if address not in self._kept:
                    await self._keep_one(address, Heartbeat(node, key, patient=False))
                    continue
            except (RedisError, OSError):
                client.look_again()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _keep_one(self, address: Address, heartbeat: Heartbeat) -> None:
        self._kept.add(address)
        try:
            await heartbeat.keep()
        finally:
            self._kept.discard(address)


async def _receives(connection: "Connection", seconds: float) -> bool:
    """Return whether an answer arrived in time; an answer that arrives later can still be read."""
    try:
        async with asyncio.timeout(seconds):
            await connection.read_response(timeout=NEVER_READ_SECONDS, disconnect_on_error=False)
    except TimeoutError:
        return False
    return True
