"""Reads the edges of passages from the index, but only those of the requested passages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knowledge.document import Chunk
from knowledge.documents.stated_version import find_numbers
from knowledge.index.graph.called_names import (
    MOST_WORDS,
    list_called_names,
    list_word_runs,
    split_words,
)
from knowledge.index.graph.mentioned_names import find_mentioned_names
from knowledge.index.listing import ListedDocument
from knowledge.index.points import layout, point_decoder
from knowledge.index.points.layout import CALLED, LINKS, MENTIONED, PARENT, REFERENCES, Point
from knowledge.index.port import ReadableIndex
from knowledge.sections import document_of

_MOST_DOCUMENTS = 1_000
"""Maximum number of documents that are read for the names in one walk."""
_WORDS_OF_A_TEXT = 500
"""The number of words in which names are looked up, for a text without stored links."""
_CHUNK_FIELDS = (
    "chunk_id", "ordinal", "text", "heading_path", "anchor", "version", MENTIONED, LINKS,
    REFERENCES, PARENT,
)  # fmt: skip
_LONGEST_TEXT = 200_000


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document without its passages; `version` identifies this state of it."""

    listed: ListedDocument
    crumbs: tuple[str, ...]
    version: str


@dataclass(frozen=True, slots=True)
class ConnectedPassage:
    """A passage with its edges; `references` and `parent` are ids of passages in its document."""

    document: DocumentRecord
    chunk: Chunk
    mentioned: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    parent: str = ""


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A name in a text, with the documents that have this name; `start` counts words."""

    name: str
    start: int
    document_ids: tuple[str, ...]


class DocumentNames:
    """The names of documents; several documents may have the same name."""

    def __init__(self, documents: Iterable[ListedDocument]) -> None:
        self._by_name: dict[str, list[ListedDocument]] = {}
        by_title: dict[str, list[ListedDocument]] = {}
        for document in documents:
            by_title.setdefault(document.title, []).append(document)
            for name in list_called_names(document.title):
                self._by_name.setdefault(name, []).append(document)

        self._superseded = frozenset(
            version.id
            for versions in by_title.values()
            if len(versions) > 1
            for version in versions
            if version.id not in _choose_version(versions, "")
        )

    def is_superseded(self, document_id: str) -> bool:
        """Return whether a document with the same title states a newer version."""
        return document_id in self._superseded

    def find(self, name: str, version: str = "") -> list[str]:
        """Return the ids of the documents that have exactly this name.

        Of several versions of a document, the requested one is returned or, if none is requested,
        the newest.
        """
        return _choose_version(self._by_name.get(" ".join(split_words(name)), []), version)

    def find_in(self, text: str, version: str = "") -> list[NamedDocument]:
        """Return the names in a text, in order; of overlapping names, only the longest."""
        words = split_words(text[:_LONGEST_TEXT])
        documents: list[NamedDocument] = []
        start = 0
        while start < len(words):
            length = self._measure_name(words, start)
            if length:
                name = " ".join(words[start : start + length])
                ids = _choose_version(self._by_name[name], version)
                documents.append(NamedDocument(name, start, tuple(ids)))
            start += max(length, 1)
        return documents

    def _measure_name(self, words: list[str], start: int) -> int:
        """Return the number of words in the longest name at a position, or 0 if there is none."""
        for length in range(min(MOST_WORDS, len(words) - start), 0, -1):
            if " ".join(words[start : start + length]) in self._by_name:
                return length
        return 0


class PassageGraph:
    """The passages that a person may read, and their edges."""

    def __init__(self, index: ReadableIndex, *, has_edges: bool) -> None:
        self._index = index
        self._has_edges = has_edges

    async def read_documents(self, document_ids: Iterable[str]) -> dict[str, DocumentRecord]:
        """Return documents by id, in the order of the ids; unknown ones are omitted."""
        wanted = list(dict.fromkeys(document_ids))
        if not wanted:
            return {}
        documents = await self._index.find_documents(
            {"document": wanted}, (*layout.LISTED, "crumbs", "version")
        )
        known = {
            str(fields["document"]): DocumentRecord(
                _list_document(fields), tuple(fields["crumbs"]), fields["version"]
            )
            for fields in documents.values()
        }
        return {name: known[name] for name in wanted if name in known}

    async def read_passages(
        self, chunk_ids: Iterable[str], documents: Mapping[str, DocumentRecord]
    ) -> dict[str, ConnectedPassage]:
        """Return passages in these documents by id, in the order of the ids."""
        points = {
            layout.chunk_identity(owner, documents[owner].version, int(ordinal)): chunk_id
            for chunk_id in dict.fromkeys(chunk_ids)
            if (owner := document_of(chunk_id)) in documents
            and (ordinal := chunk_id.rpartition("#")[2]).isdecimal()
        }
        lists = {
            chunk_id: layout.links_identity(document_of(chunk_id), int(chunk_id.rpartition("#")[2]))
            for chunk_id in points.values()
        }
        wanted = [*points, *dict.fromkeys(lists.values())]
        passages = await self._index.fields_of(wanted, _CHUNK_FIELDS)
        return {
            chunk_id: _read_passage(
                documents[document_of(chunk_id)], passages[point], passages.get(lists[chunk_id], {})
            )
            for point, chunk_id in points.items()
            if point in passages
        }

    async def find_called(self, names: Iterable[str], texts: Iterable[str] = ()) -> DocumentNames:
        """Return the documents that have any of these names, or a name that may occur in a text."""
        runs = (run for text in texts for run in list_word_runs(text, _WORDS_OF_A_TEXT))
        wanted = list(dict.fromkeys((*names, *runs)))
        if not wanted or not self._has_edges:
            return DocumentNames(())
        return await self._find_documents({CALLED: wanted})

    async def find_versions(self, documents: Iterable[DocumentRecord]) -> DocumentNames:
        """Return the documents with the same titles as these documents that state versions.

        They show which versions are superseded.
        """
        titles = {
            document.listed.title.casefold()
            for document in documents
            if document.listed.stated_version
        }
        return await self._find_documents({"title_key": sorted(titles)})

    async def find_sharing(
        self, names: Iterable[str], *, most_common: int
    ) -> dict[str, tuple[str, ...]]:
        """Return the ids of the passages that mention each name, for names that connect passages.

        A name in only one passage, or in more than `most_common`, does not connect any.
        """
        wanted = list(dict.fromkeys(names))
        if not wanted or not self._has_edges:
            return {}
        sharing = await self._index.find_each(MENTIONED, wanted, ("chunk_id",), most_common + 1)
        shared = {
            name: tuple(sorted({str(fields["chunk_id"]) for fields in each}))
            for name, each in zip(wanted, sharing, strict=True)
        }
        return {name: ids for name, ids in shared.items() if 1 < len(ids) <= most_common}

    async def _find_documents(self, match: Mapping[str, Sequence[str]]) -> DocumentNames:
        if not all(match.values()):
            return DocumentNames(())
        documents = await self._index.find_documents(match, layout.LISTED, limit=_MOST_DOCUMENTS)
        listed = [_list_document(fields) for fields in documents.values()]
        return DocumentNames(sorted(listed, key=lambda item: item.id))


def find_names(passage: ConnectedPassage) -> tuple[str, ...]:
    """Return the names mentioned in a passage; if they are not stored, they are determined from its
    text.
    """
    title = passage.document.listed.title
    return passage.mentioned or tuple(find_mentioned_names(f"{title}. {passage.chunk.text}"))


def _list_document(fields: Mapping[str, Any]) -> ListedDocument:
    return point_decoder.list_document(Point(layout.graph_identity(), dict(fields)))


def _read_passage(
    document: DocumentRecord, fields: Mapping[str, Any], links: Mapping[str, Any]
) -> ConnectedPassage:
    name = document.listed.id
    parent = fields.get(PARENT)
    return ConnectedPassage(
        document=document,
        chunk=Chunk(
            chunk_id=fields["chunk_id"],
            ordinal=fields["ordinal"],
            text=fields["text"],
            heading_path=tuple(fields["heading_path"]),
            anchor=fields.get("anchor"),
        ),
        mentioned=tuple(fields.get(MENTIONED, ())),
        links=_read_links(document, fields, links),
        references=tuple(f"{name}#{ordinal}" for ordinal in fields.get(REFERENCES, ())),
        parent="" if parent is None else f"{name}#{parent}",
    )


def _read_links(
    document: DocumentRecord, fields: Mapping[str, Any], links: Mapping[str, Any]
) -> tuple[str, ...]:
    if links.get("version") == document.version:
        return tuple(links[LINKS].get(str(fields["ordinal"]), ()))
    return tuple(fields.get(LINKS, ()))


def _choose_version(documents: list[ListedDocument], version: str) -> list[str]:
    if version:
        return [document.id for document in documents if document.stated_version == version]
    newest = max((find_numbers(document.stated_version) for document in documents), default=())
    return [
        document.id for document in documents if find_numbers(document.stated_version) == newest
    ]
