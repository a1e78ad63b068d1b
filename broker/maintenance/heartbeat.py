"""Checks each server twice a second, to notice soon that a connection is dead or a server hangs.

A blocking read cannot distinguish a server without new entries from a dead connection. So one
connection of the process sends many short blocking commands together. Redis runs them one after the
other and answers each when it times out: one request every half minute, with an answer (a beat)
every half second. When a beat is missing, the server is contacted on a new connection. If it
answers there while the old connection stays silent, every connection without an answer since then
is closed, in all threads: the tasks that wait on them get an error and connect again.

A server that answers on no connection may resume soon, and then run every command that it received.
Therefore calls keep waiting for a single server. In a cluster the other nodes can work meanwhile,
so calls that wait for a silent node fail.
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
"""Commands that are sent together: one request every half minute."""
LATE_SECONDS = 0.35
"""How late a beat may be: Redis ends a blocked command up to a tenth of a second late."""
GREETING_SECONDS = 0.75
"""Time for a server that missed a beat to answer on a new connection."""
GRACE_SECONDS = 0.2
"""Time for the old connection to answer once a new one did: the server may have paused briefly."""
AGAIN_SECONDS = 0.25
NEVER_READ_SECONDS = 60.0


class Heartbeat:
    """Checks the server that would hold `key`, which never exists.

    `patient`: keep waiting for a server that answers on no connection, instead of failing calls.
    """

    def __init__(self, client: AutoPipeliningRedis, key: str, *, patient: bool = True) -> None:
        self._pool: Any = client.connection_pool
        self._line = link_of(self._pool)
        self._patient = patient
        beat: tuple[Any, ...] = ("BLPOP", key, BEAT_SECONDS)
        self._beats = BEATS * [hiredis.pack_command(beat)]

    async def keep(self) -> None:
        """Check until the connection fails; raises redis-py's error if it failed immediately."""
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
                    "a connection does not respond, although its server answers on others"
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
    """Checks every server that holds a shard."""

    def __init__(self, context: "BrokerContext") -> None:
        self._context = context
        self._kept: set[Address] = set()

    async def keep(self) -> None:
        """Check until cancelled; raises `BrokerUnavailableError` if a single server is away."""
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
        """Check the node that holds this key, unless it is already checked for another key."""
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
    """Return whether an answer arrived in time; a later answer can still be read."""
    try:
        async with asyncio.timeout(seconds):
            await connection.read_response(timeout=NEVER_READ_SECONDS, disconnect_on_error=False)
    except TimeoutError:
        return False
    return True
