"""Submits the messages of HTTP routes, in the same way for completions and conversations."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from broker.errors import BrokerUnavailableError
from broker.values import Duplicate, Fields
from envelope.question import Question
from gateway.desk import Desk, Message
from gateway.errors import BusyError
from gateway.http.access import Principal
from gateway.http.admission_queue import AdmissionQueue, Party
from gateway.http.context import HttpChannel, may_follow, may_see
from gateway.http.errors import InvalidRequestError
from gateway.http.sse import Admission
from gateway.job_order import REQUEST_FIELD

STREAMS_WAIT_LONGER = 3.0
"""A reader who sees that the message waits is more patient than one without a sign of it."""


class QuestionSender:
    """Counts a message against its limits, submits it in turn, and returns its reply.

    When `stopping` is set, waiting requests end so that clients continue at another process.
    """

    def __init__(
        self, channel: HttpChannel, stopping: asyncio.Event, patience: AdmissionQueue
    ) -> None:
        self._channel = channel
        self._stopping = stopping
        self._patience = patience

    async def admit(self, caller: Principal, question: Question) -> None:
        """Count a question; a repetition under the same id is not counted again."""
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
        """Submit a message and return its reply; `on_accepted` runs before the wait."""
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
        """Submit a message for a stream; return its waiting submission if the desk is full."""
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
        """Reject another text under the id of an accepted message.

        A caller who may not follow that message is rejected in the same way, and so learns nothing
        of its text. A message without a recorded key was accepted before keys were recorded; it may
        be repeated.
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
    """Return the party as which a caller waits while the desk is full."""
    if caller.key is None:
        return Party()
    return Party(caller.key.id, caller.visitor.owner if caller.public else "")
