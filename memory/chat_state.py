"""The state of chat channels: posts, open messages, and the actions of buttons."""

import hashlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from envelope.question import Question
from memory.key_names import push_conversation_key, push_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

POST = "post"
TOKEN = "token"  # noqa: S105 - a part of a key's name
DRAFT = "draft"
STOPPED = "drafts_stopped"
CLAIM_SECONDS = 86_400
"""Longer than the period in which a platform redelivers an event."""


class RedisPushMemory:
    """The state of one channel.

    Messages expire after `question_seconds`, conversations and buttons after
    `conversation_seconds`.
    """

    def __init__(
        self, client: "Redis", channel: str, *, question_seconds: int, conversation_seconds: int
    ) -> None:
        self._client = client
        self._channel = channel
        self._question_seconds = question_seconds
        self._conversation_seconds = conversation_seconds

    async def fields(self, question: Question) -> dict[str, str]:
        """Return the stored fields of a message."""
        return await self._all(self._posts(question))

    async def note(self, question: Question, **fields: str) -> None:
        """Store fields of a message."""
        await self._put(self._posts(question), fields, self._question_seconds)

    async def first(self, question: Question, name: str, value: str) -> str:
        """Store a field unless it already exists; return the stored value."""
        key = self._posts(question)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hsetnx(key, name, value)
        pipeline.expire(key, self._question_seconds)
        pipeline.hget(key, name)
        *_, stored = await await_answer(pipeline.execute())
        return value if stored is None else stored.decode()

    async def about(self, question: Question) -> dict[str, str]:
        """Return the stored fields of the message's conversation."""
        return await self._all(self._of(question, "about"))

    async def note_about(self, question: Question, **fields: str) -> None:
        """Store fields of the message's conversation."""
        await self._put(self._of(question, "about"), fields, self._conversation_seconds)

    async def has_conversation(self, question: Question) -> bool:
        """Return whether anything is stored for the conversation of the message."""
        keys = [self._of(question, part) for part in ("about", "open", "words")]
        return bool(await await_answer(self._client.exists(*keys)))

    async def open(self, question: Question, order: float) -> None:
        """Record that a message has no outcome yet."""
        key = self._of(question, "open")
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zadd(key, {question.message_id: order}, nx=True)
        pipeline.expire(key, self._question_seconds)
        await await_answer(pipeline.execute())

    async def close(self, question: Question) -> None:
        """Record that the outcome of a message was shown."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zrem(self._of(question, "open"), question.message_id)
        pipeline.hset(self._posts(question), "done", "1")
        pipeline.expire(self._posts(question), self._question_seconds)
        await await_answer(pipeline.execute())

    async def open_messages(self, question: Question) -> Mapping[str, float]:
        """Return the ids of the open messages of the conversation, with their order."""
        scored_ids = await await_answer(
            self._client.zrange(self._of(question, "open"), 0, -1, withscores=True)
        )
        return {name.decode(): float(order) for name, order in scored_ids}

    async def begin_draft(self, question: Question, *, seconds: float) -> bool:
        """Record that a draft is being shown, for at most `seconds`; False after `stop_drafts`.

        This method and `stop_drafts` both write before they read, so that each sees the other's
        write. Both keys are in one slot of a cluster, so that the order of the commands is
        preserved.
        """
        key = self._of(question, DRAFT, question.message_id)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.set(key, "1", px=int(seconds * 1000))
        pipeline.hexists(self._posts(question), STOPPED)
        *_, is_stopped = await await_answer(pipeline.execute())
        if is_stopped:
            await self.end_draft(question)
        return not is_stopped

    async def end_draft(self, question: Question) -> None:
        """Record that the draft was shown or rejected."""
        await await_answer(self._client.delete(self._of(question, DRAFT, question.message_id)))

    async def stop_drafts(self, question: Question) -> float:
        """Prevent further drafts; return the seconds after which the current one must have
        ended.
        """
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(self._posts(question), STOPPED, "1")
        pipeline.expire(self._posts(question), self._question_seconds)
        pipeline.pttl(self._of(question, DRAFT, question.message_id))
        *_, left = await await_answer(pipeline.execute())
        return max(0.0, int(left) / 1000)

    async def put_token(self, token: str, written: str, question: Question) -> None:
        """Store the action of a button below the answer to this message."""
        await self._holds(question, TOKEN, token)
        await await_answer(
            self._client.set(self._token(token), written, ex=self._conversation_seconds)
        )

    async def token(self, token: str) -> str | None:
        """Return the action of a button, or None if it has expired."""
        action = await await_answer(self._client.get(self._token(token)))
        return None if action is None else action.decode()

    async def claim(self, name: str, *, seconds: int = CLAIM_SECONDS) -> bool:
        """Claim a name for `seconds`; return False if it is already claimed."""
        digest = hashlib.sha256(name.encode()).hexdigest()
        key = push_key(self._channel, "claim", digest)
        return bool(await await_answer(self._client.set(key, "1", nx=True, ex=seconds)))

    async def holds_words(self, question: Question) -> None:
        """Record that the fields of a message contain user text."""
        await self._holds(question, POST, question.message_id)

    async def forget_words(self, question: Question, *, but: Collection[str] = ()) -> None:
        """Delete the text and buttons of a conversation, except those of the messages in `but`."""
        words = self._of(question, "words")
        for name in await await_answer(self._client.smembers(words)):
            kind, _, rest = name.decode().partition(":")
            if kind == POST and rest in but:
                continue
            key = self._token(rest) if kind == TOKEN else self._of(question, POST, rest)
            # One command per key, because the keys are in different slots of a cluster.
            await await_answer(self._client.delete(key))
            await await_answer(self._client.srem(words, name))

    async def _holds(self, question: Question, kind: str, rest: str) -> None:
        key = self._of(question, "words")
        pipeline = self._client.pipeline(transaction=False)
        pipeline.sadd(key, f"{kind}:{rest}")
        pipeline.expire(key, max(self._question_seconds, self._conversation_seconds))
        await await_answer(pipeline.execute())

    def _token(self, token: str) -> str:
        return push_key(self._channel, TOKEN, token)

    async def _all(self, key: str) -> dict[str, str]:
        stored: dict[bytes, bytes] = await await_answer(self._client.hgetall(key))
        return {name.decode(): value.decode() for name, value in stored.items()}

    async def _put(self, key: str, fields: Mapping[str, str], ttl_seconds: int) -> None:
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(key, items=[part for field in fields.items() for part in field])
        pipeline.expire(key, ttl_seconds)
        await await_answer(pipeline.execute())

    def _posts(self, question: Question) -> str:
        return self._of(question, POST, question.message_id)

    def _of(self, question: Question, *parts: str) -> str:
        return push_conversation_key(self._channel, question, *parts)
