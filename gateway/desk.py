"""The desk as its doors see it: submit a message, follow its journal, get its one reply."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

import structlog
from pydantic import JsonValue

from broker.errors import BrokerUnavailableError
from broker.port import Accepted, Broker, Busy, Duplicate, Fields, JournalEntry, Submission
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.question import Question
from envelope.role import Role
from gateway.errors import BusyError
from gateway.text import checked_name, cleaned

log = structlog.get_logger("gateway")

BLOCK_SECONDS = 1.0
AWAY_SECONDS = 0.5
"""How long a door waits before it asks a Redis again that did not answer."""
GRACE_SECONDS = 5.0
"""How much longer than its deadline a door waits for an outcome."""


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody sent: a text, or a command with its arguments."""

    text: str
    conversation_id: str
    message_id: str
    command: str | None = None
    arguments: tuple[str, ...] = ()


class Desk:
    """Submits messages for one tenant and assistant, and waits for their outcomes."""

    def __init__(
        self,
        broker: Broker,
        *,
        tenant: str,
        assistant: str,
        channel: str,
        deadline_seconds: float,
        apology: Callable[[str], str],
        result_list: str = "",
    ) -> None:
        self._broker = broker
        self._tenant = tenant
        self._assistant = assistant
        self._channel = channel
        self._deadline_seconds = deadline_seconds
        self._apology = apology
        self._result_list = result_list

    def question(self, message: Message) -> Question:
        """Return the full name of a message sent here."""
        return Question(
            tenant=self._tenant,
            assistant=self._assistant,
            conversation_id=checked_name(message.conversation_id, "conversation id"),
            message_id=checked_name(message.message_id, "message id"),
        )

    async def submit(self, message: Message) -> Accepted | Duplicate:
        """Hand a message in; raises `MessageError` or `BusyError`."""
        question = self.question(message)
        payload = _payload(message)
        envelope = self._envelope(question, payload)
        result = await self._broker.submit(
            Submission(
                question=question,
                frame=envelope.encode(),
                role=Role.MANAGER.value,
                deadline_seconds=self._deadline_seconds,
                last_resort=self._last_resort(question),
                result_list=self._result_list,
                accepted={"text": payload["text"], "channel": self._channel},
            )
        )
        if isinstance(result, Busy):
            raise BusyError(
                f"the desk is busy ({result.reason}): "
                f"try again in {result.retry_after_seconds:.0f} seconds",
                result.retry_after_seconds,
            )
        return result

    async def follow(self, question: Question, *, after: str = "0") -> AsyncIterator[JournalEntry]:
        """Yield what happens to a question until its finished entry, which comes last."""
        last = after
        waited_until = time.monotonic() + self._deadline_seconds + GRACE_SECONDS
        while time.monotonic() < waited_until:
            try:
                entries = await self._broker.journal(
                    question, after=last, block_seconds=BLOCK_SECONDS
                )
            except BrokerUnavailableError as error:
                await _waited(error, waited_until)
                continue
            for entry in entries:
                last = entry.id
                yield entry
                if entry.kind == "finished":
                    return

    async def ask(self, message: Message) -> Fields:
        """Submit and wait: return the one reply of this message."""
        result = await self.submit(message)
        if isinstance(result, Duplicate) and result.reply is not None:
            return result.reply
        question = self.question(message)
        reply = await self._outcome(question)
        return reply if reply is not None else self._last_resort(question)

    async def _outcome(self, question: Question) -> Fields | None:
        """Wait for the reply, through times in which Redis does not answer."""
        until = time.monotonic() + self._deadline_seconds + GRACE_SECONDS
        while True:
            seconds = max(0.0, until - time.monotonic())
            try:
                return await self._broker.outcome(question, block_seconds=seconds)
            except BrokerUnavailableError as error:
                await _waited(error, until)

    def _envelope(self, question: Question, payload: dict[str, JsonValue]) -> Envelope:
        now = time.time()
        return Envelope(
            tenant=question.tenant,
            assistant=question.assistant,
            channel=self._channel,
            conversation_id=question.conversation_id,
            message_id=question.message_id,
            create_ts=now,
            update_ts=now,
            deadline_ts=now + self._deadline_seconds,
            target_role=Role.MANAGER.value,
            result_list=self._result_list,
            trace_parent=f"00-{uuid4().hex}-{uuid4().hex[:16]}-01",
            payload=payload,
        )

    def _last_resort(self, question: Question) -> Fields:
        return {
            "outcome": Outcome.FAILED.value,
            "text": self._apology("en"),
            "language": "en",
            "sources": [],
            "suggested_actions": [],
            "termination_reason": "deadline",
            "conversation_id": question.conversation_id,
            "message_id": question.message_id,
        }


async def _waited(error: BrokerUnavailableError, until: float) -> None:
    """Wait before asking again: what was accepted is worked on as soon as Redis is back."""
    if time.monotonic() >= until:
        raise error
    log.warning("broker_unreachable", what="outcome", error=str(error))
    await asyncio.sleep(AWAY_SECONDS)


def parsed(text: str, commands: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return command and arguments of `/command argument ...`, or None for a question."""
    words = text.split()
    if not words or not words[0].startswith("/") or "/" in words[0][1:]:
        return None, ()
    name = words[0][1:].lower().replace("-", "_")
    known = name in commands or name.isidentifier()
    return (name, tuple(words[1:])) if known else (None, ())


def _payload(message: Message) -> dict[str, JsonValue]:
    payload: dict[str, JsonValue] = {"text": cleaned(message.text)}
    if message.command is not None:
        payload["command"] = message.command
        payload["arguments"] = list(message.arguments)
    return payload
