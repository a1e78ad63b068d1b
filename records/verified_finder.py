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
"""How long a process uses the answers before it reads them again."""
FindReadable = Callable[[Sequence[str], Sequence[str]], Awaitable[Collection[str]]]
"""Returns which of some documents a person of some groups may read now."""
CLOSENESS = 0.3
"""The minimum similarity, as in `records.grouping`: low, because a model decides afterwards."""


class VerifiedFinder:
    """A `agents.question.verified.FindVerified` over what `read` returns; see `put_answers`.

    Rights are read from the index when an answer is found: an answer is left out if the person may
    not read one of its pages, or if a page is no longer there. While Redis, the index or the
    embedding model does not answer, it finds nothing, which is logged.
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
        """Return the nearest answers that a person of these groups may read."""
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
        found = await self._read()
        if found != self._known:
            from records.grouping import find_least

            answers = LISTED.validate_json(found) if found else ()
            vectors = (
                await self._embed([answer.question for answer in answers], OUTSIDE)
                if answers
                else None
            )
            if answers and self._vectors is None:
                self._least = find_least(await self._embed(self._unrelated, OUTSIDE), CLOSENESS)
            self._answers, self._vectors, self._known = answers, vectors, found
        self._due = time.monotonic() + LOOK_SECONDS

    async def _embed(self, texts: Sequence[str], run: Run) -> "Matrix":
        import numpy as np

        from records.grouping import normalise

        made = await self._embedder().embed_questions(texts, run)
        return np.array([normalise(one) for one in made])


def put_answers(answers: Sequence[VerifiedAnswer]) -> bytes:
    """Return answers in the form in which Redis has them."""
    return LISTED.dump_json(tuple(answers))
