"""Finds the documents that a request names: of its conversation, or of the index."""

from collections.abc import Sequence

from agents.named_documents import make_sort_key
from envelope.question import Question
from gateway.port import CatalogEntry, CatalogSelection, DocumentCatalog
from gateway.reviewing.document_ports import Attachments, DocumentEntry, DocumentUnknownError

MOST_FOUND = 150
"""Documents of one folder: a scope of more is larger than a branch may return."""
MOST_COMPARED = 20_000
"""Titles that are compared; a larger index is asked by ids and files."""
_PER_PAGE = 500
_WILDCARDS = frozenset("*?[")
_SHOWN = 5


class NamedDocumentFinder:
    """A `gateway.reviewing.document_ports.DocumentFinder`.

    A document that the caller may not read is as unknown as one that does not exist.
    """

    def __init__(self, attachments: Attachments, catalog: DocumentCatalog) -> None:
        self._attachments = attachments
        self._catalog = catalog

    async def find(
        self, question: Question, name: str, groups: Sequence[str], *, is_rule: bool = False
    ) -> Sequence[DocumentEntry]:
        wanted = name.strip()
        attached = await self._attachments.list_attached(question, groups)
        if by_id := [one for one in attached if one.id == wanted]:
            return by_id
        own = [one for one in attached if wanted in (one.name, one.title)]
        _refuse_several(wanted, own)
        indexed = await self._find_indexed(question, wanted, groups) if is_rule or not own else []
        if own and indexed:
            ids = " and ".join(_show(one.id) for one in (*indexed[:1], *own))
            raise DocumentUnknownError(
                f"expected the name of one rule, found {_show(wanted)}, which is the name of a "
                f"document of the index and of one of this conversation: name one by its id, {ids}"
            )
        if not (own or indexed):
            raise DocumentUnknownError(
                f"expected the id, file or title of a document, found {_show(wanted)}, which is "
                "the name of none"
            )
        return own or indexed

    async def _find_indexed(
        self, question: Question, name: str, groups: Sequence[str]
    ) -> list[DocumentEntry]:
        selections = [CatalogSelection(ids=(name,))]
        if not _WILDCARDS.intersection(name):
            selections.append(CatalogSelection(patterns=(name,)))
        for selection in selections:
            found = await self._select(question, selection, groups, MOST_FOUND + 1)
            if len(found) > MOST_FOUND:
                raise DocumentUnknownError(
                    f"expected a folder of at most {MOST_FOUND} documents, found more in "
                    f"{_show(name)}"
                )
            if found:
                return [
                    _name(one) for one in sorted(found, key=lambda one: make_sort_key(one.source))
                ]
        return await self._find_by_title(question, name, groups)

    async def _find_by_title(
        self, question: Question, title: str, groups: Sequence[str]
    ) -> list[DocumentEntry]:
        wanted = _normalise(title)
        every = await self._select(question, CatalogSelection(), groups, MOST_COMPARED)
        found = [one for one in every if _normalise(one.title) == wanted]
        named = [_name(one) for one in found]
        _refuse_several(title, named)
        return named

    async def _select(
        self, question: Question, selection: CatalogSelection, groups: Sequence[str], most: int
    ) -> list[CatalogEntry]:
        found: list[CatalogEntry] = []
        after = ""
        while len(found) < most:
            page, _ = await self._catalog.find(
                question.tenant, question.assistant, selection, after=after, limit=_PER_PAGE
            )
            found += [one for one in page if not one.groups or set(one.groups) & set(groups)]
            if len(page) < _PER_PAGE:
                break
            after = page[-1].id
        return found[:most]


def _name(entry: CatalogEntry) -> DocumentEntry:
    return DocumentEntry(
        id=entry.id,
        title=entry.title,
        name=entry.source,
        language=entry.language,
        chunks=entry.chunks,
    )


def _refuse_several(name: str, found: Sequence[DocumentEntry]) -> None:
    if len(found) > 1:
        shown = ", ".join(_show(one.id) for one in found[:_SHOWN])
        raise DocumentUnknownError(
            f"expected the title of one document, found {_show(name)}, which is that of "
            f"{len(found)}: name one of them by its id, such as {shown}"
        )


def _normalise(title: str) -> str:
    return " ".join(title.casefold().split())


def _show(name: str) -> str:
    return repr(name if len(name) <= 100 else f"{name[:99]}…")
