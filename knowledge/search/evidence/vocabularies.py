"""Keeps the terms of the documents that were compared last, bounded in bytes."""

from collections import OrderedDict
from collections.abc import Iterable

import numpy as np

from knowledge.index.points.layout import VOCABULARY, document_identity
from knowledge.index.port import ReadableIndex
from knowledge.index.queries import Terms
from knowledge.search.candidates.kept_points import FoundDocument

MOST_BYTES = 4_000_000
_OVERHEAD = 500
_NO_TERMS = np.zeros(0, dtype=np.uint32)


class Vocabularies:
    """The terms of documents by their versions, which never change; the least used are dropped."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[tuple[str, str], Terms] = OrderedDict()

    @property
    def bytes(self) -> int:
        """The bytes of all that is kept."""
        return self._bytes

    async def read(
        self, index: ReadableIndex, documents: Iterable[FoundDocument]
    ) -> dict[str, Terms]:
        """Return the terms of documents by their ids; a document that is gone has none."""
        versions = {one.document_id: one.version for one in documents}
        found = {name: self._kept[key] for name, key in _list_keys(versions) if key in self._kept}
        for name in found:
            self._kept.move_to_end((name, versions[name]))
        missing = {document_identity(name): name for name in versions if name not in found}
        if missing:
            read = await index.read_points(list(missing), ("version",), (VOCABULARY,))
            for point, stored in read.items():
                name = missing[point]
                text = stored.texts.get(VOCABULARY)
                found[name] = _NO_TERMS if text is None else np.sort(text.terms)
                if stored.payload["version"] == versions[name]:
                    self._keep((name, versions[name]), found[name])
        return {name: found.get(name, _NO_TERMS) for name in versions}

    def _keep(self, key: tuple[str, str], terms: Terms) -> None:
        if key not in self._kept:
            self._kept[key] = terms
            self._bytes += _OVERHEAD + terms.nbytes
        while self._bytes > self._most_bytes:
            self._bytes -= _OVERHEAD + self._kept.popitem(last=False)[1].nbytes


def _list_keys(versions: dict[str, str]) -> list[tuple[str, tuple[str, str]]]:
    return [(name, (name, version)) for name, version in versions.items()]
