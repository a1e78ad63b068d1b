"""Stores conversations in Redis: history, preferences, the open pause, statistics."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from redis.exceptions import RedisError

from envelope.conversation import Pause, Preferences, Turn
from envelope.memory_read import MemoryFound, MemoryRead
from envelope.memory_write import Append, Delete, Increment, MemoryWrite, SetFields
from envelope.question import Question
from memory.errors import MemoryUnavailableError
from memory.key_names import ConversationKeys, conversation_keys
from memory.port import Ended, Remembered
from memory.snapshot import name_found, read, reading

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.client import Pipeline

DAY_SECONDS = 86_400
THREAD_SECONDS = DAY_SECONDS
"""How long a clarification is stored if the client stores the rest of the conversation."""
SUMMARY_CHARACTERS = 2_000
QUESTION_CHARACTERS = 160


class RedisMemory:
    """The memory of conversations; a read takes one round trip, a write none.

    The agents receive `window` turns. `keep` turns are stored; older user turns are shortened into
    the summary. All data expires `ttl_seconds` after the end of the last message, or after the time
    that `ttl_of` returns for a message.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        shards: int,
        window: int = 6,
        keep: int = 50,
        ttl_seconds: int = 30 * DAY_SECONDS,
        ttl_of: Callable[[Question], int] | None = None,
    ) -> None:
        self._client = client
        self._shards = shards
        self._window = window
        self._keep = keep
        self._ttl_of = ttl_of if ttl_of is not None else lambda _question: ttl_seconds

    async def recall(self, question: Question) -> Remembered:
        return self.parse_recall(await read(self._client, self.reads(question)))

    def reads(self, question: Question) -> MemoryRead:
        return reading(conversation_keys(question, self._shards), window=self._window)

    def parse_recall(self, found: MemoryFound) -> Remembered:
        known = name_found(found)
        return Remembered(
            history=tuple(Turn.model_validate_json(turn) for turn in known.turns),
            summary=known.summary.get("text", ""),
            kept=known.kept,
            preferences=Preferences(
                language=known.preferences.get("language") or None,
                explicit=known.preferences.get("explicit") == "1",
            ),
            pause=Pause.model_validate_json(known.pause["pause"]) if known.pause else None,
            statistics={name: float(value) for name, value in known.statistics.items()},
        )

    async def overflowing(self, question: Question, *, kept: int, added: int) -> tuple[Turn, ...]:
        surplus = kept + added - self._keep
        if surplus <= 0:
            return ()
        keys = conversation_keys(question, self._shards)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.lrange(keys.history, 0, surplus - 1)
        [turns] = await self._execute(pipeline)
        return tuple(Turn.model_validate_json(turn) for turn in turns)

    def writes(self, question: Question, ended: Ended) -> tuple[MemoryWrite, ...]:
        keys = conversation_keys(question, self._shards)
        if ended.forget == "all":
            return tuple(Delete(key=key) for key in keys.all)
        ttl_seconds = self._ttl_of(question)
        if ended.brief:
            ttl_seconds = min(ttl_seconds, THREAD_SECONDS)
        forgotten = _forget_history(keys) if ended.forget == "history" else ()
        return (
            *forgotten,
            *(_history(keys, ended, self._keep, ttl_seconds) if not ended.forget else ()),
            *_fields(keys, ended, ttl_seconds),
            Delete(key=keys.calls),
        )

    async def _execute(self, pipeline: "Pipeline") -> list[Any]:
        try:
            found: list[Any] = await pipeline.execute()
        except (RedisError, OSError) as error:
            raise MemoryUnavailableError(f"Redis does not answer: {error}") from error
        return found


def _history(
    keys: ConversationKeys, ended: Ended, keep: int, ttl_seconds: int
) -> tuple[MemoryWrite, ...]:
    if not ended.turns:
        return ()
    append = Append(
        key=keys.history,
        values=tuple(turn.model_dump_json(exclude_none=True) for turn in ended.turns),
        keep=keep,
        ttl_seconds=ttl_seconds,
    )
    if not ended.dropped:
        return (append,)
    fields = {"text": _summary(ended.summary, ended.dropped)}
    return (append, SetFields(key=keys.summary, fields=fields, ttl_seconds=ttl_seconds))


def _fields(keys: ConversationKeys, ended: Ended, ttl_seconds: int) -> tuple[MemoryWrite, ...]:
    writes: list[MemoryWrite] = []
    if ended.preferences is not None:
        fields = {
            "language": ended.preferences.language or "",
            "explicit": "1" if ended.preferences.explicit else "0",
        }
        writes.append(SetFields(key=keys.preferences, fields=fields, ttl_seconds=ttl_seconds))
    if ended.pause is not None:
        # Without defaults, so that a process of an earlier version reads it during an upgrade.
        fields = {"pause": ended.pause.model_dump_json(exclude_defaults=True)}
        writes.append(SetFields(key=keys.pause, fields=fields, ttl_seconds=ttl_seconds))
    elif ended.close_pause:
        writes.append(Delete(key=keys.pause))
    if ended.statistics:
        writes.append(
            Increment(key=keys.statistics, fields=ended.statistics, ttl_seconds=ttl_seconds)
        )
    return tuple(writes)


def _forget_history(keys: ConversationKeys) -> tuple[MemoryWrite, ...]:
    words = (keys.history, keys.summary, keys.pause, keys.feedback, keys.threads, keys.shared)
    return tuple(Delete(key=key) for key in words)


def _summary(before: str, dropped: tuple[Turn, ...]) -> str:
    """Return the summary with the beginning of each dropped user turn, newest last."""
    heads = [turn.text[:QUESTION_CHARACTERS] for turn in dropped if turn.speaker == "user"]
    lines = [*before.splitlines(), *(json.dumps(head, ensure_ascii=False) for head in heads)]
    return "\n".join(lines)[-SUMMARY_CHARACTERS:]
