"""Stores the preferences of a person for all conversations, and which conversations wait for a
reply.

A person's key is in no shard of a conversation: it is written beside the end of a message, with the
same value if that is repeated.
"""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from envelope.conversation import Preferences
from envelope.question import Question
from memory.key_names import person_key, person_pauses_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis


MOST_PAUSES = 20
"""The conversations of a person that are searched for an open pause."""


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

    async def note_pause(self, question: Question, person: str) -> None:
        key = person_pauses_key(question.tenant, question.assistant, person)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zadd(key, {question.conversation_id: time.time()})
        pipeline.zremrangebyrank(key, 0, -MOST_PAUSES - 1)
        pipeline.expire(key, self._ttl_of(question))
        await await_answer(pipeline.execute())

    async def list_paused(self, question: Question, person: str) -> Sequence[str]:
        """Return the conversations that asked a person something, newest first.

        Some of these pauses may have been answered since, or have expired.
        """
        key = person_pauses_key(question.tenant, question.assistant, person)
        found: list[bytes] = await await_answer(self._client.zrevrange(key, 0, -1))
        return [one.decode() for one in found]

    async def forget(self, question: Question, person: str) -> bool:
        whose = (question.tenant, question.assistant, person)
        # One command per key: each may be in another slot of the cluster.
        await await_answer(self._client.delete(person_pauses_key(*whose)))
        return bool(await await_answer(self._client.delete(person_key(*whose))))
