"""Caches the findings of recent searches, so that a repeated question is not searched for again.

Only the text of documents is cached. A question is stored only as a hash, keyed with a secret of
the process, and findings that repeat it (`corrected`) are not cached, so that nothing has to be
deleted with a conversation.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from time import monotonic

from envelope.run import OUTSIDE, Run
from knowledge.port import CALIBRATION, Findings, Searcher, SearchRequest

MOST_CHARACTERS = 8_000_000
"""Maximum number of characters of cached findings per process, which is about 300 searches of the
default size.
"""

OnLookup = Callable[[Run, bool], None]
"""Receives, for each search, its run and whether its findings were cached."""


@dataclass(frozen=True, slots=True)
class _StoredFindings:
    findings: Findings
    size: int
    expires: float


def ignore_lookups(_run: Run, _is_hit: bool) -> None:
    """Do not count anything."""


class FindingsCache:
    """The findings of searches in this process, for `seconds`; the least recently used ones are
    dropped first.
    """

    def __init__(
        self,
        seconds: float,
        *,
        most_characters: int = MOST_CHARACTERS,
        on_lookup: OnLookup = ignore_lookups,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._seconds = seconds
        self._most_characters = most_characters
        self._on_lookup = on_lookup
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._kept: OrderedDict[bytes, _StoredFindings] = OrderedDict()
        self._size = 0

    def hash_search(self, index: tuple[str, str], revision: str, request: SearchRequest) -> bytes:
        """Return the key of a search, based on its index, the index version, and the whole
        request.
        """
        asked = repr((index, revision, request)).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(asked, key=self._secret, digest_size=32).digest()

    def get(self, key: bytes, run: Run = OUTSIDE) -> Findings | None:
        """Return the cached findings, marked as such, or None; counts the lookup."""
        kept = self._kept.get(key)
        if kept is not None and kept.expires <= self._clock():
            self._drop(key)
            kept = None
        self._on_lookup(run, kept is not None)
        if kept is None:
            return None
        self._kept.move_to_end(key)
        return replace(kept.findings, from_cache=True)

    def put(self, key: bytes, findings: Findings) -> None:
        """Cache findings, unless they repeat a question or lack a level that failed."""
        size = _measure(findings)
        if findings.corrected is not None or set(findings.fallbacks) - {CALIBRATION}:
            return
        if key in self._kept:
            self._drop(key)
        self._kept[key] = _StoredFindings(findings, size, self._clock() + self._seconds)
        self._size += size
        while self._size > self._most_characters:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: bytes) -> None:
        self._size -= self._kept.pop(key).size


class CachedSearcher:
    """See `knowledge.port.Searcher`; returns the findings of an equal search from a cache.

    `read_revision` returns the version of the index, which changes with every change to its
    documents. `index` is its tenant and assistant.
    """

    def __init__(
        self,
        searcher: Searcher,
        cache: FindingsCache,
        *,
        index: tuple[str, str],
        read_revision: Callable[[], Awaitable[str]],
    ) -> None:
        self._searcher = searcher
        self._cache = cache
        self._index = index
        self._read_revision = read_revision

    async def search(self, request: SearchRequest) -> Findings:
        """Return the findings; raises `IndexUnavailable` even if they are cached."""
        key = self._cache.hash_search(self._index, await self._read_revision(), request)
        kept = self._cache.get(key, request.run)
        if kept is not None:
            return kept
        findings = await self._searcher.search(request)
        self._cache.put(key, findings)
        return findings


def _measure(findings: Findings) -> int:
    """Return the approximate size of findings in characters; no search counts as less than
    1,000.
    """
    texts = [hit.text for hit in findings.hits] + [section.text for section in findings.context]
    return 1000 + sum(map(len, texts))
