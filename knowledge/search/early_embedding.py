"""Embeds a question before its search, while another call is under way.

A vendor takes about as long to embed a question as to answer it. The vectors are kept by
`QuestionVectors`, where the search finds them under the same texts.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from knowledge.errors import EmbeddingFailed
from knowledge.port import SearchRequest
from knowledge.search.query import wordings
from knowledge.search.question_vectors import QuestionVectors

log = structlog.get_logger("knowledge")


class EarlyEmbedding:
    """Sends the texts of a coming search to a vendor. A failure is logged and not raised.

    The search embeds the missing texts again, and has a fallback if that fails too. `store_errors`
    are those of the store of vectors: the next call of the store raises them.
    """

    def __init__(
        self, vectors: QuestionVectors, *, store_errors: tuple[type[Exception], ...] = ()
    ) -> None:
        self._vectors = vectors
        self._expected: tuple[type[Exception], ...] = (EmbeddingFailed, *store_errors)

    async def embed(self, request: SearchRequest) -> None:
        """Embed the texts of a search; texts that were embedded for this question cost nothing."""
        try:
            await self._vectors.embed_questions(wordings(request).embedded, request.run)
        except self._expected as error:
            log.warning("early_embedding_failed", error=f"{type(error).__name__}: {error}")

    @asynccontextmanager
    async def during(self, request: SearchRequest) -> AsyncIterator[None]:
        """Embed while the block runs, and wait for both; an error of the block ends both."""
        failure: Exception | None = None
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.embed(request))
            try:
                yield
            except Exception as error:  # noqa: BLE001 - raised again outside of the group
                failure = error
                task.cancel()
        if failure is not None:
            raise failure
