"""Submits messages of HTTP routes, and queues those whose callers can wait while the desk is full.

A shard can be full, or a tenant's share of it. For each of these, this process has a separate
queue. Keys and visitors take turns at the front of the queue, and the messages of each of them keep
their order. Only the messages at the front are resubmitted. A single caller cannot fill the queues.
"""

import asyncio
import random
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial

from broker.errors import BrokerUnavailableError
from broker.values import Accepted, Duplicate, Fields
from envelope.question import Question
from gateway.desk import REQUEST_FIELD, Desk, Message
from gateway.errors import BusyError, StoppingError
from gateway.http.access import Principal
from gateway.http.context import HttpChannel, may_follow, may_see
from gateway.http.errors import InvalidRequestError
from gateway.http.sse import Admission

AT_ONCE = 16
"""Maximum number of concurrent submissions per process; further ones wait for a connection."""
FRONT = 16
"""How many messages at the front of a queue are resubmitted in turn."""
MOST_OF_VISITOR = 20
"""Maximum number of waiting messages per visitor."""
LONGEST_STEP_SECONDS = 1.0
PASSES = frozenset({"overload", "shard_full", "tenant_share"})
"""Reasons that pass soon without any action by the caller, unlike a full conversation."""

Tries = AsyncGenerator[Accepted | Duplicate | None, None]
"""The results of the attempts; None means that the message has not been accepted yet."""


@dataclass(frozen=True, slots=True)
class Party:
    """The owner of a waiting message: the key and, for a public key, also the visitor."""

    key: str = ""
    visitor: str = ""


ANYBODY = Party()
STREAMS_WAIT_LONGER = 3.0
"""Clients that are informed about the queue wait this many times longer."""


class WaitingLine:
    """The waiting messages, in order for each party; `busy` is the most recent rejection."""

    def __init__(self, busy: BusyError, front: int) -> None:
        self.busy = busy
        self._front = front
        self._in_front: set[asyncio.Future[None]] = set()
        self._behind: OrderedDict[Party, dict[asyncio.Future[None], None]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._in_front or self._behind)

    def join(self, party: Party) -> asyncio.Future[None]:
        """Return a future that is done once this message is at the front."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._behind.setdefault(party, {})[mine] = None
        self._move_up()
        return mine

    def leave(self, party: Party, mine: asyncio.Future[None]) -> None:
        """Let the next message move to the front."""
        self._in_front.discard(mine)
        theirs = self._behind.get(party, {})
        theirs.pop(mine, None)
        if not theirs:
            self._behind.pop(party, None)
        self._move_up()

    def _move_up(self) -> None:
        """Move parties to the front in turn, so that many messages from one party do not delay the
        others.
        """
        while self._behind and len(self._in_front) < self._front:
            party, theirs = self._behind.popitem(last=False)
            first = next(iter(theirs))
            del theirs[first]
            if theirs:
                self._behind[party] = theirs
            self._in_front.add(first)
            first.set_result(None)


class Room:
    """Counts waiting messages, and reserves room for other callers.

    A tenant can have as many waiting messages as there is room left for all others, and each of its
    keys as many as the tenant has left (a dynamic threshold: the fuller the queue, the smaller the
    share of each). Therefore, no caller can fill it alone, and there is always room for a new
    caller.
    """

    def __init__(self, *, most: int, most_of_visitor: int) -> None:
        self._most = most
        self._most_of_visitor = most_of_visitor
        self._held: Counter[tuple[str, ...]] = Counter()

    @property
    def held(self) -> int:
        """The number of waiting messages."""
        return self._held[()]

    def has_place(self, tenant: str, party: Party) -> bool:
        """Return whether another message of this party may wait."""
        free = self._most - self._held[()]
        of_tenant = self._held[tenant,]
        left = free - of_tenant
        of_key = self._held[tenant, party.key]
        of_visitor = self._held[tenant, party.key, party.visitor]
        crowded = bool(party.visitor) and of_visitor >= self._most_of_visitor
        return free > 0 and left > 0 and of_key <= left and not crowded

    @contextmanager
    def place(self, tenant: str, party: Party) -> Iterator[None]:
        """Reserve a place inside the context."""
        whole = (tenant, party.key, party.visitor)
        names = [whole[:length] for length in range(len(whole) + 1)]
        self._held.update(names)
        try:
            yield
        finally:
            self._held.subtract(names)
            for name in names:
                if not self._held[name]:
                    del self._held[name]


class AdmissionQueue:
    """Repeats a submission for up to `seconds` before it is rejected; at most `most` messages
    wait.
    """

    def __init__(
        self,
        stopping: asyncio.Event,
        *,
        seconds: float = 20.0,
        most: int = 1_000,
        most_of_visitor: int = MOST_OF_VISITOR,
        front: int = FRONT,
    ) -> None:
        self._stopping = stopping
        self._seconds = seconds
        self._room = Room(most=most, most_of_visitor=most_of_visitor)
        self._front = front
        self._queues: dict[tuple[str, int], WaitingLine] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._random = random.SystemRandom()

    @property
    def waiting(self) -> int:
        """The number of waiting messages in all queues."""
        return self._room.held

    async def once(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        """Submit a message once; raises `BusyError`, also if other messages are waiting before it.

        If the message was accepted before, its earlier result is returned immediately.
        """
        queue = self._queues.get(desk.filling(message)) if self._queues else None
        if queue is not None and not await desk.knows(message):
            raise queue.busy
        return await self._submit_in_turn(desk, message)

    async def submit(
        self, desk: Desk, message: Message, party: Party = ANYBODY
    ) -> Accepted | Duplicate:
        """Submit a message, with several attempts if necessary; raises the same errors as
        `tries`.
        """
        try:
            return await self.once(desk, message)
        except BusyError as busy:
            async with aclosing(self.tries(desk, message, busy, party)) as tries:
                async for result in tries:
                    if result is not None:
                        return result
            raise

    async def tries(
        self,
        desk: Desk,
        message: Message,
        busy: BusyError,
        party: Party = ANYBODY,
        *,
        longer: float = 1.0,
    ) -> Tries:
        """Repeat a submission for `longer` times the usual time; yield None after each failed
        attempt, and the result at the end.

        Raises `BusyError` if the desk stays full, and `StoppingError` if this process stops.
        """
        if not self.may_wait(desk, message, busy, party):
            raise busy
        until = time.monotonic() + self._seconds * longer
        with self._standing(desk, message, busy, party) as (queue, reached):
            while not reached.done():
                await asyncio.wait([reached], timeout=_step(until))
                self._check(queue.busy, until)
                yield None
            async for result in self._in_front(desk, message, queue, until):
                yield result

    def may_wait(
        self, desk: Desk, message: Message, busy: BusyError, party: Party = ANYBODY
    ) -> bool:
        """Return whether another attempt may soon succeed, and there is room for another waiting
        message.
        """
        tenant, _ = desk.filling(message)
        return busy.reason in PASSES and self._room.has_place(tenant, party)

    async def _in_front(
        self, desk: Desk, message: Message, queue: WaitingLine, until: float
    ) -> Tries:
        """Try immediately, because an earlier message may have left the queue once the desk had
        room again.
        """
        while True:
            self._check(queue.busy, until)
            try:
                result = await self._submit_in_turn(desk, message)
            except BusyError as busy:
                self._check(busy, until)
                queue.busy = busy
            else:
                yield result
                return
            yield None
            step = min(queue.busy.retry_after_seconds, _step(until))
            await asyncio.sleep(step * self._random.uniform(0.3, 1.0))

    async def _submit_in_turn(self, desk: Desk, message: Message) -> Accepted | Duplicate:
        async with self._turn:
            return await desk.submit(message)

    @contextmanager
    def _standing(
        self, desk: Desk, message: Message, busy: BusyError, party: Party
    ) -> Iterator[tuple[WaitingLine, asyncio.Future[None]]]:
        name = desk.filling(message)
        queue = self._queues.setdefault(name, WaitingLine(busy, self._front))
        with self._room.place(name[0], party):
            mine = queue.join(party)
            try:
                yield queue, mine
            finally:
                queue.leave(party, mine)
                if not queue:
                    del self._queues[name]

    def _check(self, busy: BusyError, until: float) -> None:
        if time.monotonic() >= until or busy.reason not in PASSES:
            raise busy
        if self._stopping.is_set():
            raise StoppingError("this process is stopping: send the message again with the same id")


class QuestionSender:
    """Counts a message against its limits, submits it in turn, and returns its reply.

    When `stopping` is set, waiting requests end, so that clients continue at another process.
    """

    def __init__(
        self, channel: HttpChannel, stopping: asyncio.Event, patience: AdmissionQueue
    ) -> None:
        self._channel = channel
        self._stopping = stopping
        self._patience = patience

    async def admit(self, caller: Principal, question: Question) -> None:
        """Count a question; a repetition with the same id is not counted again."""
        once = "\x1f".join((*question.conversation, question.message_id))
        await self._channel.guard.admit_question(caller, once=once)

    async def ask(
        self,
        caller: Principal,
        desk: Desk,
        message: Message,
        *,
        on_accepted: Callable[[], Awaitable[None]] | None = None,
    ) -> Fields:
        """Submit a message and return its reply; `on_accepted` is called before waiting for the
        reply.
        """
        submit = partial(self._patience.submit, desk, message, party_of(caller))
        async with desk.submitting(message, submit) as submitted:
            if isinstance(submitted.result, Duplicate):
                await self._check_same(caller, submitted.question, message)
            if on_accepted is not None:
                await on_accepted()
            try:
                return await desk.await_reply(submitted, stopping=self._stopping)
            except BrokerUnavailableError:
                # After the deadline, with Redis still unreachable, only the apology remains.
                return desk.last_resort(submitted.question, message.language)

    async def start(self, caller: Principal, desk: Desk, message: Message) -> None:
        """Submit a message without waiting for its reply; raises `BusyError`."""
        result = await self._patience.submit(desk, message, party_of(caller))
        if isinstance(result, Duplicate):
            await self._check_same(caller, desk.question(message), message)

    async def start_stream(
        self, caller: Principal, desk: Desk, message: Message
    ) -> Admission | None:
        """Submit a message for a stream; if the desk is full, return its waiting submission."""
        party = party_of(caller)
        try:
            if isinstance(await self._patience.once(desk, message), Duplicate):
                await self._check_same(caller, desk.question(message), message)
        except BusyError as busy:
            if not self._patience.may_wait(desk, message, busy, party):
                raise
            return self._patience.tries(desk, message, busy, party, longer=STREAMS_WAIT_LONGER)
        return None

    async def _check_same(self, caller: Principal, question: Question, message: Message) -> None:
        """Reject a different text under the id of an accepted message.

        A caller who may not follow that message is rejected in the same way, and so learns nothing
        about its text. A message without a recorded key was accepted before keys were recorded, and
        can be repeated.
        """
        journal = await self._channel.replies.read_journal(question)
        if not journal:
            raise InvalidRequestError(
                "this message was erased: send it again with another id",
                code="message_forgotten",
                status=410,
            )
        accepted = journal[0]
        is_theirs = (
            may_see(caller, accepted)
            if "key" not in accepted.fields
            else may_follow(caller, accepted)
        )
        is_same = (
            accepted.fields.get("text") == message.text
            and accepted.fields.get(REQUEST_FIELD, "") == message.order.digest
        )
        if not is_same or not is_theirs:
            raise InvalidRequestError(
                "this message id was used before for another message: send it with another id",
                code="message_id_reused",
                status=409,
            )


def party_of(caller: Principal) -> Party:
    """Return the party under which a caller waits while the desk is full."""
    if caller.key is None:
        return Party()
    return Party(caller.key.id, caller.visitor.owner if caller.public else "")


def _step(until: float) -> float:
    """Return the seconds until the next check."""
    return max(0.0, min(LONGEST_STEP_SECONDS, until - time.monotonic()))
