"""The port of rerankers."""

from collections.abc import Sequence
from typing import Protocol

from envelope.run import OUTSIDE, Run


class Reranker(Protocol):
    """Scores passages by how well they answer a question; the higher, the better.

    `name` is `MODEL@PROVIDER`.
    """

    name: str

    async def warm(self) -> None:
        """Load what scoring needs, if it is on this machine; raises `RerankingFailed`."""
        ...

    async def score(
        self, question: str, passages: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[float]:
        """Return a score for each passage, in their order.

        Raises `knowledge.errors.RerankingFailed`, also when it takes longer than it may.
        """
        ...

    async def close(self) -> None:
        """Release what it holds."""
        ...
