"""State of the console: sessions, codes of one-time links, and verified answers.

Only the digests of sessions and codes are stored. Verified answers are copies from the database for
the agents of each assistant.
"""

import hashlib
import secrets
from typing import TYPE_CHECKING

from memory.key_names import console_key, verified_answers_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

CODE_SECONDS = 600
IDLE_SECONDS = 3600
LONGEST_SECONDS = 12 * 3600

_OPEN = """
-- KEYS[1] the session, KEYS[2] the sessions of its user. ARGV: the user, the digest of the session,
-- idle timeout (s), maximum age (s).
redis.call('HSET', KEYS[1], 'person', ARGV[1], 'opened', redis.call('TIME')[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('SADD', KEYS[2], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[4])
"""
_READ = """
-- KEYS[1] the session. ARGV: idle timeout (s), maximum age (s). Returns the user, or false.
local kept = redis.call('HMGET', KEYS[1], 'person', 'opened')
if not kept[1] or not kept[2] then
  return false
end
local left = tonumber(kept[2]) + tonumber(ARGV[2]) - tonumber(redis.call('TIME')[1])
if left <= 0 then
  redis.call('DEL', KEYS[1])
  return false
end
redis.call('EXPIRE', KEYS[1], math.min(tonumber(ARGV[1]), left))
return kept[1]
"""


class RedisConsoleSessions:
    """Implements `gateway.console.access.ConsoleSessions`; all keys share a slot of a cluster.

    A session expires `idle_seconds` after its last use, and at the latest `longest_seconds` after
    its start.
    """

    def __init__(
        self,
        client: "Redis",
        *,
        idle_seconds: int = IDLE_SECONDS,
        longest_seconds: int = LONGEST_SECONDS,
    ) -> None:
        self._client = client
        self._idle = min(idle_seconds, longest_seconds)
        self._longest = longest_seconds

    async def make_code(self) -> str:
        """Create a one-time link and return its code, which is valid for ten minutes."""
        code = secrets.token_urlsafe(32)
        await await_answer(self._client.set(_key("code", code), "1", ex=CODE_SECONDS))
        return code

    async def redeem(self, code: str) -> bool:
        """Return whether the code of a one-time link is valid, and invalidate it."""
        return bool(await await_answer(self._client.delete(_key("code", code))))

    async def open(self, subject: str, person: str) -> str:
        """Open a session and return its token; `subject` identifies the person uniquely."""
        token = secrets.token_urlsafe(32)
        keys = (_key("session", token), _key("person", subject))
        values = (person, _digest(token), self._idle, self._longest)
        await await_answer(self._client.eval(_OPEN, 2, *keys, *values))
        return token

    async def read(self, token: str) -> str | None:
        """Return the person of an open session and extend the session; return None if it is not
        open.
        """
        key = _key("session", token)
        user = await await_answer(self._client.eval(_READ, 1, key, self._idle, self._longest))
        return user.decode() if user else None

    async def end(self, token: str) -> None:
        """End a session."""
        await await_answer(self._client.delete(_key("session", token)))

    async def end_all(self, subject: str) -> None:
        """End every session of a person."""
        key = _key("person", subject)
        digests: set[bytes] = await await_answer(self._client.smembers(key))
        sessions = [console_key("session", digest.decode()) for digest in digests]
        await await_answer(self._client.delete(*sessions, key))


class RedisVerifiedAnswers:
    """The verified answers of each assistant, stored as one value."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def put(self, tenant: str, assistant: str, answers: bytes) -> None:
        """Replace the answers of an assistant."""
        await await_answer(self._client.set(verified_answers_key(tenant, assistant), answers))

    async def get(self, tenant: str, assistant: str) -> bytes | None:
        """Return the answers of an assistant, or None if there are none."""
        answers: bytes | None = await await_answer(
            self._client.get(verified_answers_key(tenant, assistant))
        )
        return answers


def _key(kind: str, secret: str) -> str:
    return console_key(kind, _digest(secret))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
