"""State of the HTTP channel: API keys, rate limits, sessions, feedback."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import AliasChoices, BaseModel, Field

from envelope.question import Question
from memory.errors import MemoryUnavailableError
from memory.key_names import (
    api_keys_key,
    conversation_keys,
    handed_over_key,
    handover_secret_key,
    key_uses_key,
    link_secret_key,
    rate_key,
    reply_address_key,
    thread_key,
)
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis as Redis  # named by the gateway too, which imports no redis

DAY_SECONDS = 86_400
THREAD_SECONDS = DAY_SECONDS
EMPTY_SECONDS = 900
"""The lifetime of a session in which no question was asked."""

ONCE_SECONDS = 600
"""How long a counted request is remembered, so that a retry is not counted again."""

_ADMIT = """
-- KEYS: the marker of this request, then the buckets of one owner, one per demand.
-- ARGV: time to live of the marker (s; 0: no marker), a day in seconds, then per demand the limits
-- per minute and per day (0: no limit). Counts all demands or none; returns the seconds to wait,
-- and the index and period of the exhausted limit. A bucket expires when it is full.
if tonumber(ARGV[1]) > 0 and redis.call('EXISTS', KEYS[1]) == 1 then
  return {'0'}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local day = tonumber(ARGV[2])
local wait, short, period, changes = 0, 0, '', {}
local function demand(at, field, holds, seconds)
  if holds <= 0 then
    return
  end
  local stored = redis.call('HMGET', KEYS[at], field, field .. ':at')
  local level = tonumber(stored[1] or holds)
  level = math.min(holds, level + (now - tonumber(stored[2] or now)) * holds / seconds)
  local needed = (1 - level) * seconds / holds
  if needed > wait then
    wait, short, period = needed, at - 1, field
  end
  local full = math.ceil((holds - level + 1) * seconds / holds)
  changes[#changes + 1] = { KEYS[at], field, string.format('%.6f', level - 1), full }
end
for at = 2, #KEYS do
  demand(at, 'minute', tonumber(ARGV[at * 2 - 1]), 60)
  demand(at, 'day', tonumber(ARGV[at * 2]), day)
end
if wait > 0 then
  return {string.format('%.6f', wait), tostring(short), period}
end
for _, change in ipairs(changes) do
  local key, field, level, full = change[1], change[2], change[3], change[4]
  redis.call('HSET', key, field, level, field .. ':at', string.format('%.6f', now))
  if redis.call('TTL', key) < full then
    redis.call('EXPIRE', key, full)
  end
end
if tonumber(ARGV[1]) > 0 then
  redis.call('SET', KEYS[1], '1', 'EX', ARGV[1])
end
return {'0'}
"""

CLAIM_SECONDS = 120
"""How long a process may take to send a conversation before another process may send it."""

_BEGIN_SENDING = """
-- KEYS[1] the sendings of a conversation. ARGV: the message, duration of the claim (s), time to
-- live of the sendings (s).
local found = redis.call('HGET', KEYS[1], ARGV[1])
local now = tonumber(redis.call('TIME')[1])
if found == 'sent' then
  return 'sent'
end
if found and tonumber(found) > now then
  return 'running'
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + tonumber(ARGV[2])))
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 'new'
"""

_END_SENDING = """
-- KEYS[1] the sendings of a conversation. ARGV: the message. A deleted key is not created again.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], ARGV[1], 'sent')
end
"""

_KEEP_ADDRESS = """
-- KEYS[1] what was sent of a conversation. ARGV: the message, the address of the visitor. A
-- conversation that was erased in the meantime has no such message.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
  redis.call('HSET', KEYS[1], 'address', ARGV[2])
end
"""

_CONFIRM_ADDRESS = """
-- KEYS[1] what was sent of a conversation. ARGV: the address that its visitor confirms. Another
-- address may have taken its place.
if redis.call('HGET', KEYS[1], 'address') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'confirmed', ARGV[1])
return 1
"""

_VISIT = """
-- KEYS[1] the digest of a conversation's token. ARGV: the prefix of an unused session, and the
-- time to live of a used one (s). Returns the digest.
local found = redis.call('GET', KEYS[1])
if found and string.sub(found, 1, #ARGV[1]) ~= ARGV[1] then
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
return found
"""
NEW = "new:"


class Feedback(BaseModel, frozen=True, extra="ignore"):
    """A user's rating of an answer; `at` in Unix seconds.

    Before version 0.2, the field `rating` was stored as `thumb`.
    """

    rating: str = Field(pattern="^(up|down)$", validation_alias=AliasChoices("rating", "thumb"))
    reason: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Demand:
    """One use of a resource whose limits are stored under `name`; None means no limit."""

    name: str
    per_minute: int | None = None
    per_day: int | None = None
    of: Literal["key", "visitor", "site", "person"] = "key"
    """The entity to which the limit applies."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """An exhausted limit, and the seconds until one more use is available."""

    demand: Demand
    period: Literal["minute", "day"]
    seconds: float


@dataclass(frozen=True, slots=True)
class VisitorSession:
    """The digest of a visitor's token, and whether the conversation is still empty."""

    digest: str
    is_empty: bool


@dataclass(frozen=True, slots=True)
class VisitorAddress:
    """The email address that a visitor entered. It is confirmed if they opened a link that was sent
    to it.
    """

    address: str
    is_confirmed: bool


class RedisApiKeys:
    """The HTTP API keys, by id. The gateway encodes and decodes them."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def get(self, key_id: str) -> bytes | None:
        """Return an encoded API key, or None."""
        key: bytes | None = await await_answer(self._client.hget(api_keys_key(), key_id))
        return key

    async def all(self) -> Sequence[bytes]:
        """Return all encoded API keys."""
        keys: list[bytes] = await await_answer(self._client.hvals(api_keys_key()))
        return keys

    async def put(self, key_id: str, written: str) -> None:
        """Store an encoded API key."""
        await await_answer(self._client.hset(api_keys_key(), key_id, written))

    async def note_use(self, key_id: str, at: float) -> None:
        """Store the time of the last use of a key (Unix seconds)."""
        await await_answer(self._client.hset(key_uses_key(), key_id, f"{at:.0f}"))

    async def uses(self) -> dict[str, float]:
        """Return the time of the last use of each key (Unix seconds), by id."""
        uses: dict[bytes, bytes] = await await_answer(self._client.hgetall(key_uses_key()))
        return {key_id.decode(): float(at) for key_id, at in uses.items()}

    async def any(self) -> bool:
        """Return whether any key exists."""
        return bool(await await_answer(self._client.exists(api_keys_key())))

    async def link_secret(self, new: bytes) -> bytes:
        """Return the secret that signs links in all processes; store `new` if none exists."""
        return await self._share(link_secret_key(), new)

    async def handover_secret(self, new: bytes) -> bytes:
        """Return the secret that signs reply addresses; store `new` if none exists."""
        return await self._share(handover_secret_key(), new)

    async def _share(self, key: str, new: bytes) -> bytes:
        await await_answer(self._client.set(key, new, nx=True))
        secret: bytes = await await_answer(self._client.get(key))
        return secret


class RedisReplyAddresses:
    """Reply addresses for email, one per conversation, with the ticket of its hand-over.

    The name of an address is derived from a secret, so that nobody can guess it.
    """

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def put(self, question: Question, ticket: str, seconds: int) -> str:
        """Store the ticket for the question's conversation, and return the name of its address."""
        name = await self._name(question)
        await await_answer(self._client.set(reply_address_key(name), ticket, ex=seconds))
        return name

    async def get(self, name: str) -> str | None:
        """Return the ticket of an address; None if it has expired or was erased."""
        ticket: bytes | None = await await_answer(self._client.get(reply_address_key(name)))
        return None if ticket is None else ticket.decode()

    async def begin_sending(
        self, question: Question, seconds: int
    ) -> Literal["new", "running", "sent"]:
        """Claim the sending of the conversation after this message, and return the previous state.

        A claim ends with `end_sending`, or after `CLAIM_SECONDS` if the process died. The state
        `sent` is stored for `seconds`.
        """
        key, field = handed_over_key(await self._name(question)), digest_of(question.message_id)
        state = await await_answer(
            self._client.eval(_BEGIN_SENDING, 1, key, field, CLAIM_SECONDS, seconds)
        )
        states: dict[bytes, Literal["new", "running", "sent"]]
        states = {b"new": "new", b"running": "running", b"sent": "sent"}
        return states[state]

    async def end_sending(self, question: Question, *, is_sent: bool) -> None:
        """Release the claim. A conversation that was not sent can be claimed again.

        Stores nothing for a conversation that was erased in the meantime.
        """
        key, field = handed_over_key(await self._name(question)), digest_of(question.message_id)
        if is_sent:
            await await_answer(self._client.eval(_END_SENDING, 1, key, field))
        else:
            await await_answer(self._client.hdel(key, field))

    async def keep_address(self, question: Question, address: str) -> None:
        """Store the address of the visitor whose conversation is being sent after this message."""
        key, field = handed_over_key(await self._name(question)), digest_of(question.message_id)
        await await_answer(self._client.eval(_KEEP_ADDRESS, 1, key, field, address))

    async def confirm_address(self, question: Question, address: str) -> bool:
        """Record that the visitor has confirmed this address; return False if it is no longer
        stored.
        """
        key = handed_over_key(await self._name(question))
        return bool(await await_answer(self._client.eval(_CONFIRM_ADDRESS, 1, key, address)))

    async def find_address(self, question: Question) -> VisitorAddress | None:
        """Return the address that the visitor entered in the question's conversation, or None."""
        key = handed_over_key(await self._name(question))
        stored = await await_answer(self._client.hmget(key, ["address", "confirmed"]))
        address, confirmed = stored
        return VisitorAddress(address.decode(), address == confirmed) if address else None

    async def forget(self, question: Question) -> None:
        """Delete the reply address of the conversation, the record of what has already been sent,
        and the address of the visitor.
        """
        if await self._find_secret() is None:
            return
        name = await self._name(question)
        for key in (reply_address_key(name), handed_over_key(name)):
            await await_answer(self._client.delete(key))

    async def _name(self, question: Question) -> str:
        secret = await self._find_secret()
        if secret is None:
            raise MemoryUnavailableError(
                "Redis has lost the secret that signs reply addresses; restart this process"
            )
        named = b"address." + "\x1f".join(question.conversation).encode()
        made = hmac.new(secret, named, hashlib.sha256).digest()[:20]
        return base64.b32encode(made).decode().lower()

    async def _find_secret(self) -> bytes | None:
        secret: bytes | None = await await_answer(self._client.get(handover_secret_key()))
        return secret


class RedisRates:
    """Token buckets that refill continuously, shared by all processes."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def admit(
        self, owner: str, demands: Sequence[Demand], *, once: str = ""
    ) -> Shortage | None:
        """Count all demands and return None, or count none of them and return the exhausted limit.

        A use with the same `once` is not counted again within `ONCE_SECONDS`.
        """
        keys = [rate_key(owner, f"once/{digest_of(once)}")]
        keys += [rate_key(owner, demand.name) for demand in demands]
        holds = [
            0 if limit is None else limit
            for demand in demands
            for limit in (demand.per_minute, demand.per_day)
        ]
        kept = ONCE_SECONDS if once else 0
        reply = await await_answer(
            self._client.eval(_ADMIT, len(keys), *keys, kept, DAY_SECONDS, *holds)
        )
        if len(reply) == 1:
            return None
        seconds, position, period = (part.decode() for part in reply)
        demand = demands[int(position) - 1]
        return Shortage(demand, "day" if period == "day" else "minute", float(seconds))


class RedisSessionStore:
    """The sessions, feedback and threads of conversations.

    They are erased with the conversation, and they expire after `ttl_seconds`, or after the time
    that `ttl_of` returns for a message.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        shards: int,
        ttl_seconds: int,
        ttl_of: Callable[[Question], int] | None = None,
        empty_seconds: int = EMPTY_SECONDS,
    ) -> None:
        self._client = client
        self._shards = shards
        self._ttl_of = ttl_of if ttl_of is not None else lambda _question: ttl_seconds
        self._empty_seconds = empty_seconds

    async def open_session(self, question: Question, digest: str) -> None:
        """Store the digest of a session token, which expires after `empty_seconds` if unused."""
        key, kept = self._session_key(question), f"{NEW}{digest}"
        await await_answer(
            self._client.set(
                key, kept, ex=min(self._empty_seconds, self._ttl_of(question)), nx=True
            )
        )

    async def session(self, question: Question) -> VisitorSession | None:
        """Return the session of a conversation, and extend its lifetime unless it is empty."""
        key = self._session_key(question)
        stored = await await_answer(self._client.eval(_VISIT, 1, key, NEW, self._ttl_of(question)))
        if stored is None:
            return None
        digest = stored.decode()
        return VisitorSession(digest.removeprefix(NEW), digest.startswith(NEW))

    async def use_session(self, question: Question, digest: str) -> None:
        """Mark a session as used, so that its token expires with the conversation."""
        key = self._session_key(question)
        await await_answer(self._client.set(key, digest, ex=self._ttl_of(question), xx=True))

    async def end_session(self, question: Question) -> None:
        """Delete the token of a session."""
        await await_answer(self._client.delete(self._session_key(question)))

    async def put_feedback(self, question: Question, feedback: Feedback) -> None:
        """Store the feedback on one message."""
        key = conversation_keys(question, self._shards).feedback
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(key, question.message_id, feedback.model_dump_json())
        pipeline.expire(key, self._ttl_of(question))
        await await_answer(pipeline.execute())

    async def feedback(self, question: Question) -> dict[str, Feedback]:
        """Return the feedback on a conversation, by message id."""
        key = conversation_keys(question, self._shards).feedback
        stored: dict[bytes, bytes] = await await_answer(self._client.hgetall(key))
        return {
            name.decode(): Feedback.model_validate_json(written) for name, written in stored.items()
        }

    async def put_thread(self, question: Question, digest: str) -> None:
        """Store the conversation id under a digest of the history that was sent to a client."""
        key = thread_key(question.tenant, question.assistant, digest)
        ttl_seconds = min(THREAD_SECONDS, self._ttl_of(question))
        threads = conversation_keys(question, self._shards).threads
        # The set comes first, so that an erasure finds every key.
        pipeline = self._client.pipeline(transaction=False)
        pipeline.sadd(threads, digest)
        pipeline.expire(threads, ttl_seconds)
        await await_answer(pipeline.execute())
        await await_answer(self._client.set(key, question.conversation_id, ex=ttl_seconds))

    async def thread(self, question: Question, digest: str) -> str | None:
        """Return the conversation id for a digest of a history, or None."""
        key = thread_key(question.tenant, question.assistant, digest)
        conversation_id = await await_answer(self._client.get(key))
        return None if conversation_id is None else conversation_id.decode()

    async def forget_threads(self, question: Question) -> int:
        """Delete all digests of the conversation's histories, and return how many there were."""
        threads = conversation_keys(question, self._shards).threads
        digests: set[bytes] = await await_answer(self._client.smembers(threads))
        for digest in digests:
            # One command per key, because the keys are in different slots of a cluster.
            key = thread_key(question.tenant, question.assistant, digest.decode())
            await await_answer(self._client.delete(key))
        await await_answer(self._client.delete(threads))
        return len(digests)

    def _session_key(self, question: Question) -> str:
        return conversation_keys(question, self._shards).visit


def digest_of(name: str) -> str:
    """Return a short, fixed-length digest of a name."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]
