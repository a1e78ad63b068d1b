"""Keeps the in-memory copy of an index current: reads only changed documents again."""

import asyncio
from collections.abc import Sequence

import numpy as np

from knowledge.index.bm25 import TermNumbers
from knowledge.index.port import Index, StoredDocument
from knowledge.search.mirror import Mirror, MirrorEntry, entry
from knowledge.search.spelling import Vocabulary


class Corpus:
    """The present documents of an index."""

    def __init__(self, index: Index) -> None:
        self.numbers = TermNumbers()
        self.vocabulary = Vocabulary()
        self._index = index
        self._versions: dict[str, str] = {}
        self._entries: dict[str, MirrorEntry] = {}
        self._mirror = Mirror(())
        self._revision: str | None = None
        self._refreshing = asyncio.Lock()

    async def current(self) -> Mirror:
        """Return the in-memory copy after reading the documents that have changed."""
        async with self._refreshing:
            revision = await self._index.revision()
            if revision != self._revision:
                await self._refresh()
                self._revision = revision
            return self._mirror

    async def _refresh(self) -> None:
        versions = await self._index.versions()
        changed = [name for name, seen in versions.items() if self._versions.get(name) != seen]
        loaded = await self._index.load(changed)
        gone = [name for name in self._versions if name not in versions]
        if loaded or gone:
            await asyncio.to_thread(self._replace, loaded, gone)

    def _replace(self, loaded: Sequence[StoredDocument], gone: list[str]) -> None:
        for name in gone:
            self._forget(name)
        for document in loaded:
            self._forget(document.document_id)
            self._versions[document.document_id] = document.version
            if document.chunks:
                self._entries[document.document_id] = entry(document, self.numbers)
                self.vocabulary.add(document.words)
        ordered = [self._entries[name] for name in sorted(self._entries)]
        self._mirror = Mirror(ordered)

    def _forget(self, name: str) -> None:
        self._versions.pop(name, None)
        old = self._entries.pop(name, None)
        if old is not None:
            self.vocabulary.remove(old.words)


def is_known(mirror: Mirror, number: int) -> bool:
    """Return whether any chunk contains a term."""
    return len(mirror.keywords.rows_of(np.uint32(number))) > 0
