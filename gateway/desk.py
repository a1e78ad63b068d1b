"""The facade for channels: submit a message, follow its journal, and receive its reply."""

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import structlog
from pydantic import JsonValue

from broker.errors import BrokerUnavailableError
from broker.ports import Eraser, Producer, ReplyReader, ReplySubscription
from broker.transport.connect import Outage
from broker.values import Accepted, Busy, Duplicate, Erased, Fields, JournalEntry, Submission
from envelope.conversation import Pause, PauseReply, Turn
from envelope.encoding import escape_surrogates
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.question import Question, list_copies, qualify_conversation, shard_of
from envelope.role import Role
from envelope.swarm import read_cancelled
from gateway.answer import DEAD_LETTER, DEADLINE, FORGOTTEN, LOST, Words
from gateway.conversations import Conversations
from gateway.errors import BusyError, MessageError, StoppingError
from gateway.port import SubmittedQuestion
from gateway.text import check_name, clean_text

DEADLINE_FIELD = "deadline_seconds"
REQUEST_FIELD = "request_digest"


@dataclass(frozen=True, slots=True)
class JobOrder:
    """The options of a long job.

    - `way`: the name of the way of answering; None: the assistant's default
    - `deadline_seconds`: the time limit; None: the desk's default
    - `payload`: additional attributes of the payload, as defined in the catalogue
    - `digest`: a digest of the whole request; the same id with a different digest is rejected
    """

    way: str | None = None
    deadline_seconds: float | None = None
    payload: Mapping[str, JsonValue] = field(default_factory=dict)
    digest: str = ""

    @property
    def accepted_fields(self) -> Fields:
        """Fields of the order that are recorded in the journal when the message is accepted."""
        noted: Fields = {}
        if self.deadline_seconds is not None:
            noted[DEADLINE_FIELD] = self.deadline_seconds
        if self.digest:
            noted[REQUEST_FIELD] = self.digest
        return noted


PLAIN = JobOrder()
"""The options of an ordinary message."""
log = structlog.get_logger("gateway")

BLOCK_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""How often a task that waits for an outcome checks whether to continue."""
AWAY_SECONDS = 0.5  # before Redis is asked again after it did not answer
GRACE_SECONDS = 5.0  # how much longer than its deadline a channel waits for an outcome
Submit = Callable[[], Awaitable[Accepted | Duplicate]]
NAMES = 1024
"""The number of validated question ids that are cached, because a request uses them repeatedly."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message from a person: text, or a command with its arguments.

    - `language` (BCP 47): for a reply to a message whose language is never detected
    - `request_id`, `key_id`: recorded in the journal; `key_id` is the key that sent the message,
      empty without a key, None for a channel without keys
    - `not_before_seconds`: messages that arrive within this time are merged into the waiting one
    - `shows_drafts`: whether the channel shows sentences before the answer is approved
    - `groups`: the person's groups, as known to the channel; requests cannot set them
    - `people`: digests of the authors of the text; empty if the channel does not know them
    - `repeated_person`: in a repeated question, the digest of the person who asked first, so that
      the copy can be found and erased; that person's preferences are neither applied nor changed
    - `person_name`: the author's name in the channel, for a desk that `names_people`
    - `pause_reply`: a structured reply to an open pause; `text` contains its wording
    - `order`: a different way of answering, more time, or a review
    - `strategy`, `persona`: how a swarm divides the question, and the persona in which it answers
    - `client`: the type of client in records, if a channel has several; empty: the channel
    - `history`, `pause`: set by clients that store the conversation; None: the desk's memory
    """

    text: str
    conversation_id: str
    message_id: str
    command: str | None = None
    arguments: tuple[str, ...] = ()
    language: str = "en"
    request_id: str = ""
    key_id: str | None = None
    not_before_seconds: float = 0.0
    shows_drafts: bool = False
    history: tuple[Turn, ...] | None = None
    pause: Pause | None = None
    groups: tuple[str, ...] = ()
    pause_reply: PauseReply | None = None
    order: JobOrder = PLAIN
    people: tuple[str, ...] = ()
    repeated_person: str = ""
    person_name: str = ""
    strategy: str = ""
    persona: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True)
class Fork:
    """A later stage at which the processing of a message starts, with its role and the attributes
    that earlier stages wrote.
    """

    flow: str
    stage: str
    role: str
    payload: Mapping[str, JsonValue]


class Desk:
    """Submits messages for one tenant and assistant, and waits for their outcomes.

    `keep_seconds` is how long replies and journals are stored; None selects the default. `flow` is
    the name and version of the flow with which messages start, and `ways` contains the flows of
    other ways of answering, by name. If `names_people` is true, the journal contains the names of
    people instead of only their digests.
    """

    def __init__(
        self,
        producer: Producer,
        replies: ReplyReader,
        *,
        tenant: str,
        assistant: str,
        channel: str,
        deadline_seconds: float,
        words: Words,
        result_list: str = "",
        grace_seconds: float = GRACE_SECONDS,
        keep_seconds: float | None = None,
        flow: str = Envelope.flow,
        ways: Mapping[str, str] | None = None,
        names_people: bool = False,
    ) -> None:
        self._producer = producer
        self._replies = replies
        self._tenant = tenant
        self._assistant = assistant
        self._channel = channel
        self._deadline_seconds = deadline_seconds
        self._words = words
        self._names_people = names_people
        self._outage = Outage()
        self._result_list = result_list
        self._keep_seconds = keep_seconds
        self._grace_seconds = grace_seconds
        self.ways = {} if ways is None else ways
        # The common values of all envelopes of this desk are validated once.
        self._blank = Envelope(
            tenant=tenant,
            assistant=assistant,
            channel=channel,
            flow=flow,
            conversation_id="-",
            message_id="-",
            create_ts=0.0,
            update_ts=0.0,
            deadline_ts=0.0,
            target_role=Role.MANAGER.value,
            result_list=result_list,
        )

    def question(self, message: Message) -> Question:
        """Return the question that identifies a message of this desk."""
        return self.name_question(message.conversation_id, message.message_id)

    def name_question(self, conversation_id: str, message_id: str) -> Question:
        """Return the question that identifies a message; raises `MessageError` for an invalid id.

        The channel is part of the conversation ID, so that other channels cannot access the
        conversation.
        """
        return name_question(
            self._tenant, self._assistant, self._channel, conversation_id, message_id
        )

    def filling(self, message: Message) -> tuple[str, int]:
        """Return the two quotas that a message counts against: tenant and shard."""
        conversation = self.question(message).conversation
        return self._tenant, shard_of(conversation, self._producer.shards)

    async def knows(self, message: Message) -> bool:
        """Return whether a message was accepted before."""
        return bool(await self._replies.read_journal(self.question(message)))

    async def submit(self, message: Message, *, fork: Fork | None = None) -> Accepted | Duplicate:
        """Submit a message for any channel; raises `MessageError` or `BusyError`."""
        question = self.question(message)
        payload = _payload(message)
        order = message.order
        envelope = self._envelope(question, payload, order).with_groups(message.groups)
        role = Role.MANAGER.value
        if fork is not None:
            role = fork.role
            begun = {**fork.payload, **payload, "stage": fork.stage}
            envelope = envelope.replace(flow=fork.flow, payload=begun, target_role=role)
        result = await self._producer.submit(
            Submission(
                question=question,
                frame=envelope.encode(),
                role=role,
                deadline_seconds=self._choose_deadline(order.deadline_seconds),
                last_resort=self.last_resort(question, message.language),
                result_list=self._result_list,
                not_before_seconds=message.not_before_seconds,
                accepted=self._make_accepted_fields(message, payload, envelope.flow),
                keep_seconds=self._keep_seconds,
                decoded=envelope,
                dead_letter_changes=make_dead_letter_changes(self._words, message.language),
            )
        )
        if isinstance(result, Busy):
            raise BusyError(
                f"the desk is busy ({result.reason}): "
                f"try again in {math.ceil(result.retry_after_seconds)} seconds",
                result.retry_after_seconds,
                result.reason,
            )
        return result

    async def cancel(self, question: Question, *, reason: str | None = None) -> bool:
        """Mark a message as superseded; return False if it already has an outcome.

        `reason` becomes the reply's `termination_reason`.
        """
        adds = await list_cancelled(self._replies, question)
        return await self._producer.cancel(question, reason=reason, adds=adds)

    async def follow(self, question: Question, *, after: str = "0") -> AsyncIterator[JournalEntry]:
        """Yield the events of a question up to and including its last event, `finished`."""
        async for entries in self.watch(question, after=after):
            for entry in entries:
                yield entry

    async def watch(
        self, question: Question, *, after: str = "0", deadline_seconds: float | None = None
    ) -> AsyncIterator[Sequence[JournalEntry]]:
        """Yield the events since the last check, at least once a second, even if there are none.

        Ends with the event `finished`, or without it after the deadline and its grace period.
        """
        last = after
        waited_until = self._find_end(deadline_seconds)
        while time.monotonic() < waited_until:
            try:
                entries = await self._replies.read_journal(
                    question, after=last, block_seconds=BLOCK_SECONDS
                )
            except BrokerUnavailableError as error:
                await self._wait_for_redis(error, waited_until)
                entries = ()
            if not entries:
                entries = await self._end_of_lost(question)
            yield entries
            if entries:
                last = entries[-1].id
                if entries[-1].kind == "finished":
                    return

    async def ask(self, message: Message) -> Fields:
        """Submit a message and return its reply."""
        async with self.submitting(message) as submitted:
            return await self.await_reply(submitted)

    @asynccontextmanager
    async def submitting(
        self, message: Message, submit: Submit | None = None
    ) -> AsyncIterator[SubmittedQuestion]:
        """Submit a message, after subscribing to its reply, so that the reply does not have to be
        read.

        `submit` replaces the `submit` method of this desk for a channel with a queue, which calls
        the method itself.
        """
        question = self.question(message)
        async with self._replies.subscribe(question) as subscription:
            result = await (self.submit(message) if submit is None else submit())
            deadline = message.order.deadline_seconds
            yield SubmittedQuestion(question, message.language, result, subscription, deadline)

    async def await_reply(
        self, submitted: SubmittedQuestion, *, stopping: asyncio.Event | None = None
    ) -> Fields:
        """Return the reply to a question that was just submitted; raises the same errors as
        `outcome`.
        """
        result = submitted.result
        if isinstance(result, Duplicate) and result.reply is not None:
            return result.reply
        # A repeated message may have ended before this subscription began.
        if isinstance(result, Accepted):
            reply = await self._await_first(submitted.subscription)
            if reply is not None and not _is_lost(reply):
                return reply
        return await self.outcome(
            submitted.question,
            language=submitted.language,
            stopping=stopping,
            deadline_seconds=submitted.deadline_seconds,
        )

    async def outcome(
        self,
        question: Question,
        *,
        language: str = "en",
        stopping: asyncio.Event | None = None,
        deadline_seconds: float | None = None,
    ) -> Fields:
        """Return the reply to a submitted message, from this or another process.

        Waits while Redis does not respond. Raises `BrokerUnavailableError` if that lasts beyond the
        deadline, and `StoppingError` if this process stops in the meantime.
        """
        until = self._find_end(deadline_seconds)
        while (seconds := until - time.monotonic()) > 0:
            if stopping is not None and stopping.is_set():
                raise StoppingError(
                    "this process is stopping: send the message again with the same id"
                )
            try:
                reply = await self._replies.await_reply(
                    question, block_seconds=min(seconds, LOOK_SECONDS)
                )
            except BrokerUnavailableError as error:
                await self._wait_for_redis(error, until)
                continue
            self._outage.record_success()
            if reply is not None:
                return reply if not _is_lost(reply) else self.make_lost_reply(question, language)
        return self.last_resort(question, language)

    async def _await_first(self, subscription: ReplySubscription) -> Fields | None:
        try:
            return await subscription.await_reply(block_seconds=LOOK_SECONDS)
        except BrokerUnavailableError as error:
            # It was accepted: the next look finds its reply once Redis answers again.
            self._outage.record_failure("read_outcome", error)
            return None

    async def _wait_for_redis(self, error: BrokerUnavailableError, until: float) -> None:
        """Wait before the next attempt; raise `error` after `until` (monotonic seconds)."""
        if time.monotonic() >= until:
            raise error
        self._outage.record_failure("read_outcome", error)
        await asyncio.sleep(AWAY_SECONDS)

    async def _end_of_lost(self, question: Question) -> Sequence[JournalEntry]:
        """Return the final event of a question that Redis lost together with its journal."""
        try:
            reply = await self._replies.await_reply(question, block_seconds=0)
        except BrokerUnavailableError:
            return ()
        if reply is None or not _is_lost(reply):
            return ()
        return (JournalEntry("finished", self.make_lost_reply(question, "en")),)

    def _choose_deadline(self, seconds: float | None) -> float:
        return self._deadline_seconds if seconds is None else seconds

    def _find_end(self, deadline_seconds: float | None) -> float:
        """Return the time (monotonic seconds) until which a channel waits for an outcome."""
        return time.monotonic() + self._choose_deadline(deadline_seconds) + self._grace_seconds

    def _envelope(
        self, question: Question, payload: dict[str, JsonValue], order: JobOrder
    ) -> Envelope:
        now, own = time.time(), self._blank
        if order.way is not None:
            own = own.replace(flow=self.ways[order.way])
        return own.replace(
            conversation_id=question.conversation_id,
            message_id=question.message_id,
            create_ts=now,
            update_ts=now,
            deadline_ts=now + self._choose_deadline(order.deadline_seconds),
            trace_parent=make_trace_parent(),
            payload=payload,
        )

    def _make_accepted_fields(
        self, message: Message, payload: dict[str, JsonValue], flow: str
    ) -> Fields:
        channel = message.client or self._channel
        noted: Fields = {"text": payload["text"], "channel": channel, "flow": flow}
        if message.people:
            noted["person"] = message.people[0]
            if self._names_people and message.person_name:
                noted["person_name"] = message.person_name
        elif message.repeated_person:
            noted["person"] = message.repeated_person
        if message.request_id:
            noted["request_id"] = message.request_id
        if message.key_id is not None:
            noted["key"] = message.key_id
        if message.groups:
            noted["groups"] = list(message.groups)
        return {**noted, **message.order.accepted_fields}

    async def forgotten(self, question: Question) -> bool:
        """Return whether an accepted message was forgotten."""
        reply = await self._replies.await_reply(question, block_seconds=0)
        return reply is not None and reply.get("termination_reason") == FORGOTTEN

    def make_lost_reply(self, question: Question, language: str) -> Fields:
        """Return the reply to an accepted question that Redis no longer knows, and log the loss."""
        log.error(
            "question_lost",
            conversation_id=question.conversation_id,
            message_id=question.message_id,
        )
        changes = {
            **make_dead_letter_changes(self._words, language),
            "termination_reason": LOST,
        }
        return {**self.last_resort(question, language), **changes}

    def last_resort(self, question: Question, language: str) -> Fields:
        """Return the reply to a question that has no other result at its deadline."""
        return make_last_resort(question, self._words, language)


def read_deadline(accepted: JournalEntry) -> float | None:
    """Return the time limit of an accepted message, or None for the desk's default."""
    deadline = accepted.fields.get(DEADLINE_FIELD)
    return float(deadline) if isinstance(deadline, int | float) else None


async def erase(eraser: Eraser, conversations: Conversations, question: Question) -> Erased:
    """Erase the question's conversation; return the counts of the erased data.

    No worker has to be running. Afterwards, neither Redis nor the records database contains text
    from the conversation. If it fails or is interrupted, it can safely be repeated.
    """
    # First the data that only the conversation's keys lead to, because these are deleted next.
    await conversations.forget_threads(question)
    await conversations.forget_posts(question)
    erased = await eraser.forget(question, conversations.memory_keys(question))
    # Its questions that the owner asked again or replayed, in separate conversations.
    for copied in list_copies(question):
        erased += await eraser.forget(copied, conversations.memory_keys(copied))
    # After the journals, which a recorder may be reading now; it looks again once it has written.
    erased += Erased(records=await conversations.forget_records(question))
    # Once more: a chat platform may have delivered a message in the meantime.
    await conversations.forget_posts(question)
    return erased


@lru_cache(NAMES)
def name_question(
    tenant: str, assistant: str, channel: str, conversation_id: str, message_id: str
) -> Question:
    """Return the question that identifies a message; raises `MessageError` for an invalid id."""
    what = "conversation id"
    try:
        qualified = qualify_conversation(channel, check_name(conversation_id, what))
    except ValueError as error:
        raise MessageError(str(error)) from error
    return Question(
        tenant=tenant,
        assistant=assistant,
        conversation_id=check_name(qualified, what),
        message_id=check_name(message_id, "message id"),
    )


def make_trace_parent() -> str:
    """Return a new trace and span in the format of W3C Trace Context."""
    drawn = os.urandom(24).hex()
    return f"00-{drawn[:32]}-{drawn[32:]}-01"


def make_last_resort(question: Question, words: Words, language: str) -> Fields:
    """Return the reply that is sent at the deadline if no worker has started the question."""
    return {
        "outcome": Outcome.FAILED.value,
        "text": words("deadline", language),
        "language": language,
        "sources": [],
        "suggested_actions": [],
        "termination_reason": DEADLINE,
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }


def make_dead_letter_changes(words: Words, language: str) -> Fields:
    """Return the fields in which the reply for a dead letter differs from the reply at the
    deadline.
    """
    return {"text": words("apology", language), "termination_reason": DEAD_LETTER}


async def list_cancelled(replies: ReplyReader, question: Question) -> Fields:
    """Return the additional fields of a cancelled question's reply: its tasks, with open tasks
    marked as cancelled.
    """
    entries = await replies.read_journal(question)
    tasks = read_cancelled(entry.fields for entry in entries if entry.kind == "agent_run")
    return {"tasks": [*tasks]} if tasks else {}


def _is_lost(reply: Fields) -> bool:
    return reply.get("termination_reason") == LOST


def _payload(message: Message) -> dict[str, JsonValue]:
    payload: dict[str, JsonValue] = {"text": clean_text(message.text), **message.order.payload}
    if message.command is not None:
        payload["command"] = message.command
        payload["arguments"] = [escape_surrogates(argument) for argument in message.arguments]
    if message.people:
        payload["people"] = [*sorted(set(message.people))]
    if message.shows_drafts:
        payload["shows_drafts"] = True
    if message.strategy:
        payload["chosen_strategy"] = message.strategy
    if message.persona:
        payload["persona"] = clean_text(message.persona)
    if message.pause_reply is not None:
        payload["pause_reply"] = message.pause_reply.model_dump(mode="json", exclude_none=True)
    if message.history is not None:
        payload["client_keeps_history"] = True
        payload["history"] = [
            turn.model_dump(mode="json", exclude_none=True) for turn in message.history
        ]
        asked = message.pause
        payload["open_pause"] = asked.model_dump(mode="json", exclude_none=True) if asked else None
    return payload
