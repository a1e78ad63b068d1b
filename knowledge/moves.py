"""Moves documents whose files were moved: they keep their ids and embeddings.

The files are where they belong already; the index follows. The rules of access, the web addresses
and the crumbs of a document are those of its new place.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from knowledge.chunking import text_to_embed
from knowledge.document import Document
from knowledge.documents.folder import FolderListing
from knowledge.documents.location import Location
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey
from knowledge.errors import MoveRefused
from knowledge.index.listing import ListedDocument, find_enclosing_root, find_file, is_below
from knowledge.index.overlap import SurveySource
from knowledge.index.port import WrittenDocument


@dataclass(frozen=True, slots=True)
class DocumentMove:
    """A document, and its new place: an ingested path, and the file at or below it.

    `takes_root`: its ingested path moves as a whole.
    """

    document: ListedDocument
    root: str
    file: str
    takes_root: bool

    @property
    def source(self) -> str:
        """The new file, as messages name it."""
        below = self.file.removeprefix(self.root).lstrip("/")
        return below or PurePosixPath(self.file).name


def plan_moves(listed: Sequence[ListedDocument], old: str, new: str) -> list[DocumentMove]:
    """Return the moves of all documents at or below `old` to `new`; raises `MoveRefused`.

    Both are absolute paths, or `git:` and one. A file may be moved into a folder that exists.
    """
    if old == new:
        raise MoveRefused("expected two different places, found the same one twice")
    if old.startswith("git:") != new.startswith("git:"):
        raise MoveRefused(
            "a move between a repository and a folder is not possible: ingest the new one and "
            "remove the old one"
        )
    moved = [document for document in listed if is_below(document.file, old)]
    if any("://" in document.root for document in moved) or "://" in old:
        raise MoveRefused(
            "a website cannot be moved, because its pages are identified by their addresses: "
            "ingest the new address and remove the old one"
        )
    for document in moved:
        if not document.location_name:
            raise MoveRefused(
                f"{document.id!r} was written by an earlier version of Refdesk: ingest it again "
                "before its files are moved"
            )
    if any(document.file == old for document in moved) and Path(new).is_dir():
        new = str(Path(new) / PurePosixPath(old).name)
    staying = [document for document in listed if not is_below(document.root, old)]
    return [
        DocumentMove(
            document,
            _choose_root(document, old, new, staying),
            new + document.file.removeprefix(old),
            is_below(document.root, old),
        )
        for document in moved
    ]


def _choose_root(
    document: ListedDocument, old: str, new: str, staying: Iterable[ListedDocument]
) -> str:
    """Return the ingested path to which a document belongs after the move."""
    if is_below(document.root, old):
        own = new + document.root.removeprefix(old)
    elif is_below(new, document.root):
        return document.root
    else:
        own = new
    return find_enclosing_root(staying, own) or own


@dataclass(frozen=True, slots=True)
class MovedSource:
    """A `knowledge.index.overlap.SurveySource` of the documents that move to one ingested path.

    `source` surveys that path.
    """

    moves: Sequence[DocumentMove]
    source: SurveySource

    def __call__(
        self, listed: Sequence[ListedDocument], read_title: ReadTitle, language_of: LanguageOf
    ) -> Survey:
        """Return the moved files alone; those that are not there are unreachable."""
        found = self.source(listed, read_title, language_of)
        wanted = {move.file: move for move in self.moves}
        files = {path: find_file(found.root, str(path)) for path in _list_paths(found.walk)}
        there = {path: wanted[file] for path, file in files.items() if file in wanted}
        missing = wanted.keys() - {files[path] for path in there}
        walk = FolderListing(
            files=[file for file in found.walk.files if file.path in there],
            skipped=[(path, why) for path, why in found.walk.skipped if path in there],
            unreachable=[
                (wanted[file].source, "there is no file at the new place")
                for file in sorted(missing)
            ],
        )
        names = {str(path): move.document.location_name for path, move in there.items()}
        return replace(
            found,
            walk=walk,
            locations=set_names(found.locations, names),
            moved=self._list_owned(listed, found.root, missing, there),
        )

    def _list_owned(
        self,
        listed: Sequence[ListedDocument],
        root: str,
        missing: Iterable[str],
        there: Mapping[PurePosixPath | str, DocumentMove],
    ) -> frozenset[str]:
        """Return the ids of the moved documents, and of those at their new places so far."""
        left = frozenset(missing)
        sources = {str(path) for path in there}
        moved = {move.document.id for move in self.moves if move.file not in left}
        return frozenset(
            document.id
            for document in listed
            if document.id in moved or (document.root == root and document.source in sources)
        )


def _list_paths(walk: FolderListing) -> list[PurePosixPath | str]:
    return [*(file.path for file in walk.files), *(path for path, _ in walk.skipped)]


def keep_names(found: Survey, listed: Iterable[ListedDocument]) -> Survey:
    """Return a survey in which files that were moved before keep their names."""
    own = [document for document in listed if document.root == found.root]
    names = {document.source: document.location_name for document in own if document.keeps_name}
    if not names or found.moved is not None:
        return found
    known = {document.source for document in own}
    return replace(found, locations=set_names(found.locations, names, known))


def set_names(
    locations: Mapping[PurePosixPath, Location],
    names: Mapping[str, str],
    known: Collection[str] = (),
) -> dict[PurePosixPath, Location]:
    """Return locations with these names of files.

    A file that would have one of them gets a free one, unless it is in the index already (`known`):
    pages in several languages share their name.
    """
    taken = set(names.values())
    every = taken.union(place.name for place in locations.values())
    placed: dict[PurePosixPath, Location] = {}
    for path, place in locations.items():
        source = str(path)
        is_taken = place.name in taken and source not in known
        name = names.get(source) or (_find_free(place.name, every) if is_taken else place.name)
        is_same = name == place.name
        placed[path] = place if is_same else replace(place, name=name, keeps_name=True)
    return placed


def _find_free(name: str, every: set[str]) -> str:
    number = 2
    while f"{name}-{number}" in every:
        number += 1
    return f"{name}-{number}"


Vectors = list[Sequence[float] | None]


def find_vectors(document: Document, written: WrittenDocument | None, *, is_moved: bool) -> Vectors:
    """Return the vector of each chunk; None where its text must be embedded.

    A chunk keeps its vector if the text to embed, which begins with its crumbs, has not changed.
    The chunks of a moved document keep theirs with other crumbs, too.
    """
    if written is None or len(written.chunks) != len(document.chunks):
        return [None] * len(document.chunks)
    before = document.model_copy(update={"title": written.title, "crumbs": written.crumbs})
    return [
        vector
        if chunk.text == old.text
        and (is_moved or text_to_embed(before, old) == text_to_embed(document, chunk))
        else None
        for chunk, (old, vector) in zip(document.chunks, written.chunks, strict=True)
    ]
