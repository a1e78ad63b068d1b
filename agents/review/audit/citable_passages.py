"""Finds the passages that citations name: by id, title, file, address or heading."""

from collections.abc import Iterable, Iterator

from agents.review.audit.citation_audit import CitablePassage, normalise_name
from knowledge.index.listing import ListedDocument
from knowledge.library.library import WholeDocument


def find_cited_documents(listed: Iterable[ListedDocument], wanted: set[str]) -> list[str]:
    """Return the ids of the documents that a normalised name means, or begins with."""
    return [
        one.id
        for one in listed
        if any(
            normalise_name(name) == asked or asked.startswith(f"{normalise_name(name)}#")
            for name in (one.id, one.title, one.source, one.file, one.url or "")
            if name
            for asked in wanted
        )
        or any(asked.startswith((f"{one.title.casefold()} >", f"{one.id}#")) for asked in wanted)
    ]


def list_citable_passages(document: WholeDocument) -> Iterator[CitablePassage]:
    """Yield the chunks of a document with the names of each: of the chunk, section and document."""
    listed = document.listed
    of_document = [one for one in (listed.id, listed.title, listed.source, listed.file) if one]
    of_document += [listed.url] if listed.url else []
    for one in document.chunks:
        chunk = one.chunk
        names = {chunk.chunk_id, *of_document, " > ".join((listed.title, *chunk.heading_path))}
        if chunk.heading_path and chunk.heading_path[0] == listed.title:
            names.add(" > ".join(chunk.heading_path))
        if chunk.anchor:
            names |= {f"{name}#{chunk.anchor}" for name in of_document}
        place = " > ".join((listed.title, *chunk.heading_path))
        yield CitablePassage(chunk.chunk_id, chunk.text, frozenset(names), place, listed.language)
