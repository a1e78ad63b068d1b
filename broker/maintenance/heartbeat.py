"""Hears from each server twice a second, and notices soon that a line is dead or a server hangs.

A read that waits cannot tell a server with nothing to say from a line on which nothing comes any
more. So one connection of the process asks for many short waits at once. Redis does one after the
other and tells of each when it is over: one round trip in half a minute, and a beat of it every
half a second. When one is missing, the server is greeted on a new line. If it answers there while
the old line stays mute, every line on which nothing was heard since is broken, in all threads:
whoever waits on one is told so, and connects again.

A server that answers nobody may go on in a moment, with everything it was asked. A single one is
waited for. In a cluster others can work meanwhile: what waits for a node that hangs is broken off.
"""

import asyncio
import time
from typing import TYPE_CHECKING, Any, NoReturn

import hiredis
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from broker.keys import pulse_key
from broker.transport.auto_pipelining import AutoPipeliningRedis
from broker.transport.cluster import Address, ClusterClient
from broker.transport.connect import reachable
from broker.transport.encode_command import line_of

if TYPE_CHECKING:
    from redis.asyncio import Connection

    from broker.context import BrokerContext

BEAT_SECONDS = 0.5
BEATS = 60
"""Asked for at once: a round trip in half a minute."""
LATE_SECONDS = 0.35
"""So late a beat may come: a server ends a wait up to a tenth of a second late."""
GREETING_SECONDS = 0.75
"""For a server that missed a beat to answer on a new line."""
GRACE_SECONDS = 0.2
"""For the old line to speak, once the server answers on a new one: perhaps it hung for a moment."""
AGAIN_SECONDS = 0.25
NEVER_READ_SECONDS = 60.0


class Heartbeat:
    """Hears from one server; `key` lies on it and never exists. `patient`: see above."""

    def __init__(self, client: AutoPipeliningRedis, key: str, *, patient: bool = True) -> None:
        self._pool: Any = client.connection_pool
        self._line = line_of(self._pool)
        self._patient = patient
        beat: tuple[Any, ...] = ("BLPOP", key, BEAT_SECONDS)
        self._beats = BEATS * [hiredis.pack_command(beat)]

    async def keep(self) -> None:
        """Hear until nothing comes any more; raises what redis-py raises when nothing ever came."""
        try:
            connection: Connection = await self._pool.get_connection()
        except (RedisError, OSError):
            self._line.unwatched = True
            self._miss()
            raise
        self._line.watch_again()
        began = time.monotonic()
        try:
            await self._hear(connection)
        except ResponseError:
            raise  # it speaks, if only to say that the key is elsewhere now
        except (RedisError, OSError):
            self._line.suspect()
            self._line.unwatched = True
            # The next line is made at once: until then nobody would notice a dead one.
            if time.monotonic() - began < BEAT_SECONDS:
                raise
        finally:
            await connection.disconnect(nowait=True)
            await self._pool.release(connection)

    async def _hear(self, connection: "Connection") -> NoReturn:
        while True:
            await connection.send_packed_command(self._beats)
            for _ in range(BEATS):
                await self._beat(connection)

    async def _beat(self, connection: "Connection") -> None:
        seconds = BEAT_SECONDS + LATE_SECONDS
        while not await _hears(connection, seconds):
            self._line.suspect()
            if not await self._answers():
                self._miss()
                seconds = AGAIN_SECONDS
            elif await _hears(connection, GRACE_SECONDS):
                return
            else:
                self._line.give_up()
                raise RedisTimeoutError("nothing comes on a line whose server answers on others")

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
    """Hears from every server that holds a shard."""

    def __init__(self, space: "BrokerContext") -> None:
        self._space = space
        self._kept: set[Address] = set()

    async def keep(self) -> None:
        """Hear for ever; raises `BrokerUnavailableError` when the only server is not heard."""
        client = self._space.client
        if isinstance(client, AutoPipeliningRedis):
            pulse = Heartbeat(client, pulse_key(0))
            while True:
                with reachable():
                    await pulse.keep()
        if isinstance(client, ClusterClient):
            async with asyncio.TaskGroup() as tasks:
                for shard in range(self._space.shards):
                    tasks.create_task(self._keep(client, pulse_key(shard)))
        # A Redis that is played in this process has no line.
        await asyncio.Event().wait()

    async def _keep(self, client: ClusterClient, key: str) -> NoReturn:
        """Hear from whichever node holds this key, unless that is done for another key."""
        while True:
            try:
                address, node = await client.holder(key)
                if address not in self._kept:
                    await self._keep_one(address, Heartbeat(node, key, patient=False))
                    continue
            except (RedisError, OSError):
                client.look_again()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _keep_one(self, address: Address, pulse: Heartbeat) -> None:
        self._kept.add(address)
        try:
            await pulse.keep()
        finally:
            self._kept.discard(address)


async def _hears(connection: "Connection", seconds: float) -> bool:
    """Return whether something came in time; what comes later can still be heard."""
    try:
        async with asyncio.timeout(seconds):
            await connection.read_response(timeout=NEVER_READ_SECONDS, disconnect_on_error=False)
    except TimeoutError:
        return False
    return True
