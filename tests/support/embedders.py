"""A base of embedders for tests that embed questions and documents alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from envelope.run import OUTSIDE, Run

Vectors = Sequence[Sequence[float]]


class UniformEmbedder(ABC):
    """Embeds every text by `embed`, which a subclass defines."""

    forms = ""

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text of a document."""
        return await self.embed(texts)

    async def embed_questions(self, texts: Sequence[str], run: Run = OUTSIDE) -> Vectors:
        """Return a vector for each text of a question."""
        return await self.embed(texts)
