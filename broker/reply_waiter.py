"""Waits for the final replies of many questions with one read.

Closing a question adds its name to a notice stream of its shard. One of the waiting tasks in this
process reads the notices for all of them. Once this task has received its own reply, another task
takes over.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from broker.context import BrokerContext
from broker.entry_codec import fields_of
from broker.errors import BrokerUnavailableError
from broker.group_reader import next_entries
from broker.journal_reader import JournalReader
from broker.keys import name_of, question_of, shard_keys
from broker.transport.connect import LONGEST_BLOCK_SECONDS, reachable
from broker.values import Fields
from envelope.question import Question

AT_ONCE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class ReaderHandoff:
    """Makes a waiting task the reader. The reply to its question becomes the result of
    `waiting`.
    """

    waiting: "Waiting"


Waiting = asyncio.Future[Fields | ReaderHandoff]
"""Resolves to the reply, or makes the task the reader."""


class ReplyWaiter(JournalReader):
    """Reads journals and replies, and waits for replies."""

    def __init__(self, context: BrokerContext) -> None:
        super().__init__(context)
        self._waiting: dict[str, list[Waiting]] = {}
        self._cursors: dict[bytes, bytes] = {}
        self._being_read = False
        self._first = asyncio.Lock()
        self._not_yet_waiting: set[Waiting] = set()
        self._ending: set[str] = set()
        self._noticed: set[str] = set()

    @asynccontextmanager
    async def subscribe(self, question: Question) -> AsyncIterator["Expectation"]:
        """Collect notices from now on, so that no lookup is needed before waiting within the
        context.
        """
        name = name_of(question)
        await self._set_cursors()
        mine = self._enter(name)
        self._not_yet_waiting.add(mine)
        try:
            yield Expectation(self, name, mine)
        finally:
            self._not_yet_waiting.discard(mine)
            self._leave(name, mine)

    @asynccontextmanager
    async def ending(self, questions: Sequence[Question]) -> AsyncIterator[None]:
        """Within the context, expect the replies of these questions from `publish_local`.

        Notices about them are ignored. Afterwards, a question with a notice whose reply is still
        awaited is looked up, because another process ended it, or the response to its settlement
        was lost.
        """
        names = {name_of(question) for question in questions}
        self._ending |= names
        try:
            yield
        except BrokerUnavailableError:
            await self._look_up(self._resume_reading(names))
            raise
        except BaseException:
            self._resume_reading(names)
            raise
        await self._look_up(self._resume_reading(names))

    def publish_local(self, question: Question, reply: Fields) -> None:
        """Pass the reply of a question that this process ended to the tasks that wait for it."""
        for waiting in self._waiting.get(name_of(question), ()):
            if not waiting.done():
                waiting.set_result(reply)

    async def await_reply(self, question: Question, *, block_seconds: float = 0.0) -> Fields | None:
        """Return the final reply, or None after `block_seconds`."""
        name = name_of(question)
        until = time.monotonic() + block_seconds
        await self._set_cursors()
        mine = self._enter(name)
        try:
            # After entering, so that a question that ends in between is seen here or by its notice.
            reply = await self.find_end(question)
        except BaseException:
            self._leave(name, mine)
            raise
        return await self.wait_for_notice(name, mine, until, reply)

    async def wait_for_notice(
        self, name: str, mine: Waiting, until: float, reply: Fields | None = None
    ) -> Fields | None:
        """Wait for the notice that a question has ended, until `until` (monotonic seconds)."""
        self._not_yet_waiting.discard(mine)
        try:
            while reply is None and time.monotonic() < until:
                mine = latest(mine)
                if mine.done():
                    break
                await self._wait(name, mine, until)
            mine = latest(mine)
            result = mine.result() if mine.done() else None
            return result if isinstance(result, dict) else reply
        finally:
            self._leave(name, latest(mine))
            self._pass_reading_on()

    async def _wait(self, name: str, mine: Waiting, until: float) -> None:
        """Read notices for all tasks if no other task does, or wait for the task that does.

        A task whose question is being settled in this process leaves the reading to another task.
        """
        if name in self._noticed:
            self._pass_reading_on()
        if self._being_read or name in self._noticed:
            await asyncio.wait({mine}, timeout=until - time.monotonic())
            return
        self._being_read = True
        try:
            await self._read_notices(min(until - time.monotonic(), LONGEST_BLOCK_SECONDS))
        finally:
            self._being_read = False

    async def _read_notices(self, seconds: float) -> None:
        read = await next_entries(self._context, self._cursors, seconds=seconds, count=AT_ONCE)
        ended: dict[str, None] = {}
        for _, entries in read:
            ended.update((fields_of(raw)[b"q"].decode(), None) for _, raw in entries)
        self._noticed |= ended.keys() & self._ending
        await self._publish_ends(
            [name for name in ended if name not in self._ending and self._is_awaited(name)]
        )
        # Not earlier: if the lookup failed, the next reader reads these notices again.
        self._cursors.update((stream, entries[-1][0]) for stream, entries in read)

    def _resume_reading(self, names: set[str]) -> list[str]:
        """Stop expecting local replies to these questions; return the names that had a notice and
        are still awaited.
        """
        self._ending -= names
        noticed = names & self._noticed
        self._noticed -= noticed
        return [name for name in noticed if self._is_awaited(name)]

    async def _look_up(self, names: Sequence[str]) -> None:
        # If Redis is unreachable now, the waiting tasks try again later.
        with suppress(BrokerUnavailableError):
            await self._publish_ends(names)

    def _is_awaited(self, name: str) -> bool:
        return any(not waiting.done() for waiting in self._waiting.get(name, ()))

    async def _publish_ends(self, names: Sequence[str]) -> None:
        if not names:
            return
        replies = await self.find_ends([question_of(name) for name in names])
        for name, reply in zip(names, replies, strict=True):
            for waiting in self._waiting.get(name, ()):
                if not waiting.done() and reply is not None:
                    waiting.set_result(reply)

    async def _set_cursors(self) -> None:
        """Start after the latest notice if no task has read yet."""
        if self._cursors:
            return
        async with self._first:
            if not self._cursors:
                self._cursors = await self._last_notices()

    async def _last_notices(self) -> dict[bytes, bytes]:
        keys = [shard_keys(shard).notices.encode() for shard in range(self._context.shards)]
        client: Any = self._context.client
        with reachable():
            last = [
                await client.execute_command("XREVRANGE", key, "+", "-", "COUNT", 1) for key in keys
            ]
        return {
            key: entries[0][0] if entries else b"0-0"
            for key, entries in zip(keys, last, strict=True)
        }

    def _enter(self, name: str) -> Waiting:
        mine: Waiting = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append(mine)
        return mine

    def _leave(self, name: str, mine: Waiting) -> None:
        waiting = self._waiting.get(name, [])
        if mine in waiting:
            waiting.remove(mine)
        if not waiting:
            self._waiting.pop(name, None)

    def _pass_reading_on(self) -> None:
        """Make another task the reader, if there is one."""
        if self._being_read:
            return
        for name, group in self._waiting.items():
            if name in self._noticed:
                continue
            for index, waiting in enumerate(group):
                if not waiting.done() and waiting not in self._not_yet_waiting:
                    # A reply that arrives before this task wakes up is set on the new future.
                    group[index] = asyncio.get_running_loop().create_future()
                    waiting.set_result(ReaderHandoff(group[index]))
                    return


class Expectation:
    """A subscription that existed before the question was submitted."""

    def __init__(self, outcomes: ReplyWaiter, name: str, mine: Waiting) -> None:
        self._outcomes = outcomes
        self._name = name
        self._mine = mine

    async def await_reply(self, *, block_seconds: float) -> Fields | None:
        """Return the final reply, or None after `block_seconds`; may be called only once."""
        until = time.monotonic() + block_seconds
        return await self._outcomes.wait_for_notice(self._name, self._mine, until)


def latest(mine: Waiting) -> Waiting:
    """Return the latest future, which replaced this one after handoffs to its task."""
    while mine.done() and not mine.cancelled() and isinstance(turn := mine.result(), ReaderHandoff):
        mine = turn.waiting
    return mine
