"""The output speed of models, measured by all processes over the last days."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from memory.key_names import speed_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

_DAYS = 7
_KEPT_SECONDS = (_DAYS + 1) * 86_400
_ADD = """
-- KEYS[1] a model on a day. ARGV: output tokens, milliseconds, time to live (s).
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[1])
redis.call('HINCRBYFLOAT', KEYS[1], 'milliseconds', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""


def _read_date() -> date:
    return datetime.now(UTC).date()


class RedisModelSpeeds:
    """Sums of output tokens and call durations, for each model and day."""

    def __init__(self, client: "Redis", today: Callable[[], date] = _read_date) -> None:
        self._client = client
        self._today = today

    async def add(self, model: str, tokens: int, milliseconds: float) -> None:
        """Add a call with this many output `tokens`; raises `MemoryUnavailableError`."""
        key = speed_key(model, self._today().isoformat())
        await await_answer(
            self._client.eval(_ADD, 1, key, tokens, f"{milliseconds:.3f}", _KEPT_SECONDS)
        )

    async def read(self, model: str) -> float | None:
        """Return the output tokens per second of a model, or None if it was not measured.

        Raises `MemoryUnavailableError`.
        """
        tokens = milliseconds = 0.0
        for days in range(_DAYS):
            key = speed_key(model, (self._today() - timedelta(days=days)).isoformat())
            sums = await await_answer(self._client.hmget(key, ["tokens", "milliseconds"]))
            tokens += float(sums[0] or 0)
            milliseconds += float(sums[1] or 0)
        return tokens / milliseconds * 1000 if tokens and milliseconds else None
