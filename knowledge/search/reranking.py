"""Orders the best candidates of a search with a model that reads question and passage together.

The reranker determines only the order; the scores come from the search. The passage that it ranks
first gets the best of the scores that these passages had, and so on. Thresholds for scores
therefore apply with and without a reranker.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Protocol

import structlog

from envelope.run import OUTSIDE, Run
from knowledge.embedding import BATCH, FASTEMBED_SUFFIX, THREADS
from knowledge.errors import RerankingFailed
from knowledge.index.port import IndexedPassage
from knowledge.index.queries import PointId
from knowledge.port import RERANKING
from knowledge.search.ranking import RankedChunk, RankedPage, list_candidates

MOST_RERANKED = 24
"""The number of candidates for a reranker; Text Embeddings Inference servers accept 32 at a
time.
"""
LONGEST_PASSAGE = 2_000
"""Maximum number of characters of a passage; a chunk has about 700."""
_LESS = 1 - 1e-9
Score = Callable[[str, list[str]], list[float]]
"""Returns a score for each passage; may raise any error."""
ReadPassages = Callable[[Sequence[PointId]], Awaitable[Mapping[PointId, IndexedPassage]]]
"""Returns passages by point; passages that no longer exist are omitted."""
RELOAD_SECONDS = 300.0

log = structlog.get_logger("knowledge")


class Reranker(Protocol):
    """Scores passages by how well they answer a question; the higher, the better.

    `name` is `MODEL@PROVIDER`.
    """

    name: str

    async def warm(self) -> None:
        """Load the model and its data if they are on this machine; raises `RerankingFailed`."""
        ...

    async def score(
        self, question: str, passages: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[float]:
        """Return a score for each passage, in order.

        Raises `knowledge.errors.RerankingFailed`, also if it exceeds its time limit.
        """
        ...

    async def close(self) -> None:
        """Release all resources."""
        ...


class CrossEncoder:
    """See `Reranker`; a `fastembed` model, which is downloaded to this machine on first use.

    The passages of one question are scored at a time, on `THREADS` threads. If the scores of a
    question are not available after `seconds`, including the waiting time, its passages are not
    reranked. If a model could not be loaded, loading is retried after `RELOAD_SECONDS`.
    """

    def __init__(
        self,
        name: str,
        load: Callable[[], Score],
        seconds: float,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.name = name
        self._load = load
        self._seconds = seconds
        self._clock = clock
        self._score: Score | None = None
        self._failure: RerankingFailed | None = None
        self._reload_at = 0.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reranking")

    async def warm(self) -> None:
        """Load the model now, however long it takes. Raises `RerankingFailed`."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._load_once)

    async def score(
        self, question: str, passages: Sequence[str], run: Run = OUTSIDE
    ) -> Sequence[float]:
        call = asyncio.get_running_loop().run_in_executor(
            self._thread, self._score_now, question, list(passages)
        )
        try:
            async with asyncio.timeout(self._seconds):
                scores = await call
        except TimeoutError as error:
            raise RerankingFailed(
                f"{self.name!r} did not return scores within {self._seconds:.3g} s"
            ) from error
        if len(scores) != len(passages):
            raise RerankingFailed(
                f"expected {len(passages)} scores from {self.name!r}, found {len(scores)}"
            )
        return scores

    async def close(self) -> None:
        """Accept no further questions."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _score_now(self, question: str, passages: list[str]) -> list[float]:
        score = self._load_once()
        try:
            return score(question, passages)
        except Exception as error:  # the runtime has its own exception classes
            reason = f"{self.name!r} could not score {len(passages)} passages: {error}"
            raise RerankingFailed(reason) from error

    def _load_once(self) -> Score:
        if self._score is not None:
            return self._score
        if self._failure is not None and self._clock() < self._reload_at:
            raise self._failure
        try:
            self._score = self._load()
        except Exception as error:  # as above
            self._reload_at = self._clock() + RELOAD_SECONDS
            self._failure = RerankingFailed(
                f"the reranker {self.name!r} could not be loaded: {error}"
            )
            raise self._failure from error
        return self._score


async def rerank(
    pages: list[RankedPage],
    question: str,
    reranker: Reranker,
    read: ReadPassages,
    run: Run = OUTSIDE,
) -> tuple[list[RankedPage], tuple[str, ...]]:
    """Return the pages in the order of the reranker, and no fallback.

    If the reranker fails, the pages are unchanged and the fallback is `RERANKING`.
    """
    best = [candidate for candidate in list_candidates(pages, MOST_RERANKED) if candidate.score > 0]
    if len(best) < 2:
        return pages, ()
    texts = await read([chunk.chunk.point for chunk in best])
    known = [chunk for chunk in best if chunk.chunk.point in texts]
    passages = [format_passage(texts[chunk.chunk.point]) for chunk in known]
    try:
        scores = await reranker.score(question, passages, run)
    except RerankingFailed as error:
        log.warning("reranking_failed", reranker=reranker.name, error=str(error))
        return pages, (RERANKING,)
    return reorder(pages, known, scores), ()


def reorder(
    pages: Sequence[RankedPage], best: Sequence[RankedChunk], scores: Sequence[float]
) -> list[RankedPage]:
    """Return the pages sorted by new scores of their best chunks; other pages follow in their
    previous order.

    `best` contains the chunks in the order of `list_candidates`, and `scores` contains one score
    for each. Equal scores keep their order.
    """
    order = sorted(range(len(best)), key=lambda at: -scores[at])
    places = _separate([chunk.score for chunk in best])
    moved = {best[at].chunk.point: score for at, score in zip(order, places, strict=True)}
    most = places[-1] * _LESS
    return sorted((_move(page, moved, most) for page in pages), key=lambda page: -page.score)


def format_passage(passage: IndexedPassage) -> str:
    """Return the text for a reranker, which consists of the location of a passage and its text."""
    place = dict.fromkeys((passage.title, *passage.chunk.heading_path))
    return f"{' > '.join(filter(None, place))}\n{passage.chunk.text}"[:LONGEST_PASSAGE]


def make_cross_encoder(name: str, seconds: float) -> CrossEncoder:
    """Return the cross-encoder `MODEL@fastembed`; an unknown name fails on loading."""
    model = name.removesuffix(FASTEMBED_SUFFIX)

    def load() -> Score:
        try:
            from fastembed.rerank.cross_encoder import TextCrossEncoder
        except ImportError as error:
            raise RerankingFailed(
                "the reranker requires fastembed: pip install 'refdesk[fastembed]'"
            ) from error
        known = sorted(model["model"] for model in TextCrossEncoder.list_supported_models())
        if model not in known:
            raise RerankingFailed(f"expected one of {', '.join(known)}, found {model!r}")
        encoder = TextCrossEncoder(model, threads=THREADS)
        return lambda question, passages: list(encoder.rerank(question, passages, BATCH))

    return CrossEncoder(name, load, seconds)


def _separate(scores: Sequence[float]) -> list[float]:
    """Return decreasing scores in which equal scores are separated, so that their order is kept."""
    falling: list[float] = []
    for score in scores:
        falling.append(min(score, falling[-1] * _LESS) if falling else score)
    return falling


def _move(page: RankedPage, moved: Mapping[PointId, float], most: float) -> RankedPage:
    """Return a page with new scores for its chunks; the scores of other chunks are at most
    `most`.
    """
    share = page.score / page.chunks[0].score if page.chunks[0].score > 0 else 1.0
    chunks = [
        RankedChunk(chunk.chunk, moved.get(chunk.chunk.point, min(chunk.score * share, most)))
        for chunk in page.chunks
    ]
    chunks.sort(key=lambda item: -item.score)
    return RankedPage(page.document, chunks[0].score, tuple(chunks))
