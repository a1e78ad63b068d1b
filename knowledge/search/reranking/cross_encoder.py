"""A cross-encoder of `fastembed` on this machine, which downloads it into a folder."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from envelope.run import OUTSIDE, Run
from knowledge.embedding import BATCH, FASTEMBED_SUFFIX, THREADS
from knowledge.errors import RerankingFailed

Score = Callable[[str, list[str]], list[float]]
"""Returns a score for each passage; may raise anything."""
RELOAD_SECONDS = 300.0


class CrossEncoder:
    """See `knowledge.search.reranking.reranker.Reranker`; the model is loaded when first used.

    One question is scored at a time, on `THREADS` threads; a question that waits longer than
    `seconds` for its turn and its scores goes without. A model that could not be loaded is loaded
    again after `RELOAD_SECONDS`.
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
        """Load the model now, however long it takes; raises `RerankingFailed`."""
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
                f"expected scores of {self.name!r} within {self._seconds:.3g} s, found none"
            ) from error
        if len(scores) != len(passages):
            raise RerankingFailed(
                f"expected {len(passages)} scores of {self.name!r}, found {len(scores)}"
            )
        return scores

    async def close(self) -> None:
        """Take no further question."""
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


def make_cross_encoder(name: str, seconds: float) -> CrossEncoder:
    """Return the cross-encoder `MODEL@fastembed`; a name that nobody knows fails when loaded."""
    model = name.removesuffix(FASTEMBED_SUFFIX)

    def load() -> Score:
        try:
            from fastembed.rerank.cross_encoder import TextCrossEncoder
        except ImportError as error:
            raise RerankingFailed(
                "expected fastembed, found none: pip install 'refdesk[fastembed]'"
            ) from error
        known = sorted(one["model"] for one in TextCrossEncoder.list_supported_models())
        if model not in known:
            raise RerankingFailed(f"expected one of {', '.join(known)}, found {model!r}")
        encoder = TextCrossEncoder(model, threads=THREADS)
        return lambda question, passages: list(encoder.rerank(question, passages, BATCH))

    return CrossEncoder(name, load, seconds)
