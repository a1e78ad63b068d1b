"""Deletes expired data whose key has no time to live, and starts rewritings of the file.

One process does this for each shard: the one that sweeps it.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any

from broker.context import BrokerContext
from broker.entry_codec import fields_of, seconds_of
from broker.keys import question_of, shard_keys
from broker.maintenance.file_rewriting import Files
from broker.maintenance.queue_admin import letter_fields
from broker.transport.connect import reachable

LONGEST_SECONDS = 10.0
LEAST_SECONDS = 0.1
PAGE = 100


class Upkeep:
    """Deletes expired dead letters of the shards in `on_duty`, and starts rewritings of the file.

    Dead letters are kept for `seconds`; `of` has exceptions by tenant and assistant, in seconds.
    """

    def __init__(
        self,
        context: BrokerContext,
        files: Files,
        on_duty: Collection[int],
        *,
        seconds: float,
        of: Mapping[tuple[str, str], float],
    ) -> None:
        self._context = context
        self._files = files
        self._on_duty = on_duty
        self._seconds = seconds
        self._of = of
        self._shortest_seconds = min((seconds, *of.values()))

    async def tidy(self) -> float:
        """Delete expired data once; return seconds until the next time."""
        for shard in tuple(self._on_duty):
            await self._drop_letters(shard)
            await self._files.look(shard)
        often = min(LONGEST_SECONDS, self._shortest_seconds / 4, self._files.patience_seconds / 4)
        return max(LEAST_SECONDS, often)

    async def _drop_letters(self, shard: int) -> None:
        keys, client = shard_keys(shard), self._context.client
        now, after = time.time(), "-"
        while True:
            # Entry ids are in Redis time: a clock difference delays or hastens this accordingly.
            until = int((now - self._shortest_seconds) * 1000)
            command: Any = client
            with reachable():
                entries = await command.execute_command(
                    "XRANGE", keys.dead, after, until, "COUNT", PAGE
                )
            old = [
                entry_id.decode() for entry_id, raw in entries if self._is_old(entry_id, raw, now)
            ]
            if old:
                with reachable():
                    pipeline: Any = client.pipeline(transaction=False)
                    pipeline.hdel(
                        keys.letters, *(name for one in old for name in letter_fields(one))
                    )
                    pipeline.xdel(keys.dead, *old)
                    await pipeline.execute()
            if len(entries) < PAGE:
                return
            after = f"({entries[-1][0].decode()}"

    def _is_old(self, entry_id: bytes, raw: Any, now: float) -> bool:
        name = fields_of(raw).get(b"q", b"").decode()
        question = question_of(name) if name else None
        whose = None if question is None else (question.tenant, question.assistant)
        lives = self._seconds if whose is None else self._of.get(whose, self._seconds)
        return now - seconds_of(entry_id.decode()) >= lives
