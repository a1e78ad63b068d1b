"""The client of the fault suite: the real desk, and a ledger of its messages and replies."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from broker.errors import BrokerUnavailableError
from broker.ports import Broker, Producer
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Accepted, Busy, Duplicate, Fields, Submission
from envelope.conversation import PauseReply
from envelope.question import Question
from gateway.desk import Desk, Message
from tests.faults.ledger import Ledger
from tests.support.waiting import wait_until

ANSWER_SECONDS = 1.0
"""How long a stopped process is waited for; it submits its requests when it goes on."""


def front_of(ledger: str | Path, pid: int) -> Path:
    """Return the socket of a worker process."""
    return Path(ledger).with_name(f"{pid}.s")


@asynccontextmanager
async def front(broker: Broker, path: Path) -> AsyncIterator[None]:
    """Submit what is asked at this socket while inside; what was begun is ended."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            asked = await reader.read()
            # Without an answer it is asked again, as where the process had died.
            with suppress(BrokerUnavailableError):
                if asked:
                    submission: Submission = pickle.loads(asked)  # noqa: S301 - from our own socket
                    writer.write(pickle.dumps(await broker.producer.submit(submission)))

    async with asyncio.TaskGroup() as under_way:
        server = await asyncio.start_unix_server(
            lambda reader, writer: under_way.create_task(serve(reader, writer)), path
        )
        try:
            yield
        finally:
            server.close()


async def through(path: Path, submission: Submission) -> Accepted | Duplicate | Busy:
    """Submit at a process's socket; raises `BrokerUnavailableError` when no answer comes."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(pickle.dumps(submission))
                writer.write_eof()
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        raise BrokerUnavailableError(f"the client of {path.name} does not answer") from error
    if not answer:
        raise BrokerUnavailableError(f"the client of {path.name} ended")
    found: Accepted | Duplicate | Busy = pickle.loads(answer)  # noqa: S301 - from our own socket
    return found


DEADLINE_SECONDS = 30.0
PERSON = "person-1"
"""Everybody is one person, whose choices and pauses the manager stores."""
APPROVALS = ("approve", "again_approve")
"""What the two replies to a pause say: `approve <message>`, each of which approves it."""
REPORTED = ("outcome", "text", "merged_into", "tasks_completed")
"""The parts of a reply that the ledger keeps."""

T = TypeVar("T")


class NotingProducer:
    """Notes each accepted message, also when only a second try reported that."""

    def __init__(
        self,
        producer: Producer,
        ledger: Ledger,
        front: Callable[[], Path | None],
        not_before_seconds: float,
    ) -> None:
        self.ledger = ledger
        self.not_before_seconds = not_before_seconds
        self.known: set[str] = set()
        self.front = front
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    async def submit(self, submission: Submission) -> Accepted | Duplicate | Busy:
        submission = replace(submission, not_before_seconds=self.not_before_seconds)
        # What is to wait is handed to nobody.
        place = None if self.not_before_seconds else self.front()
        result = await (
            self._producer.submit(submission) if place is None else through(place, submission)
        )
        name = submission.question.message_id
        if not isinstance(result, Busy) and name not in self.known:
            self.known.add(name)
            self.ledger.note(
                "accepted",
                name=name,
                conversation=submission.question.conversation_id,
                text=submission.accepted["text"],
                deadline_seconds=submission.deadline_seconds,
                merged_into=_find_merged_into(result),
            )
        return result


class DeskClient:
    """Asks as a user does, and notes the one reply that the user gets."""

    def __init__(
        self,
        url: str,
        ledger: Ledger,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        not_before_seconds: float = 0.0,
        result_list: str = "reported",
        front: Callable[[], Path | None] = lambda: None,
    ) -> None:
        """Make a client; where `front` names the socket of a worker, messages go there."""
        self._ledger = ledger
        self._broker = broker = RedisBroker(connect(url))
        producer: Any = NotingProducer(broker.producer, ledger, front, not_before_seconds)
        broker.producer = producer
        self._desk = Desk(
            self._broker.producer,
            self._broker.replies,
            tenant="acme",
            assistant="desk",
            channel="test",
            deadline_seconds=deadline_seconds,
            words=lambda key, language: f"{key}/{language}",
            result_list=result_list,
        )

    async def ask(self, text: str, *, conversation: str) -> Fields:
        """Ask `<what> <number>`, which is also the message's name, and return the reply.

        While Redis does not answer, the same message is submitted again and again.
        """
        message = self._message(text, conversation)
        reply = await retry_until_answered(lambda: self._desk.ask(message))
        reported = {key: reply.get(key) for key in REPORTED}
        self._ledger.note("reported", name=message.message_id, **reported)
        return reply

    async def cancel(self, text: str, *, conversation: str, forget: bool = False) -> bool:
        """Cancel a message; True when it was still open."""
        question = self.question(text, conversation)
        ended = await retry_until_answered(
            lambda: self._broker.producer.cancel(question, forget=forget)
        )
        self._ledger.note(
            "cancelled_by_client",
            name=question.message_id,
            conversation=question.conversation_id,
            ended=ended,
            forget=forget,
        )
        return ended

    def question(self, text: str, conversation: str) -> Question:
        """Return the full name of a message."""
        return self._desk.question(self._message(text, conversation))

    async def close(self) -> None:
        """Close its connections."""
        await self._broker.close()

    def _message(self, text: str, conversation: str) -> Message:
        what, number = text.split()
        command = what if what in ("forget", "note") else None
        approves = PauseReply(pause_id=number, approve=True) if what in APPROVALS else None
        return Message(
            text,
            conversation,
            f"{what}-{number}",
            command,
            pause_reply=approves,
            people=(PERSON,),
        )


async def retry_until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    """Return what is answered, asking again while Redis is away."""

    async def try_to_ask() -> tuple[T] | None:
        try:
            return (await ask(),)
        except BrokerUnavailableError:
            return None

    found: tuple[T] = await wait_until(try_to_ask, patience_seconds=None)
    return found[0]


def _find_merged_into(result: Accepted | Duplicate | Busy) -> object:
    if isinstance(result, Accepted):
        return result.merged_into
    reply = result.reply if isinstance(result, Duplicate) else None
    return None if reply is None else reply.get("merged_into")
