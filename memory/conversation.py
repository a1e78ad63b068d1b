"""Conversations in Redis: history, preferences, open pause, and statistics.

A person's preferences for all conversations, and the list of conversations with a question to that
person, are stored outside of the shards. They are written separately when a message is completed;
repeating the write has no further effect.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from redis.exceptions import NoScriptError, RedisError

from envelope.conversation import AnswerStyle, Pause, Preferences, Turn
from envelope.memory_access import (
    Append,
    Delete,
    Increment,
    MemoryFound,
    MemoryRead,
    MemoryWrite,
    SetFields,
)
from envelope.question import Question
from memory.errors import MemoryUnavailableError
from memory.key_names import (
    ConversationKeys,
    conversation_keys,
    person_key,
    person_pauses_key,
    person_style_key,
)
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from redis.asyncio.client import Pipeline

DAY_SECONDS = 86_400
THREAD_SECONDS = DAY_SECONDS
"""How long a clarification is stored if the client stores the rest of the conversation."""
SUMMARY_CHARACTERS = 2_000
QUESTION_CHARACTERS = 160
EARLIER_TOKENS = 1_000
"""Maximum number of prompt tokens for stored turns that precede the window."""
ANSWER_TOKENS = 60
_BYTES_PER_TOKEN = 4
"""An estimate: one token is about four English letters, or one and a third Chinese characters."""
_CUT = " [...]"

CLAIM_PAUSE = """
-- Claim the payload of a pause for one message. KEYS: kept; ARGV: pause, message.
local id, by, payload = unpack(redis.call('HMGET', KEYS[1], 'id', 'by', 'payload'))
if id ~= ARGV[1] or by ~= '' and by ~= ARGV[2] then
  return false
end
redis.call('HSET', KEYS[1], 'by', ARGV[2])
return payload
"""
_RECALL = """
-- KEYS: history, summary, preferences, pause, statistics. ARGV: first and last turn to return.
local found = { redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2]), redis.call('LLEN', KEYS[1]) }
for place = 2, #KEYS do
  found[place + 1] = redis.call('HGETALL', KEYS[place])
end
return found
"""
_DIGEST = hashlib.sha1(_RECALL.encode(), usedforsecurity=False).hexdigest()
MOST_PAUSES = 20
"""Maximum number of a person's conversations that are searched for an open pause."""


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """The beginning of an earlier user turn; only users in all of `groups` may read it."""

    text: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overflow:
    """The turns dropped from the history, and the current summary, oldest first."""

    turns: tuple[Turn, ...] = ()
    summary: tuple[SummaryLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """The memory of a conversation.

    `kept` is the number of stored turns. `earlier` are the stored turns before `history`; `summary`
    covers the turns before `earlier`.
    """

    history: tuple[Turn, ...] = ()
    earlier: tuple[Turn, ...] = ()
    summary: tuple[SummaryLine, ...] = ()
    kept: int = 0
    preferences: Preferences = field(default_factory=Preferences)
    pause: Pause | None = None
    statistics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptPayload:
    """The payload (JSON) used to continue after the reply to a pause; it is stored for
    `seconds`.
    """

    pause_id: str
    payload: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The changes when a message is completed; None leaves a value unchanged.

    `dropped` are the turns that are dropped from the history. `brief` is true if the client stores
    the conversation, so that the changes expire after a day.
    """

    turns: tuple[Turn, ...] = ()
    dropped: Overflow = Overflow()
    preferences: Preferences | None = None
    pause: Pause | None = None
    close_pause: bool = False
    statistics: dict[str, float] = field(default_factory=dict)
    forget: str = ""
    brief: bool = False
    kept: KeptPayload | None = None


class RedisMemory:
    """The memory of conversations. Reading takes one round trip; writing takes no extra round trip.

    The memory is read when a message starts, and written by the broker when the message ends.

    The agents receive the last `window` turns in full. `keep` turns are stored; `describe_earlier`
    shortens those before the window for prompts. Older user turns are shortened into the summary.
    If the window is 0, no turns are read. All data expires `ttl_seconds` after the end of the last
    message, or after the time that `ttl_of` returns for a message.
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
        """Return the memory of the message's conversation."""
        return self.parse_recall(await read(self._client, self.reads(question)))

    def reads(self, question: Question) -> MemoryRead:
        """Describe what `recall` reads, so that the broker can prefetch it."""
        turns = max(self._window, self._keep) if self._window else 0
        return reading(conversation_keys(question, self._shards), turns=turns)

    def parse_recall(self, values: MemoryFound) -> Remembered:
        """Return the result of `recall` from the values read for `reads`."""
        named = name_values(values)
        turns = tuple(Turn.model_validate_json(turn) for turn in named.turns)
        begin = max(0, len(turns) - self._window)
        return Remembered(
            history=turns[begin:],
            earlier=turns[:begin],
            summary=_decode_summary(named.summary.get("text", "")),
            kept=named.kept,
            preferences=Preferences(
                language=named.preferences.get("language") or None,
                explicit=named.preferences.get("explicit") == "1",
                style=_read_style(named.preferences.get("style")),
            ),
            pause=Pause.model_validate_json(named.pause["pause"]) if named.pause else None,
            statistics={name: float(value) for name, value in named.statistics.items()},
        )

    async def claim_pause(self, question: Question, pause_id: str) -> bytes | None:
        """Claim a pause for the first message that answers it, and return its payload.

        If that message is redelivered, it receives the payload again. Returns None if the pause has
        expired or another message has claimed it.
        """
        key = conversation_keys(question, self._shards).kept
        call = self._client.eval(CLAIM_PAUSE, 1, key, pause_id, question.message_id)
        payload: bytes | None = await await_answer(call)
        return payload

    async def overflowing(self, question: Question, *, kept: int, added: int) -> Overflow:
        """Return the stored turns to drop when `added` turns are added to the `kept` ones."""
        surplus = kept + added - self._keep
        if surplus <= 0:
            return Overflow()
        keys = conversation_keys(question, self._shards)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.lrange(keys.history, 0, surplus - 1)
        pipeline.hget(keys.summary, "text")
        turns, summary = await self._execute(pipeline)
        return Overflow(
            tuple(Turn.model_validate_json(turn) for turn in turns),
            _decode_summary(summary.decode() if summary else ""),
        )

    def writes(self, question: Question, ended: Ended) -> tuple[MemoryWrite, ...]:
        """Return the changes to store when this message is completed."""
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
            answers: list[Any] = await pipeline.execute()
        except (RedisError, OSError) as error:
            raise MemoryUnavailableError(f"Redis does not respond: {error}") from error
        return answers


@dataclass(frozen=True, slots=True)
class NamedValues:
    """The stored values of a conversation; turns are JSON."""

    turns: list[bytes]
    kept: int
    summary: dict[str, str]
    preferences: dict[str, str]
    pause: dict[str, str]
    statistics: dict[str, str]


class RedisPeople:
    """Preferences and open pauses of people, which expire after the time given by `ttl_of` since
    their last use.
    """

    def __init__(self, client: "Redis", ttl_of: Callable[[Question], int]) -> None:
        self._client = client
        self._ttl_of = ttl_of

    async def read(self, question: Question, person: str) -> Preferences:
        owner = (question.tenant, question.assistant, person)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.getex(person_key(*owner), ex=self._ttl_of(question))
        pipeline.getex(person_style_key(*owner), ex=self._ttl_of(question))
        language, style = await await_answer(pipeline.execute())
        return Preferences(
            language=language.decode() if language else None,
            explicit=bool(language),
            style=_read_style(style.decode() if style else None),
        )

    async def keep(self, question: Question, person: str, preferences: Preferences) -> None:
        owner = (question.tenant, question.assistant, person)
        pipeline = self._client.pipeline(transaction=False)
        if preferences.explicit and preferences.language:
            pipeline.set(person_key(*owner), preferences.language, ex=self._ttl_of(question))
        if preferences.style:
            pipeline.set(person_style_key(*owner), preferences.style, ex=self._ttl_of(question))
        await await_answer(pipeline.execute())

    async def note_pause(self, question: Question, person: str) -> None:
        key = person_pauses_key(question.tenant, question.assistant, person)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zadd(key, {question.conversation_id: time.time()})
        pipeline.zremrangebyrank(key, 0, -MOST_PAUSES - 1)
        pipeline.expire(key, self._ttl_of(question))
        await await_answer(pipeline.execute())

    async def list_paused(self, question: Question, person: str) -> Sequence[str]:
        """Return the conversations with a pause for this person, newest first.

        Some of these pauses may already be answered or expired.
        """
        key = person_pauses_key(question.tenant, question.assistant, person)
        names: list[bytes] = await await_answer(self._client.zrevrange(key, 0, -1))
        return [name.decode() for name in names]

    async def forget(self, question: Question, person: str) -> bool:
        owner = (question.tenant, question.assistant, person)
        pipeline = self._client.pipeline(transaction=False)
        for key in (person_pauses_key(*owner), person_key(*owner), person_style_key(*owner)):
            # One command per key, because the keys may be in different slots of a cluster.
            pipeline.delete(key)
        _, *chosen = await await_answer(pipeline.execute())
        return any(chosen)


def describe_earlier(summary: Sequence[SummaryLine], turns: Sequence[Turn]) -> str:
    """Return the summary and the turns after it as JSON, one line each, oldest first.

    The result contains every user turn, shortened, and as many of the newest answers as fit into
    `EARLIER_TOKENS`.
    """
    asked = sum(turn.speaker == "user" for turn in turns)
    room = EARLIER_TOKENS * _BYTES_PER_TOKEN
    longest = min(QUESTION_CHARACTERS, room // max(1, asked))
    lines = {
        at: json.dumps(_shorten(turn.meant or turn.text, longest), ensure_ascii=False)
        for at, turn in enumerate(turns)
        if turn.speaker == "user"
    }
    room -= sum(len(line.encode()) for line in lines.values())
    for at, turn in reversed([*enumerate(turns)]):
        if turn.speaker == "user":
            continue
        text = _shorten(turn.text, ANSWER_TOKENS * _BYTES_PER_TOKEN)
        answer = json.dumps({"answer": text}, ensure_ascii=False)
        room -= len(answer.encode())
        if room < 0:
            break
        lines[at] = answer
    before = [json.dumps(line.text, ensure_ascii=False) for line in summary]
    return "\n".join((*before, *(lines[at] for at in sorted(lines))))


def reading(keys: ConversationKeys, *, turns: int) -> MemoryRead:
    """Describe what to read of a conversation, with its last `turns` turns."""
    # The range from 1 to 0 is always empty.
    first, last = (-turns, -1) if turns else (1, 0)
    hashes = (keys.summary, keys.preferences, keys.pause, keys.statistics)
    return MemoryRead(keys.history, first, last, hashes)


async def read(client: "Redis", wanted: MemoryRead) -> MemoryFound:
    """Return the stored values; raises `MemoryUnavailableError`."""
    call = (1 + len(wanted.hashes), wanted.list, *wanted.hashes, wanted.first, wanted.last)
    script: Any = client
    try:
        try:
            values: MemoryFound = await script.evalsha(_DIGEST, *call)
        except NoScriptError:
            values = await script.eval(_RECALL, *call)
    except (RedisError, OSError) as error:
        raise MemoryUnavailableError(f"Redis does not respond: {error}") from error
    return values


def name_values(values: MemoryFound) -> NamedValues:
    """Return the values from a read as named fields."""
    turns, kept, *hashes = values
    return NamedValues(turns, kept, *(_decode_fields(raw) for raw in hashes))


def _shorten(text: str, longest: int) -> str:
    """Truncate a text to about `longest` bytes."""
    encoded = text.encode()
    if len(encoded) <= longest:
        return text
    return encoded[: max(0, longest - len(_CUT))].decode(errors="ignore") + _CUT


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
    if not ended.dropped.turns:
        return (append,)
    fields = {"text": _encode_summary(ended.dropped)}
    return (append, SetFields(key=keys.summary, fields=fields, ttl_seconds=ttl_seconds))


def _fields(keys: ConversationKeys, ended: Ended, ttl_seconds: int) -> tuple[MemoryWrite, ...]:
    writes: list[MemoryWrite] = []
    if ended.preferences is not None and ended.preferences != Preferences():
        # Only the fields chosen now are written.
        fields = {
            name: "1" if value is True else str(value)
            for name, value in ended.preferences.model_dump(exclude_defaults=True).items()
        }
        writes.append(SetFields(key=keys.preferences, fields=fields, ttl_seconds=ttl_seconds))
    if ended.pause is not None:
        # Without defaults, so that a process of an earlier version can read it during an upgrade.
        fields = {"pause": ended.pause.model_dump_json(exclude_defaults=True)}
        writes.append(SetFields(key=keys.pause, fields=fields, ttl_seconds=ttl_seconds))
    elif ended.close_pause:
        writes.append(Delete(key=keys.pause))
    if ended.kept is not None:
        kept = {"id": ended.kept.pause_id, "by": "", "payload": ended.kept.payload}
        writes.append(SetFields(key=keys.kept, fields=kept, ttl_seconds=ended.kept.seconds))
    elif ended.close_pause:
        writes.append(Delete(key=keys.kept))
    if ended.statistics:
        writes.append(
            Increment(key=keys.statistics, fields=ended.statistics, ttl_seconds=ttl_seconds)
        )
    return tuple(writes)


def _read_style(stored: str | None) -> AnswerStyle | None:
    """Return a stored answer style, or None if a later version stored it."""
    return next(
        (argument for argument in get_args(AnswerStyle) if argument and argument == stored), None
    )


def _forget_history(keys: ConversationKeys) -> tuple[MemoryWrite, ...]:
    words = (
        keys.history, keys.summary, keys.pause, keys.kept, keys.feedback, keys.threads, keys.shared,
    )  # fmt: skip
    return tuple(Delete(key=key) for key in words)


def _decode_summary(text: str) -> tuple[SummaryLine, ...]:
    """Parse a stored summary; skip the first line if an earlier version truncated it."""
    lines = (_decode_line(line) for line in text.split("\n") if line)
    return tuple(line for line in lines if line is not None)


def _decode_line(line: str) -> SummaryLine | None:
    try:
        stored = json.loads(line)
    except ValueError:
        return None
    if isinstance(stored, str):
        return SummaryLine(stored)
    return SummaryLine(str(stored["text"]), tuple(map(str, stored["groups"])))


def _encode_summary(dropped: Overflow) -> str:
    """Return the summary, extended with the beginning of each dropped user turn."""
    lines = [
        *dropped.summary,
        *(
            SummaryLine(turn.text[:QUESTION_CHARACTERS], turn.groups or ())
            for turn in dropped.turns
            if turn.speaker == "user"
        ),
    ]
    encoded: list[str] = []
    room = SUMMARY_CHARACTERS
    for line in reversed(lines):
        # A line without groups is stored in the format of earlier versions.
        stored = {"text": line.text, "groups": line.groups} if line.groups else line.text
        encoded.insert(0, json.dumps(stored, ensure_ascii=False))
        room -= len(encoded[0]) + 1
        if room < 0:
            return "\n".join(encoded[1:])
    return "\n".join(encoded)


def _decode_fields(raw: list[bytes]) -> dict[str, str]:
    texts = [value.decode() for value in raw]
    return dict(zip(texts[::2], texts[1::2], strict=True))
