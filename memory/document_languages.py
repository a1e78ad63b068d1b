"""The languages of the documents, for processes without access to the index."""

import json
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import structlog

from memory.errors import MemoryUnavailableError
from memory.key_names import document_languages_key
from memory.model_calls import await_answer

if TYPE_CHECKING:
    from redis.asyncio import Redis

log = structlog.get_logger("knowledge")

FRESH_SECONDS = 60.0
"""How long the stored languages are used before they are read again."""
EVERYBODY = ""
"""The group name under which documents that everybody may read are counted."""
Counts = Mapping[str, float]
"""The number of documents in each language."""


class RedisDocumentLanguages:
    """The languages of the documents of one assistant, by the groups that may read them."""

    def __init__(
        self,
        client: "Redis",
        tenant: str,
        assistant: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._key = document_languages_key(tenant, assistant)
        self._clock = clock
        self._counts: Mapping[str, Counts] = {}
        self._due = float("-inf")

    async def publish(self, counts: Mapping[str, Counts]) -> None:
        """Replace the counts by group; raises `MemoryUnavailableError`."""
        await await_answer(self._client.set(self._key, json.dumps(counts)))

    async def read(self, groups: Collection[str] = ()) -> Counts:
        """Return the number of documents in each language that a user in these groups may read.

        The result is empty until another process has published the counts. If Redis does not
        respond, the last known numbers are used, and a warning is logged.
        """
        if not self._counts or self._clock() >= self._due:
            self._due = self._clock() + FRESH_SECONDS
            try:
                self._counts = _decode(await await_answer(self._client.get(self._key)))
            except MemoryUnavailableError as error:
                log.warning("corpus_languages_not_read", error=str(error))
        totals: dict[str, float] = {}
        for group in (EVERYBODY, *groups):
            for language, count in self._counts.get(group, {}).items():
                totals[language] = max(count, totals.get(language, 0.0))
        return totals


def _decode(stored: bytes | None) -> Mapping[str, Counts]:
    """Return the stored counts, or an empty mapping if a different version of Refdesk wrote
    them.
    """
    try:
        by_group: Mapping[str, Counts] = json.loads(stored or b"{}")
        return {
            group: {str(language): float(count) for language, count in counts.items()}
            for group, counts in by_group.items()
        }
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
