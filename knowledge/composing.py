"""Combines a page, its description, and its chunks into a document."""

from collections.abc import Sequence

from knowledge import chunking
from knowledge.chunking import ChunkText
from knowledge.document import Document
from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import NoTextError
from knowledge.documents.page import BlockKind, Page, Prepared
from knowledge.rule_descriptions import Description

_LONGEST_ADDRESS = 2048
_UNSAFE = frozenset("\n\t \"'<>`\\")


def compose(
    page: Page,
    passages: Sequence[ChunkText],
    description: Description,
    *,
    identity: str,
    language: str,
    content_hash: str,
    path: str = "",
    kind: str = "",
) -> Document:
    """Return the document; raises `NoTextError` if the page has no searchable passage."""
    if not passages:
        raise NoTextError("the document contains no text")
    return Document(
        id=identity,
        source=_label(page.source),
        title=page.title or page.name,
        page=page.name,
        crumbs=page.crumbs or (page.title or page.name,),
        description=clean_text(description.description),
        content=page.content,
        summary=clean_text(description.summary),
        keypoints=tuple(clean_text(point) for point in description.keypoints),
        keywords=tuple(clean_text(word) for word in description.keywords),
        stated_keywords=tuple(clean_text(word) for word in page.keywords),
        stated_text=clean_text(_join_stated_text(page)),
        kind=kind,
        chunks=chunking.name_chunks(passages, identity),
        language=language,
        url=_web_address(page.url),
        content_hash=content_hash,
        anchors=_anchors(page),
        groups=page.groups,
        stated_version=page.version,
        path=path if path != page.source else "",
        files=page.files,
    )


def document_id(page: Page, language: str, default_language: str) -> str:
    """Return the id of a version of a page, from its own id or, if it has none, its name and
    language.

    A region or script that the page states is part of the id, because two versions may differ in
    nothing else.
    """
    if page.id is not None or language == default_language:
        return page.id or page.name
    tag = (page.language or "").strip().lower().replace("_", "-")
    return f"{page.name}@{tag if tag.partition('-')[0] == language else language}"


def _join_stated_text(page: Page) -> str:
    """Return the metadata that the source states about the page, except its content and
    keywords.
    """
    prepared = page.prepared or Prepared()
    return "\n".join(filter(None, (page.description, prepared.summary, *prepared.keypoints)))


def _web_address(url: str | None) -> str | None:
    """Return a URL if it is safe to show as a link, or None otherwise."""
    if url is None or len(url) > _LONGEST_ADDRESS or any(mark in url for mark in _UNSAFE):
        return None
    scheme, colon, _ = url.partition(":")
    is_relative = not colon or "/" in scheme or "#" in scheme or "?" in scheme
    return url if is_relative or scheme.lower() in ("http", "https") else None


def _label(source: str) -> str:
    """Return a source label without parts that would lead out of a folder if it were used as a
    path.
    """
    scheme, mark, rest = source.partition("://")
    is_address = bool(mark) and scheme.isalnum()
    path = (rest if is_address else source).replace("\\", "/")
    parts = (part for part in path.split("/") if part not in ("", ".", ".."))
    label = "/".join(parts) or "unnamed"
    return f"{scheme}://{label}" if is_address else label


def _anchors(page: Page) -> tuple[str, ...]:
    anchors = (block.anchor for block in page.blocks if block.kind is BlockKind.HEADING)
    return tuple(anchor for anchor in anchors if anchor)
