"""Plans and surveys a move: documents whose files were moved keep their ids and embeddings.

The files are where they belong already; the index follows. The rules of access, the web addresses
and the crumbs of a document are those of its new place.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from knowledge.documents.folder import FolderListing
from knowledge.documents.survey import LanguageOf, ReadTitle, Survey
from knowledge.errors import MoveRefused
from knowledge.index.listing import ListedDocument, find_enclosing_root, find_file, is_below
from knowledge.index.overlap import SurveySource
from knowledge.moving.names import set_names


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
            "expected two places of one kind, found a repository and a folder: ingest the new "
            "one and remove the other"
        )
    moved = [document for document in listed if is_below(document.file, old)]
    if any("://" in document.root for document in moved) or "://" in old:
        raise MoveRefused(
            "expected a file or a folder, found a website, whose pages are named by their "
            "addresses: ingest the new address and remove the old one"
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
                (wanted[file].source, "expected the moved file here, found none")
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
