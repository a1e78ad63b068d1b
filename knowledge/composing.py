"""Puts a page, its description and its chunks together into a document."""

from knowledge import chunking
from knowledge.describing import Description
from knowledge.document import Chunk, Document
from knowledge.reading.errors import NoTextError
from knowledge.reading.page import Kind, Page


def compose(
    page: Page, description: Description, *, identity: str, language: str, content_hash: str
) -> Document:
    """Return the document; raise `NoTextError` when the page has no chunk to be found by."""
    chunks = _chunks(page, identity)
    if not chunks:
        raise NoTextError("expected text, found none")
    return Document(
        id=identity,
        source=page.source,
        title=page.title or page.name,
        page=page.name,
        crumbs=page.crumbs or (page.title or page.name,),
        description=description.description,
        content=page.content,
        summary=description.summary,
        keypoints=description.keypoints,
        keywords=description.keywords,
        chunks=chunks,
        language=language,
        url=page.url,
        content_hash=content_hash,
        anchors=_anchors(page),
    )


def document_id(page: Page, language: str, default_language: str) -> str:
    """Return what names one version of a page: its id, else its name and its language."""
    if page.id is not None:
        return page.id
    return page.name if language == default_language else f"{page.name}@{language}"


def _chunks(page: Page, document_id: str) -> tuple[Chunk, ...]:
    if page.prepared is None or not page.prepared.chunks:
        return chunking.cut(page, document_id)
    return tuple(
        Chunk(chunk_id=f"{document_id}#{ordinal}", ordinal=ordinal, text=text)
        for ordinal, text in enumerate(page.prepared.chunks)
    )


def _anchors(page: Page) -> tuple[str, ...]:
    found = (block.anchor for block in page.blocks if block.kind is Kind.HEADING)
    return tuple(anchor for anchor in found if anchor)
