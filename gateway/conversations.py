"""The stored data of conversations that all channels need."""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from broker.journal_reader import RecentMessage, Transcripts
from envelope.conversation import Pause, Turn
from envelope.question import Question
from gateway.chat_channels import CHAT_CHANNELS
from memory.chat_state import RedisPushMemory
from memory.conversation import RedisMemory, RedisPeople
from memory.http_state import EMPTY_SECONDS, Feedback, RedisReplyAddresses, RedisSessionStore
from memory.key_names import conversation_keys

if TYPE_CHECKING:
    from memory.http_state import Redis

KEPT_TURNS = 50


class Conversations(RedisSessionStore):
    """The sessions, turns, pauses, ratings, and posts of conversations.

    A conversation is identified by any `Question` of it. `on_rated` receives ratings.
    `forget_recorded` deletes the records of a conversation and returns how many there were.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        shards: int,
        ttl_seconds: int,
        ttl_of: Callable[[Question], int] | None = None,
        empty_seconds: int = EMPTY_SECONDS,
        on_rated: Callable[[Question], Awaitable[None]] | None = None,
        forget_recorded: Callable[[Question], Awaitable[int]] | None = None,
    ) -> None:
        super().__init__(
            client,
            shards=shards,
            ttl_seconds=ttl_seconds,
            ttl_of=ttl_of,
            empty_seconds=empty_seconds,
        )
        self._on_rated = on_rated
        self._forget_recorded = forget_recorded
        self._people = RedisPeople(client, lambda _question: ttl_seconds)
        self._memory = RedisMemory(
            client, shards=shards, window=KEPT_TURNS, ttl_seconds=ttl_seconds
        )
        self._transcripts = Transcripts(client, shards=shards)
        self._addresses = RedisReplyAddresses(client)
        self._pushed = [
            RedisPushMemory(
                client, spec.name, question_seconds=ttl_seconds, conversation_seconds=ttl_seconds
            )
            for spec in CHAT_CHANNELS
        ]

    async def recent_messages(self, question: Question, *, limit: int) -> Sequence[RecentMessage]:
        """Return the last messages whose journals are still stored, oldest first."""
        return await self._transcripts.of(question, limit=limit)

    async def turns(self, question: Question) -> Sequence[Turn]:
        """Return the stored turns, oldest first."""
        return (await self._memory.recall(question)).history

    async def pause(self, question: Question) -> Pause | None:
        """Return the open pause of the conversation, or None."""
        return (await self._memory.recall(question)).pause

    async def list_paused(self, question: Question, person: str) -> Sequence[str]:
        """Return the conversations in which the assistant asked a person something, newest first;
        some of these pauses may no longer be open.
        """
        return await self._people.list_paused(question, person)

    def memory_keys(self, question: Question) -> Sequence[str]:
        """Return the keys of the conversation's memory, for its erasure."""
        return conversation_keys(question, self._shards).all

    async def forget_threads(self, question: Question) -> int:
        """Delete the digests of the conversation's histories, and its email reply address; return
        the number of digests.
        """
        await self._addresses.forget(question)
        return await super().forget_threads(question)

    async def forget_posts(self, question: Question) -> None:
        """Delete the text of the question's conversation that chat channels store."""
        for memory in self._pushed:
            await memory.forget_words(question)

    async def forget_records(self, question: Question) -> int:
        """Delete the records of the conversation, and return how many there were."""
        return 0 if self._forget_recorded is None else await self._forget_recorded(question)

    async def is_chat(self, question: Question) -> bool:
        """Return whether a chat channel stored the conversation under this id.

        Chat channels did this before conversation IDs started with the channel.
        """
        return any([await memory.has_conversation(question) for memory in self._pushed])

    async def give_feedback(self, question: Question, feedback: Feedback) -> None:
        """Store the feedback on this message, replacing earlier feedback."""
        await self.put_feedback(question, feedback.model_copy(update={"at": time.time()}))
        if self._on_rated is not None:
            await self._on_rated(question)
