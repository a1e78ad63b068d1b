"""What the desk knows of one person: what they chose, how their questions ended, its erasure."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.concurrency import run_in_threadpool

from broker.values import Erased
from envelope.conversation import Preferences
from envelope.question import Question
from records.store import PersonFigures, RecordStore, Selection

AT_ONCE = 100
"""Conversations that one request erases; whoever has more is forgotten in several."""

Assistants = Sequence[tuple[str, str]]
"""Pairs of tenant and assistant."""
Forget = Callable[[Question], Awaitable[Erased]]
"""Erases the conversation of a question from every store."""


class Choices(Protocol):
    """Stores what people chose; of a question only tenant and assistant are read."""

    async def read(self, question: Question, person: str) -> Preferences:
        """Return what a person chose for all their conversations."""
        ...

    async def forget(self, question: Question, person: str) -> bool:
        """Delete what a person chose; return whether they had chosen anything."""
        ...


@dataclass(frozen=True, slots=True)
class ForgottenPerson:
    """What an erasure deleted; `has_more`: the person has further conversations."""

    conversations: int
    had_choice: bool
    has_more: bool


@dataclass(frozen=True, slots=True)
class PersonalData:
    """Reads and erases the data of people, who are named by their pseudonyms in the records.

    `store` is None where no records are kept; nothing is known of conversations then.
    """

    store: RecordStore | None
    choices: Choices
    forget_conversation: Forget

    async def read_choice(self, assistant: tuple[str, str], person: str) -> Preferences:
        """Return what a person chose for an assistant."""
        return await self.choices.read(_name(assistant), person)

    async def list_figures(
        self, assistants: Assistants, *, person: str = "", offset: int = 0, limit: int
    ) -> Sequence[PersonFigures]:
        """Return the figures of people, who asked last first; or those of one `person`."""
        if self.store is None:
            return ()
        selection = Selection(assistants=tuple(assistants))
        return await run_in_threadpool(
            self.store.list_people, selection, person=person, offset=offset, limit=limit
        )

    async def forget(self, assistants: Assistants, person: str) -> ForgottenPerson:
        """Erase what a person chose, and their conversations, `AT_ONCE` of them at most."""
        chosen = [await self.choices.forget(_name(assistant), person) for assistant in assistants]
        found: Sequence[Question] = ()
        if self.store is not None:
            find = self.store.find_conversations_of
            selection = Selection(tuple(assistants), includes_copies=True)
            found = await run_in_threadpool(find, person, selection, limit=AT_ONCE + 1)
        for question in found[:AT_ONCE]:
            await self.forget_conversation(question)
        return ForgottenPerson(min(len(found), AT_ONCE), any(chosen), len(found) > AT_ONCE)


def _name(assistant: tuple[str, str]) -> Question:
    tenant, name = assistant
    return Question(tenant=tenant, assistant=name, conversation_id="-", message_id="-")
