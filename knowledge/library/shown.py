"""JSON formats of search results and documents, for programs."""

from pydantic import BaseModel

from envelope.place import Place


class LibraryPassage(Place, frozen=True):
    """A passage found by a search, with its location; `score` is comparable only within one
    search.
    """

    chunk_id: str
    document_id: str
    text: str
    path: str = ""
    language: str = ""
    version: str = ""
    score: float = 0.0
    levels: tuple[str, ...] = ()


class LibraryFindings(BaseModel, frozen=True):
    """The result of a search, best passages first.

    `quality` is calibrated, `total` counts all passages that were found, `corrected` is the query
    with its spelling corrected, and `fallbacks` names parts of the search that failed.
    """

    passages: tuple[LibraryPassage, ...] = ()
    quality: str = ""
    total: int = 0
    corrected: str | None = None
    fallbacks: tuple[str, ...] = ()


class LibraryDocument(BaseModel, frozen=True):
    """A document in an index; `text` (Markdown) is empty in a list, and `is_cut` is true if the
    text is truncated.
    """

    id: str
    title: str
    source: str = ""
    language: str = ""
    url: str | None = None
    version: str = ""
    crumbs: tuple[str, ...] = ()
    first_chunk_id: str = ""
    text: str = ""
    is_cut: bool = False
