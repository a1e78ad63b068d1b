"""Asks recorded questions again, with the current documents and model."""

from collections.abc import Mapping, Sequence
from uuid import uuid4

from broker.ports import ReplyReader
from broker.values import JournalEntry
from envelope.conversation import Turn
from envelope.question import CONSOLE, Question, copy_question
from envelope.texts import primary_of
from gateway.console.access import Assistant, ConsoleRefusedError
from gateway.desk import Desk, Message
from gateway.errors import BusyError, MessageError
from records.record import Record, make_record
from records.store import RecordStore

WAIT_SECONDS = 20.0
_MARK = "-again-"
_LONGEST_ID = 100
_MOST_TURNS = 6


class Again:
    """Repeats a question in a separate conversation, which the person does not see.

    The question is asked with the groups of the person, so that the search finds the same
    documents, and with the preceding turns. `desks` belong to the channel `console`.
    """

    def __init__(self, desks: Mapping[Assistant, Desk], replies: ReplyReader) -> None:
        self._desks = desks
        self._replies = replies

    async def ask(self, record: Record, conversation: Sequence[Record]) -> Question:
        """Submit the question of a record, and return the new one; raises `ConsoleRefusedError`."""
        desk = self._desks[record.tenant, record.assistant]
        message = Message(
            text=record.question,
            conversation_id=copy_question(record.id, CONSOLE).conversation_id,
            message_id=f"{record.message_id[:_LONGEST_ID]}{_MARK}{uuid4().hex[:8]}",
            language=record.language or "en",
            history=tuple(_list_turns(record, conversation)),
            groups=record.groups,
            repeated_person=record.person,
        )
        try:
            question = desk.question(message)
            await desk.submit(message)
        except BusyError as error:
            raise ConsoleRefusedError(503, "Too many questions are waiting", str(error)) from error
        except (MessageError, ValueError) as error:
            raise ConsoleRefusedError(
                400, "This question cannot be asked again", str(error)
            ) from error
        return question

    async def read(
        self, question: Question, *, wait_seconds: float = WAIT_SECONDS
    ) -> Record | None:
        """Return the result of a question; None while it is being answered."""
        desk = self._desks[question.tenant, question.assistant]
        entries: list[JournalEntry] = list(await self._replies.read_journal(question))
        if entries and entries[-1].kind != "finished":
            last = entries[-1].id
            async for more in desk.watch(question, after=last, deadline_seconds=wait_seconds):
                entries.extend(more)
        return make_record(question, entries)


def find_repeated(store: RecordStore, record: Record) -> Sequence[Record]:
    """Return the records of the times that a question was asked again, the newest first."""
    records = store.find_conversation(copy_question(record.id, CONSOLE), limit=200)
    return [candidate for candidate in reversed(records) if _is_asked_again(candidate, record)]


def _is_asked_again(record: Record, original: Record) -> bool:
    """Return whether a record of the console repeats the question of another record."""
    return record.message_id.startswith(f"{original.message_id[:_LONGEST_ID]}{_MARK}")


def _list_turns(record: Record, conversation: Sequence[Record]) -> list[Turn]:
    earlier = [turn for turn in conversation if turn.accepted_at < record.accepted_at]
    turns: list[Turn] = []
    for turn in earlier[-_MOST_TURNS // 2 :]:
        language = primary_of(turn.language) or None
        turns.append(Turn(speaker="user", text=turn.question, language=language))
        turns.append(
            Turn(
                speaker="assistant",
                text=turn.answer,
                language=language,
                outcome=turn.outcome or None,
                groups=turn.groups or None,
            )
        )
    return turns
