"""Records which messages form one question, so that each of them can be edited or deleted later.

A *burst* is identified by its first message, and may consist of that message only. Its record
contains the text of every message in it, and its *asking question*, which is the question that was
last submitted with these texts. Two processes may change a burst at the same time. Each of them
first stores its text, then makes its question the asking question, then reads all texts and submits
them. A process that finds a different asking question withdraws its own, so that the last question
contains all texts.
"""

import hashlib
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from broker.result_list import Result
from broker.values import Fields
from envelope.outcome import Outcome
from envelope.question import Question
from gateway.answer import FORGOTTEN
from gateway.chat.ports import Incoming
from gateway.desk import Desk
from memory.chat_state import RedisPushMemory

VERSION = ":"
"""Separates the id of a message from the suffix that distinguishes its edits."""
ASKS = "asks"
BURST = "burst"
NEVER_AGAIN = "inf"
"""The revision of a withdrawn message."""


class BurstMessage(BaseModel, frozen=True, extra="ignore"):
    """The text of one message in a burst, and its order; an empty text means that it was
    withdrawn.
    """

    order: float
    text: str


class Bursts:
    """The bursts of a channel."""

    def __init__(self, memory: RedisPushMemory) -> None:
        self._memory = memory

    async def takes(self, incoming: Incoming, known: Mapping[str, str]) -> bool:
        """Return whether a message is new; platforms send events late, repeatedly, and for link
        previews.

        `known` contains the fields of its first version.
        """
        root = first_version(incoming)
        text_digest = digest(incoming.text)
        if incoming.edits is None:
            # A text that was changed or withdrawn meanwhile is not asked.
            return "revision" not in known
        if incoming.order < float(known.get("revision", 0)):
            return False
        if known.get("latest") == text_digest:
            # Unless this edit was received before and not accepted.
            return bool(await self._memory.fields(incoming.question))
        await self._memory.note(incoming.question, edits=root.message_id)
        await self._memory.note(root, latest=text_digest, revision=str(incoming.order))
        return True

    async def of(self, question: Question) -> str:
        """Return the burst of a message."""
        return (await self._memory.fields(question)).get(BURST, question.message_id)

    async def begin(self, incoming: Incoming, burst: str) -> None:
        """Store the text of a new message."""
        question = incoming.question
        part = BurstMessage(order=incoming.order, text=incoming.text)
        record = _record(question, burst)
        # Registered before it is written, so that an erasure finds it.
        await self._memory.holds_words(record)
        await self._memory.first(record, question.message_id, part.model_dump_json())

    async def change(self, incoming: Incoming, burst: str) -> None:
        """Store the new text of a message."""
        root = first_version(incoming)
        before = (await self.parts(root, burst)).get(root.message_id)
        order = incoming.order if before is None else before.order
        part = BurstMessage(order=order, text=incoming.text)
        record = _record(root, burst)
        await self._memory.note(root, **{BURST: burst})
        await self._memory.holds_words(record)
        await self._memory.note(record, **{root.message_id: part.model_dump_json()})

    async def take_out(self, root: Question, burst: str) -> None:
        """Record that a message no longer belongs to its burst."""
        if root.message_id in await self.parts(root, burst):
            gone = BurstMessage(order=0, text="").model_dump_json()
            await self._memory.note(_record(root, burst), **{root.message_id: gone})

    async def take_back(self, root: Question) -> None:
        """Record that a message was deleted, so that late events about it are ignored."""
        await self._memory.note(root, revision=NEVER_AGAIN)

    async def parts(self, question: Question, burst: str) -> Mapping[str, BurstMessage]:
        """Return the texts of a burst by message id, in the order in which they were written."""
        kept = await self._memory.fields(_record(question, burst))
        messages = {
            id_: BurstMessage.model_validate_json(text) for id_, text in kept.items() if id_ != ASKS
        }
        written = {id_: part for id_, part in messages.items() if part.text}
        return dict(sorted(written.items(), key=lambda each: each[1].order))

    async def add(self, question: Question, burst: str, other: str) -> None:
        """Add the texts of a burst to another burst."""
        await self._memory.holds_words(_record(question, other))
        for id_, part in (await self.parts(question, burst)).items():
            await self._memory.first(_record(question, other), id_, part.model_dump_json())

    async def move(self, question: Question, burst: str, other: str) -> None:
        """Move the messages of a burst to another burst."""
        for id_ in await self.parts(question, burst):
            root = question.model_copy(update={"message_id": id_})
            await self._memory.note(root, **{BURST: other})

    async def assign(self, question: Question, burst: str) -> None:
        """Make this question the asking question of the burst."""
        await self._memory.note(_record(question, burst), **{ASKS: question.message_id})

    async def asks(self, question: Question, burst: str) -> bool:
        """Return whether the burst has no asking question other than this question."""
        asking = (await self._memory.fields(_record(question, burst))).get(ASKS)
        return asking is None or asking == question.message_id


class PostEraser:
    """Completes an erasure in the state of the chat channel."""

    def __init__(self, desk: Desk, memory: RedisPushMemory) -> None:
        self._desk = desk
        self._memory = memory
        self._bursts = Bursts(memory)

    async def find_undelivered(self, question: Question) -> Sequence[Result]:
        """Return the results of open questions whose replies were erased before they were shown.

        They had been taken from the result list by a process that died, so no other process
        receives them.
        """
        others = await self._others(question)
        return [forgotten(other) for other in others if await self._desk.forgotten(other)]

    async def forget(self, question: Question, how: str) -> None:
        """Delete the text of messages before `question`; if `how` is `all`, also the language."""
        others = await self._others(question)
        waiting = [record_name(await self._bursts.of(other)) for other in others]
        await self._memory.forget_words(question, but=waiting)
        if how == "all":
            await self._memory.note_about(question, language="")

    async def _others(self, question: Question) -> Sequence[Question]:
        opened = await self._memory.open_messages(question)
        ids = [id_ for id_ in opened if id_ != question.message_id]
        return [question.model_copy(update={"message_id": id_}) for id_ in ids]


def first_version(incoming: Incoming) -> Question:
    """Return the question of a message's first version."""
    if incoming.edits is None:
        return incoming.question
    return incoming.question.model_copy(update={"message_id": incoming.edits})


def record_name(burst: str) -> str:
    """Return the message id under which a burst is recorded; no message has this id."""
    return f"{burst}{VERSION}{BURST}"


def digest(text: str) -> str:
    """Return a digest that identifies a changed text."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def forgotten(question: Question) -> Result:
    """Return the result of a question of which only the outcome is stored."""
    reply: Fields = {
        "outcome": Outcome.SUPERSEDED.value,
        "termination_reason": FORGOTTEN,
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }
    return Result("0-0", 0, question, Outcome.SUPERSEDED.value, reply, 1)


def _record(question: Question, burst: str) -> Question:
    """Return the question under which a burst's record is stored."""
    return question.model_copy(update={"message_id": record_name(burst)})
