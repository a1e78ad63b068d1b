"""Waits for the final replies of many questions with one read.

Closing a question leaves its name on a notice stream of its shard. However many wait in this
process, one of them reads the notices for all; when it has what it came for, it hands the reading
on to another.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from broker.consume.blocking_read import next_entries
from broker.context import BrokerContext
from broker.entry_codec import fields_of
from broker.errors import BrokerUnavailableError
from broker.keys import name_of, question_of, shard_keys
from broker.replies.journal_reader import JournalReader
from broker.transport.connect import LONGEST_BLOCK_SECONDS, reachable
from broker.values import Fields
from envelope.question import Question

AT_ONCE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class ReaderHandoff:
    """It is this one's turn to read; its own reply will be told to `waiting`."""

    waiting: "Waiting"


Waiting = asyncio.Future[Fields | ReaderHandoff | None]
"""Ends with the reply, or with the turn to read; with nothing when its time was over."""


def latest(mine: Waiting) -> Waiting:
    """Return what stands now in the place of one who was given the turn, perhaps many times."""
    while mine.done() and not mine.cancelled() and isinstance(turn := mine.result(), ReaderHandoff):
        mine = turn.waiting
    return mine


class ReplyWaiter(JournalReader):
    """Reads journals and replies, and waits for replies."""

    def __init__(self, space: BrokerContext) -> None:
        super().__init__(space)
        self._waiting: dict[str, list[Waiting]] = {}
        self._cursors: dict[bytes, bytes] = {}
        self._being_read = False
        self._first = asyncio.Lock()
        self._not_yet_waiting: set[Waiting] = set()
        self._ending: set[str] = set()
        self._noticed: set[str] = set()

    @asynccontextmanager
    async def subscribe(self, question: Question) -> AsyncIterator["Expectation"]:
        """Notice whatever ends from here on: who asks inside need not look first."""
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
        """Hear from `ended` how these end: what is noticed of them inside is not looked up.

        What others have ended, and what the lost answer of a settlement would have told, is looked
        up in the end.
        """
        if not questions:
            yield
            return
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
        """Tell whoever waits here for a question that this process itself has ended."""
        for waiting in self._waiting.get(name_of(question), ()):
            if not waiting.done():
                waiting.set_result(reply)

    async def await_reply(self, question: Question, *, block_seconds: float = 0.0) -> Fields | None:
        """Return the final reply, waiting up to `block_seconds` for it."""
        name = name_of(question)
        until = time.monotonic() + block_seconds
        await self._set_cursors()
        mine = self._enter(name)
        try:
            # After entering: what ends between these lines is either seen here or noticed.
            reply = await self.find_end(question)
        except BaseException:
            self._leave(name, mine)
            raise
        return await self.wait_for_notice(name, mine, until, reply)

    async def wait_for_notice(
        self, name: str, mine: Waiting, until: float, reply: Fields | None = None
    ) -> Fields | None:
        """Wait until it is noticed that a question has ended, or `until` (monotonic seconds)."""
        self._not_yet_waiting.discard(mine)
        try:
            while reply is None and time.monotonic() < until:
                mine = latest(mine)
                if mine.done():
                    break
                await self._wait(name, mine, until)
            mine = latest(mine)
            told = mine.result() if mine.done() else None
            return told if isinstance(told, dict) else reply
        finally:
            self._leave(name, latest(mine))
            self._hand_on()

    async def _wait(self, name: str, mine: Waiting, until: float) -> None:
        """Read for everybody when nobody does, else wait for whoever reads.

        Who will be told in a moment by the settlement that is under way lets another read.
        """
        if name in self._noticed:
            self._hand_on()
        if self._being_read or name in self._noticed:
            await _wait_until_done(mine, until - time.monotonic())
            return
        self._being_read = True
        try:
            await self._read_notices(min(until - time.monotonic(), LONGEST_BLOCK_SECONDS))
        finally:
            self._being_read = False

    async def _read_notices(self, seconds: float) -> None:
        read = await next_entries(self._space, self._cursors, seconds=seconds, count=AT_ONCE)
        ended: dict[str, None] = {}
        for _, entries in read:
            ended.update((fields_of(raw)[b"q"].decode(), None) for _, raw in entries)
        self._noticed |= ended.keys() & self._ending
        await self._tell(
            [name for name in ended if name not in self._ending and self._is_awaited(name)]
        )
        # Only now: when telling failed, whoever reads next reads these notices again.
        self._cursors.update((stream, entries[-1][0]) for stream, entries in read)

    def _resume_reading(self, names: set[str]) -> list[str]:
        """Stop leaving these to others; return what was noticed of them, and is awaited still."""
        self._ending -= names
        noticed = names & self._noticed
        self._noticed -= noticed
        return [name for name in noticed if self._is_awaited(name)]

    async def _look_up(self, names: Sequence[str]) -> None:
        # Whoever waits looks from time to time, should Redis be away just now.
        with suppress(BrokerUnavailableError):
            await self._tell(names)

    def _is_awaited(self, name: str) -> bool:
        return any(not waiting.done() for waiting in self._waiting.get(name, ()))

    async def _tell(self, names: Sequence[str]) -> None:
        if not names:
            return
        replies = await self.find_ends([question_of(name) for name in names])
        for name, reply in zip(names, replies, strict=True):
            for waiting in self._waiting.get(name, ()):
                if not waiting.done() and reply is not None:
                    waiting.set_result(reply)

    async def _set_cursors(self) -> None:
        """Begin after the last notice, when nobody has read here yet."""
        if self._cursors:
            return
        async with self._first:
            if not self._cursors:
                self._cursors = await self._last_notices()

    async def _last_notices(self) -> dict[bytes, bytes]:
        keys = [shard_keys(shard).notices.encode() for shard in range(self._space.shards)]
        client: Any = self._space.client
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

    def _hand_on(self) -> None:
        """Let somebody else read, when nobody does."""
        if self._being_read:
            return
        for name, group in self._waiting.items():
            if name in self._noticed:
                continue
            for place, waiting in enumerate(group):
                if not waiting.done() and waiting not in self._not_yet_waiting:
                    # Whatever ends before this one wakes up is told to what stands in its place.
                    group[place] = asyncio.get_running_loop().create_future()
                    waiting.set_result(ReaderHandoff(group[place]))
                    return


class Expectation:
    """Somebody who was there before the question was submitted."""

    def __init__(self, outcomes: ReplyWaiter, name: str, mine: Waiting) -> None:
        self._outcomes = outcomes
        self._name = name
        self._mine = mine

    async def await_reply(self, *, block_seconds: float) -> Fields | None:
        """Return the final reply, waiting up to `block_seconds` for it; ask once."""
        until = time.monotonic() + block_seconds
        return await self._outcomes.wait_for_notice(self._name, self._mine, until)


async def _wait_until_done(mine: Waiting, seconds: float) -> None:
    """Wait until it is told, at most so long: `asyncio.wait` takes three times as much of the loop.

    Who waited in vain finds that it was told nothing.
    """
    timer = asyncio.get_running_loop().call_later(seconds, _tell_nothing, mine)
    try:
        await mine
    finally:
        timer.cancel()


def _tell_nothing(mine: Waiting) -> None:
    if not mine.done():
        mine.set_result(None)
