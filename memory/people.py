"""Stores what a person chose for all their conversations with an assistant.

A person's key is in no shard of a conversation: it is written beside the end of a message, with the
same value if that is repeated.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from envelope.conversation import Preferences
from envelope.question import Question
from memory.key_names import person_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis


class RedisPeople:
    """See `memory.port.People`; a choice expires `ttl_of` after its last use, as conversations."""

    def __init__(self, client: "Redis", ttl_of: Callable[[Question], int]) -> None:
        self._client = client
        self._ttl_of = ttl_of

    async def read(self, question: Question, person: str) -> Preferences | None:
        key = person_key(question.tenant, question.assistant, person)
        language = await await_answer(self._client.getex(key, ex=self._ttl_of(question)))
        return None if language is None else Preferences(language=language.decode(), explicit=True)

    async def keep(self, question: Question, person: str, preferences: Preferences) -> None:
        key = person_key(question.tenant, question.assistant, person)
        kept = preferences.language or ""
        await await_answer(self._client.set(key, kept, ex=self._ttl_of(question)))

    async def forget(self, question: Question, person: str) -> bool:
        key = person_key(question.tenant, question.assistant, person)
        return bool(await await_answer(self._client.delete(key)))
