"""Tells a planner which documents there are: ids, titles, kinds and versions, cut with a count."""

from collections.abc import Iterator, Sequence

from knowledge.index.listing import ListedDocument

MOST_DOCUMENTS = 60
_LONGEST_LINE = 200


def describe_documents(
    documents: Sequence[ListedDocument], most: int = MOST_DOCUMENTS
) -> tuple[str, ...]:
    """Return a line for each of the first documents, and one that counts the others."""
    lines = [_describe(one) for one in documents[:most]]
    left = len(documents) - len(lines)
    return (*lines, f"... and {left} further documents") if left else tuple(lines)


def _describe(document: ListedDocument) -> str:
    facts = ", ".join(_list_facts(document))
    return f"{document.id}: {document.title}{f' ({facts})' if facts else ''}"[:_LONGEST_LINE]


def _list_facts(document: ListedDocument) -> Iterator[str]:
    if document.kind:
        yield document.kind
    if document.stated_version:
        yield f"version {document.stated_version}"
    yield document.language
