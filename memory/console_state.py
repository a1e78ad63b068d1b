"""Stores the sessions of the console and the codes of its one-time links, by their digests."""

import hashlib
import secrets
from typing import TYPE_CHECKING

from memory.key_names import console_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

CODE_SECONDS = 600
SESSION_SECONDS = 12 * 3600

_OPEN = """
-- KEYS[1] the code, KEYS[2] the session. ARGV: seconds of the session. Returns 1 if it was opened.
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
redis.call('SET', KEYS[2], '1', 'EX', ARGV[1])
return 1
"""


class RedisConsoleSessions:
    """See `gateway.console.routes.ConsoleSessions`; all keys share a slot of Redis Cluster."""

    def __init__(self, client: "Redis") -> None:
        self._client = client

    async def make_code(self) -> str:
        """Return the code of a new one-time link, which is valid for ten minutes."""
        code = secrets.token_urlsafe(32)
        await await_answer(self._client.set(_key("code", code), "1", ex=CODE_SECONDS))
        return code

    async def open(self, code: str) -> str | None:
        """Return the token of a new session, of twelve hours, for a code, which ends with this."""
        token = secrets.token_urlsafe(32)
        keys = (_key("code", code), _key("session", token))
        opened = await await_answer(self._client.eval(_OPEN, 2, *keys, SESSION_SECONDS))
        return token if opened else None

    async def is_open(self, token: str) -> bool:
        """Return whether a session is open."""
        return bool(await await_answer(self._client.exists(_key("session", token))))

    async def end(self, token: str) -> None:
        """End a session."""
        await await_answer(self._client.delete(_key("session", token)))


def _key(kind: str, secret: str) -> str:
    return console_key(kind, hashlib.sha256(secret.encode()).hexdigest())
