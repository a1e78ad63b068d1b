"""Makes an index of synthetic documents of any size.

Words are drawn by Zipf's law, vectors around random centres, as texts of one subject are alike.
Searches depend on the lengths of lists of words and on the number of vectors, not on what they say.
"""

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from knowledge.document import Chunk, Document
from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.index.qdrant import Identity

DIMENSIONS = 384
IDENTITY = Identity("benchmark", "knowledge", "synthetic", DIMENSIONS)
CHUNKS_OF_DOCUMENT = 10
_WORDS_OF_CHUNK = 60
_WORDS = 120_000
_CENTRES = 300
_NOISE = 0.8
_SHARES = np.cumsum(1 / np.arange(10, _WORDS + 10))
_CONSONANTS = "bcdfghjklmnpqrstvwxz"

Vectors = npt.NDArray[np.float32]


class SyntheticEmbedder:
    """Embeds a text by the subject that its first word has."""

    name = IDENTITY.embedding
    dimensions = DIMENSIONS
    forms = IDENTITY.forms

    def __init__(self) -> None:
        self._random = np.random.default_rng(11)

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return await self.embed_questions(texts)

    async def embed_questions(self, texts: Sequence[str]) -> list[list[float]]:
        return [draw_vectors(self._random, 1)[0].tolist() for _ in texts]


def draw_vectors(random: np.random.Generator, count: int) -> Vectors:
    """Return normalised vectors around the common centres."""
    chosen = _draw_centres()[random.integers(_CENTRES, size=count)]
    vectors = chosen + _NOISE * random.standard_normal((count, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors, dtype=np.float32)


def draw_words(random: np.random.Generator, count: int) -> list[str]:
    """Return words, frequent ones more often."""
    ranks = np.searchsorted(_SHARES, random.random(count) * _SHARES[-1])
    return [spell_word(int(rank)) for rank in ranks]


def spell_word(rank: int) -> str:
    """Return the word of a rank: consonants with vowels, no word of a language."""
    letters = ""
    while True:
        rank, digit = divmod(rank, len(_CONSONANTS))
        letters += _CONSONANTS[digit] + "aeiou"[digit % 5]
        if not rank:
            return letters + "k"


def make_document(random: np.random.Generator, number: int, more: str = "") -> Document:
    """Return a document of `CHUNKS_OF_DOCUMENT` chunks; `more` is added to title and texts."""
    name = f"page{number}"
    title = " ".join((*draw_words(random, 3), *more.split()))
    chunks = tuple(
        Chunk(
            chunk_id=f"{name}#{at}",
            ordinal=at,
            text=" ".join((*draw_words(random, _WORDS_OF_CHUNK), more)),
            heading_path=(title, " ".join(draw_words(random, 2))) if at // 3 else (title,),
        )
        for at in range(CHUNKS_OF_DOCUMENT)
    )
    return Document(
        id=name,
        source=f"{name}.md",
        title=title,
        page=name,
        crumbs=("manual", f"part {number % 50}", title),
        content="",
        summary=" ".join(draw_words(random, 30)),
        chunks=chunks,
        content_hash=name,
    )


async def fill_index(folder: Path, chunks: int) -> None:
    """Make an index of this size in a folder, or go on with one that was not completed."""
    index = await open_embedded(folder, IDENTITY)
    index.optimize_regularly()
    try:
        present = await index.versions()
        for number in _list_missing(chunks, set(present)):
            random = np.random.default_rng(number)
            document = make_document(random, number)
            await put_document(index, document, random)
        await index.optimize()
    finally:
        await index.close()


async def put_document(index: Index, document: Document, random: np.random.Generator) -> None:
    """Write a document with vectors."""
    vectors = draw_vectors(random, len(document.chunks))
    await index.put(document, vectors.tolist(), "synthetic")


@cache
def _draw_centres() -> npt.NDArray[np.float64]:
    return np.random.default_rng(3).standard_normal((_CENTRES, DIMENSIONS))


def _list_missing(chunks: int, present: set[str]) -> Iterator[int]:
    numbers = range(chunks // CHUNKS_OF_DOCUMENT)
    return itertools.filterfalse(lambda number: f"page{number}" in present, numbers)
