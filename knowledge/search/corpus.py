"""Keeps the in-memory copies of an index current: reads only changed documents again.

People of different groups search different copies, so that a document that a person may not read
has no effect on what they find: neither on an order, nor on a probability or a corrected word.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Sequence

import numpy as np

from knowledge.index.bm25 import TermNumbers
from knowledge.index.port import Index, ReadableIndex, StoredDocument
from knowledge.search.mirror import Mirror, MirrorEntry, entry
from knowledge.search.spelling import Vocabulary

_MOST_CORPORA = 8


class Corpora:
    """The documents of an index, by the groups of the people who may read them.

    Groups that no document names make no difference: without any, there is one corpus.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._known: frozenset[str] = frozenset()
        self._revision: str | None = None
        self._corpora: OrderedDict[frozenset[str], Corpus] = OrderedDict()

    async def read(self, groups: Collection[str]) -> "Corpus":
        """Return the documents that a person of these groups may read now."""
        revision = await self._index.revision()
        if revision != self._revision:
            self._known = await self._index.groups()
            self._revision = revision
        own = self._known.intersection(groups)
        corpus = self._corpora.get(own)
        if corpus is None:
            corpus = self._corpora[own] = Corpus(self._index.visible_to(own))
            if len(self._corpora) > _MOST_CORPORA:
                self._corpora.popitem(last=False)
        self._corpora.move_to_end(own)
        await corpus.update(revision)
        return corpus


class Corpus:
    """The present documents of an index, as far as `index` shows them."""

    def __init__(self, index: ReadableIndex) -> None:
        self.index = index
        self.numbers = TermNumbers()
        self.vocabulary = Vocabulary()
        self.mirror = Mirror(())
        self._versions: dict[str, str] = {}
        self._entries: dict[str, MirrorEntry] = {}
        self._revision: str | None = None
        self._refreshing = asyncio.Lock()

    async def update(self, revision: str) -> None:
        """Read the documents that have changed since another revision of the index."""
        async with self._refreshing:
            if revision != self._revision:
                await self._refresh()
                self._revision = revision

    async def _refresh(self) -> None:
        versions = await self.index.versions()
        changed = [name for name, seen in versions.items() if self._versions.get(name) != seen]
        loaded = await self.index.load(changed)
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
        self.mirror = Mirror(ordered)

    def _forget(self, name: str) -> None:
        self._versions.pop(name, None)
        old = self._entries.pop(name, None)
        if old is not None:
            self.vocabulary.remove(old.words)


def is_known(mirror: Mirror, number: int) -> bool:
    """Return whether any chunk contains a term."""
    return len(mirror.keywords.rows_of(np.uint32(number))) > 0
