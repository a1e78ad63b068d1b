"""Finds the vectors of a document's chunks that were computed before."""

from collections.abc import Sequence

from knowledge.chunking import text_to_embed
from knowledge.document import Document
from knowledge.index.port import WrittenDocument

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
