"""The desk's data about a person: preferences, the outcomes of their questions, and erasure."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.concurrency import run_in_threadpool

from broker.values import Erased
from envelope.conversation import Preferences
from envelope.question import Question
from records.store import PersonFigures, RecordStore, Selection

AT_ONCE = 100
"""The number of conversations that one request erases; larger erasures take several requests."""

Assistants = Sequence[tuple[str, str]]
"""Pairs of tenant and assistant."""
Forget = Callable[[Question], Awaitable[Erased]]
"""Erases the conversation of a question from every store."""


class Choices(Protocol):
    """Stores the preferences of people. Only the tenant and assistant of a question are used."""

    async def read(self, question: Question, person: str) -> Preferences:
        """Return the preferences of a person for all of their conversations."""
        ...

    async def forget(self, question: Question, person: str) -> bool:
        """Delete the preferences of a person, and return whether there were any."""
        ...


@dataclass(frozen=True, slots=True)
class ForgottenPerson:
    """The data deleted by an erasure; `has_more` is true if the person has further
    conversations.
    """

    conversations: int
    had_choice: bool
    has_more: bool


@dataclass(frozen=True, slots=True)
class PersonalData:
    """Reads and erases the data of people, who are identified by their pseudonyms in the records.

    `store` is None if no records are stored, in which case conversations are unknown.
    """

    store: RecordStore | None
    choices: Choices
    forget_conversation: Forget

    async def read_choice(self, assistant: tuple[str, str], person: str) -> Preferences:
        """Return a person's preferences for an assistant."""
        return await self.choices.read(_name(assistant), person)

    async def list_figures(
        self, assistants: Assistants, *, person: str = "", offset: int = 0, limit: int
    ) -> Sequence[PersonFigures]:
        """Return the statistics of people, most recent first, or of only one `person`."""
        if self.store is None:
            return ()
        selection = Selection(assistants=tuple(assistants))
        return await run_in_threadpool(
            self.store.list_people, selection, person=person, offset=offset, limit=limit
        )

    async def forget(self, assistants: Assistants, person: str) -> ForgottenPerson:
        """Erase the preferences of a person, and at most `AT_ONCE` of their conversations."""
        chosen = [await self.choices.forget(_name(assistant), person) for assistant in assistants]
        questions: Sequence[Question] = ()
        if self.store is not None:
            find = self.store.find_conversations_of
            selection = Selection(tuple(assistants), includes_copies=True)
            questions = await run_in_threadpool(find, person, selection, limit=AT_ONCE + 1)
        for question in questions[:AT_ONCE]:
            await self.forget_conversation(question)
        return ForgottenPerson(min(len(questions), AT_ONCE), any(chosen), len(questions) > AT_ONCE)


def _name(assistant: tuple[str, str]) -> Question:
    tenant, name = assistant
    return Question(tenant=tenant, assistant=name, conversation_id="-", message_id="-")
