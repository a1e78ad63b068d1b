"""Lists the documents in an index, and selects documents by id, file, or pattern."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document as stored in the index; `root` is the ingested path, and `source` the file below
    it.

    `path` is the file if the source is a label that the document states. `groups_chosen` is true if
    the owner set the groups, overriding the groups that the source states.
    """

    id: str
    title: str
    source: str
    root: str
    language: str
    chunks: int
    content_hash: str = ""
    kind: str = ""
    url: str | None = None
    groups: tuple[str, ...] = ()
    stated_version: str = ""
    path: str = ""
    groups_chosen: bool = False

    @property
    def file(self) -> str:
        """The absolute path or the URL from which the document was read."""
        if "://" in self.root:
            return self.url or f"{self.root.rstrip('/')}/{self.source}"
        return find_file(self.root, self.path or self.source)


def find_file(root: str, source: str) -> str:
    """Return the path of a file below an ingested path; for a file or an archive, it is relative to
    its folder.
    """
    path = Path(root)
    is_archive = path.suffix.lower() == ".zip" and source.startswith(f"{path.name}/")
    if (is_archive or path.name == source) and not path.is_dir():
        return str(path.parent / source)
    return str(path / source)


def select_documents(
    documents: Iterable[ListedDocument], patterns: Sequence[str], *, folder: str = ""
) -> list[ListedDocument]:
    """Return the documents that match a pattern, sorted by id, or all of them if there are no
    patterns.

    A pattern is an id, a file as ingested, a path of a file or folder (which may no longer exist),
    or one of these with `*`, `?` and `[...]`. Relative paths start at `folder`.
    """
    known = sorted(documents, key=lambda document: document.id)
    if not patterns:
        return known
    paths = {pattern: os.path.realpath(Path(folder) / pattern) for pattern in patterns}
    return [
        document
        for document in known
        if any(_is_named(document, pattern, path) for pattern, path in paths.items())
    ]


def select_by_name(
    documents: Iterable[ListedDocument], patterns: Sequence[str]
) -> list[ListedDocument]:
    """Return the documents whose id, source, or URL matches a pattern, sorted by id.

    A pattern is such a name, a folder in it, or one with `*`, `?` and `[...]`. The file system is
    not accessed, and the ingested paths are not compared.
    """
    return sorted(
        (
            document
            for document in documents
            if any(
                is_below(name, pattern) or fnmatchcase(name, pattern)
                for name in filter(None, (document.id, document.source, document.url))
                for pattern in patterns
            )
        ),
        key=lambda document: document.id,
    )


def select_by_text(documents: Iterable[ListedDocument], text: str) -> list[ListedDocument]:
    """Return the documents whose title, id, source, or URL contains a text, ignoring case, sorted
    by id.
    """
    wanted = text.casefold()
    return sorted(
        (
            document
            for document in documents
            if any(
                wanted in name.casefold()
                for name in (document.title, document.id, document.source, document.url or "")
            )
        ),
        key=lambda item: item.id,
    )


def find_enclosing_root(documents: Iterable[ListedDocument], path: str) -> str | None:
    """Return the outermost ingested folder that contains a path, or None."""
    roots = {document.root for document in documents}
    enclosing = [root for root in roots if root != path and is_below(path, root)]
    return min(enclosing, key=len, default=None)


def is_below(path: str, folder: str) -> bool:
    """Return whether an absolute path is a folder or is below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_named(document: ListedDocument, pattern: str, path: str) -> bool:
    names = (document.id, document.source, document.file)
    if "://" in pattern and (document.root == pattern or is_below(document.file, pattern)):
        return True
    return is_below(document.file, path) or any(
        name == pattern or fnmatchcase(name, pattern) or fnmatchcase(name, path) for name in names
    )
