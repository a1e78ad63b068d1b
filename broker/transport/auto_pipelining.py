"""A client whose script calls share round trips.

Calls that are made while others are in flight are sent together in the next round trip. A single
call is sent at once. Without this, hundreds of calls at once would take a connection each. Each
call has a separate answer or error; when a round trip fails, each of its calls fails.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import hiredis
from redis.asyncio import Redis
from redis.exceptions import ResponseError

if TYPE_CHECKING:
    from broker.transport.connection import BoundedConnection

LANES = 3
"""Shared round trips in flight at once: while Redis processes one, this process packs the next."""
AT_ONCE = 128
"""The most calls of one shared round trip."""

Call = tuple[Any, ...]
_Waiting = tuple[Call, asyncio.Future[Any]]


class AutoPipeliningRedis(Redis):
    """A client for one event loop whose script calls share round trips; all else is redis-py's."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waiting: list[_Waiting] = []
        self._travelling = 0
        self._lanes: set[asyncio.Task[None]] = set()
        self._kept: list[BoundedConnection] = []
        """Connections of earlier trips: to take one from the pool and return it takes longer."""
        self._is_closed = False

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Return what the script returns; raises what the server or the connection raises."""
        return await self._send_shared(("EVALSHA", sha, numkeys, *keys_and_args))

    async def eval(self, script: str, numkeys: int, *keys_and_args: Any) -> Any:
        """Do the same as `evalsha`: many calls send a script at once to a server that lost it."""
        return await self._send_shared(("EVAL", script, numkeys, *keys_and_args))

    async def _send_shared(self, call: Call) -> Any:
        if self._travelling >= LANES:
            answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._waiting.append((call, answer))
            return await answer
        self._travelling += 1
        try:
            [found] = await self._send_trip([call])
        finally:
            self._release_lane()
        if isinstance(found, ResponseError):
            raise found
        return found

    def _release_lane(self) -> None:
        """Start the next round trip if calls wait for one."""
        if not self._waiting:
            self._travelling -= 1
            return
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        lane = asyncio.get_running_loop().create_task(self._send_batch(batch))
        self._lanes.add(lane)
        lane.add_done_callback(self._lanes.discard)

    async def _send_batch(self, batch: Sequence[_Waiting]) -> None:
        # A call that was cancelled while it waited is not sent.
        batch = [each for each in batch if not each[1].done()]
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
        for (_, answer), found in zip(batch, answers, strict=True):
            if answer.done():
                continue
            if isinstance(found, Exception):
                answer.set_exception(found)
            else:
                answer.set_result(found)

    async def _send_trip(self, calls: Sequence[Call]) -> list[Any]:
        """Send calls now on an unused connection, and return their answers.

        An error of the server is the answer to its call. When the round trip fails or is cancelled,
        the connection is closed, so that no unread answer remains on it.
        """
        connection = self._kept.pop() if self._kept else await self._new_connection()
        try:
            if not connection.is_connected or await connection.can_read():
                # The server closed it, or no longer answers on it: it is opened again below.
                await connection.disconnect(nowait=True)
            return await connection.make_trip([hiredis.pack_command(call) for call in calls])
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            self._kept.append(connection)
            if self._is_closed:
                # A trip that was waiting when the client was closed has connected again.
                await connection.disconnect(nowait=True)

    async def _new_connection(self) -> "BoundedConnection":
        pool: Any = self.connection_pool
        made: BoundedConnection = await pool.get_connection()
        return made

    async def aclose(self, close_connection_pool: bool | None = None) -> None:
        """Close the connections of earlier trips, and the client; later trips leave none open."""
        self._is_closed = True
        while self._kept:
            await self.connection_pool.release(self._kept.pop())
        await super().aclose(close_connection_pool)
