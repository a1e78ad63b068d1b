"""Finds the verified answers with the most similar questions, for the agents of one assistant."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING

import structlog
from pydantic import TypeAdapter, ValidationError

from envelope.run import OUTSIDE, Run
from envelope.verified import VerifiedAnswer
from knowledge.errors import KnowledgeError
from memory.errors import MemoryStoreError

if TYPE_CHECKING:
    from knowledge.embedding import Embedder
    from records.grouping import Matrix

log = structlog.get_logger("knowledge")

LISTED = TypeAdapter(tuple[VerifiedAnswer, ...])
MOST_FOUND = 3
LOOK_SECONDS = 5.0
"""How long a process caches the answers."""
FindReadable = Callable[[Sequence[str], Sequence[str]], Awaitable[Collection[str]]]
"""Returns the subset of these documents that a user in these groups may read."""
CLOSENESS = 0.3
"""Minimum similarity, as in `records.grouping`. It is low, because a model makes the final
decision.
"""


class VerifiedFinder:
    """Implements `agents.question.verified.FindVerified`; `read` returns the output of
    `put_answers`.

    Access is checked against the index. An answer is omitted if the user may not read one of its
    pages, or if a page no longer exists. If Redis, the index, or the embedding model is
    unavailable, a warning is logged and no answers are found.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[bytes | None]],
        embedder: "Callable[[], Embedder]",
        unrelated: Sequence[str],
        find_readable: FindReadable,
    ) -> None:
        self._find_readable = find_readable
        self._read = read
        self._embedder = embedder
        self._unrelated = unrelated
        self._due = float("-inf")
        self._known: bytes | None = None
        self._answers: tuple[VerifiedAnswer, ...] = ()
        self._vectors: Matrix | None = None
        self._least = 1.0
        self._turn = asyncio.Lock()

    async def __call__(
        self, texts: Sequence[str], groups: Sequence[str], run: Run
    ) -> Sequence[VerifiedAnswer]:
        """Return the most similar answers that a user in these groups may read."""
        try:
            async with self._turn:
                await self._look()
            if self._vectors is None:
                return ()
            near = self._find_near(await self._embed(texts, run))
            return (await self._leave_unreadable(near, groups))[:MOST_FOUND]
        except (KnowledgeError, MemoryStoreError, ValidationError) as error:
            log.warning("verified_answers_unavailable", error=str(error).partition("\n")[0])
            return ()

    def _find_near(self, asked: "Matrix") -> list[VerifiedAnswer]:
        if self._vectors is None:
            return []
        likeness = (self._vectors @ asked.T).max(axis=1)
        best = sorted(range(len(self._answers)), key=lambda at: -float(likeness[at]))
        return [self._answers[at] for at in best if likeness[at] >= self._least]

    async def _leave_unreadable(
        self, answers: Sequence[VerifiedAnswer], groups: Sequence[str]
    ) -> list[VerifiedAnswer]:
        cited = dict.fromkeys(page.document_id for answer in answers for page in answer.pages)
        readable = await self._find_readable(tuple(cited), groups)
        return [
            answer for answer in answers if all(p.document_id in readable for p in answer.pages)
        ]

    async def _look(self) -> None:
        if time.monotonic() < self._due:
            return
        encoded = await self._read()
        if encoded != self._known:
            from records.grouping import find_least

            answers = LISTED.validate_json(encoded) if encoded else ()
            vectors = (
                await self._embed([answer.question for answer in answers], OUTSIDE)
                if answers
                else None
            )
            if answers and self._vectors is None:
                self._least = find_least(await self._embed(self._unrelated, OUTSIDE), CLOSENESS)
            self._answers, self._vectors, self._known = answers, vectors, encoded
        self._due = time.monotonic() + LOOK_SECONDS

    async def _embed(self, texts: Sequence[str], run: Run) -> "Matrix":
        import numpy as np

        from records.grouping import normalise

        vectors = await self._embedder().embed_questions(texts, run)
        return np.array([normalise(vector) for vector in vectors])


def put_answers(answers: Sequence[VerifiedAnswer]) -> bytes:
    """Encode answers for storage in Redis."""
    return LISTED.dump_json(tuple(answers))
