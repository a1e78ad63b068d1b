"""Keeps which messages are one question, so that each can still be changed or taken back.

A *burst* is named by its first message, and may have no other. Its record holds the words of every
message in it, and which question *asks* them now. Two processes may change a burst at once: each
writes its words first, then that it asks, then reads all words and asks; who finds that another
asks now takes its own question back. So the last one asks everything.
"""

import hashlib
from collections.abc import Mapping

from pydantic import BaseModel

from envelope.question import Question
from gateway.chat.ports import Incoming, PushMemory

VERSION = ":"
"""Between a message's id and what tells its edits apart."""
ASKS = "asks"
BURST = "burst"
NEVER_AGAIN = "inf"
"""The revision of a message that was taken back."""


class BurstMessage(BaseModel, frozen=True, extra="forbid"):
    """The words of one message of a burst, and its place in it; no words: it was taken back."""

    order: float
    text: str


class Bursts:
    """The bursts of a channel."""

    def __init__(self, memory: PushMemory) -> None:
        self._memory = memory

    async def takes(self, incoming: Incoming, known: Mapping[str, str]) -> bool:
        """Whether a message says something new: platforms tell late, twice, and of previews too.

        `known` are the fields of its first version.
        """
        root = first_version(incoming)
        said = digest(incoming.text)
        if incoming.edits is None:
            # Words that were changed or taken back meanwhile are not asked any more.
            return "revision" not in known
        if incoming.order < float(known.get("revision", 0)):
            return False
        if known.get("latest") == said:
            # Unless this very edit was told before and not taken in.
            return bool(await self._memory.fields(incoming.question))
        await self._memory.note(incoming.question, edits=root.message_id)
        await self._memory.note(root, latest=said, revision=str(incoming.order))
        return True

    async def of(self, question: Question) -> str:
        """Return the burst of a message."""
        return (await self._memory.fields(question)).get(BURST, question.message_id)

    async def begin(self, incoming: Incoming, burst: str) -> None:
        """Keep the words of a message that was not told before."""
        question = incoming.question
        part = BurstMessage(order=incoming.order, text=incoming.text)
        record = _record(question, burst)
        # Named before it is written: what is forgotten must be known.
        await self._memory.holds_words(record)
        await self._memory.first(record, question.message_id, part.model_dump_json())

    async def change(self, incoming: Incoming, burst: str) -> None:
        """Keep the new words of a message."""
        root = first_version(incoming)
        before = (await self.parts(root, burst)).get(root.message_id)
        order = incoming.order if before is None else before.order
        part = BurstMessage(order=order, text=incoming.text)
        record = _record(root, burst)
        await self._memory.note(root, **{BURST: burst})
        await self._memory.holds_words(record)
        await self._memory.note(record, **{root.message_id: part.model_dump_json()})

    async def take_out(self, root: Question, burst: str) -> None:
        """Keep that a message is no part of its burst any more."""
        if root.message_id in await self.parts(root, burst):
            gone = BurstMessage(order=0, text="").model_dump_json()
            await self._memory.note(_record(root, burst), **{root.message_id: gone})

    async def take_back(self, root: Question) -> None:
        """Keep that a message was deleted: what is told of it late is not asked any more."""
        await self._memory.note(root, revision=NEVER_AGAIN)

    async def parts(self, question: Question, burst: str) -> Mapping[str, BurstMessage]:
        """Return the words of a burst by message id, in the order in which they were written."""
        kept = await self._memory.fields(_record(question, burst))
        found = {
            id_: BurstMessage.model_validate_json(text) for id_, text in kept.items() if id_ != ASKS
        }
        said = {id_: part for id_, part in found.items() if part.text}
        return dict(sorted(said.items(), key=lambda each: each[1].order))

    async def add(self, question: Question, burst: str, other: str) -> None:
        """Have the words of a burst be said in another one too."""
        await self._memory.holds_words(_record(question, other))
        for id_, part in (await self.parts(question, burst)).items():
            await self._memory.first(_record(question, other), id_, part.model_dump_json())

    async def move(self, question: Question, burst: str, other: str) -> None:
        """Have the messages of a burst belong to another one from now on."""
        for id_ in await self.parts(question, burst):
            root = question.model_copy(update={"message_id": id_})
            await self._memory.note(root, **{BURST: other})

    async def hand(self, question: Question, burst: str) -> None:
        """Have this question ask the burst."""
        await self._memory.note(_record(question, burst), **{ASKS: question.message_id})

    async def asks(self, question: Question, burst: str) -> bool:
        """Whether this question is the one that asks the burst; also when none was asked anew."""
        asking = (await self._memory.fields(_record(question, burst))).get(ASKS)
        return asking is None or asking == question.message_id


def first_version(incoming: Incoming) -> Question:
    """Return the message as it was first named."""
    if incoming.edits is None:
        return incoming.question
    return incoming.question.model_copy(update={"message_id": incoming.edits})


def _record(question: Question, burst: str) -> Question:
    """Return the name under which a burst is kept."""
    return question.model_copy(update={"message_id": record_name(burst)})


def record_name(burst: str) -> str:
    """Return the message id under which the words of a burst are kept; no message has it."""
    return f"{burst}{VERSION}{BURST}"


def digest(text: str) -> str:
    """Return what tells whether words were changed."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
