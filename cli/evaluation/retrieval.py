"""Measures search results, which is the suite `retrieval`.

The corpus is ingested into a temporary index in the same way as by `refdesk ingest`. The questions
are searched for with the searcher that serves users, with all levels, with each level alone, and
with the configured reranker, if there is one.
"""

import math
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cli.evaluation.questions import GoldQuestion, corpus_of, questions_of
from config.settings import load_settings
from deploy.assembly.knowledge import make_reranker
from knowledge.embedding import Embedder, local_embedder
from knowledge.index.embedded import open_embedded
from knowledge.index.port import Index
from knowledge.index.qdrant import Identity
from knowledge.ingestion import ingest
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.isolation.messages import ReadingLimits
from knowledge.isolation.reader_process import ReaderProcess
from knowledge.port import RERANKING, Findings, Searcher, SearchRequest
from knowledge.rule_descriptions import RuleDescriber
from knowledge.search.question_vectors import RememberingEmbedder
from knowledge.search.ranking import weigh_levels_alone
from knowledge.search.reranking import Reranker
from knowledge.search.searcher import LevelSearcher

# A page gives five chunks at most: enough for ten pages.
LIMIT = 50

Figures = dict[str, object]
HITS = (1, 3, 5, 10)
CUTOFF = 5
"""The rank cutoff for recall and nDCG."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The pages that were found, best first, and the correct pages, of which there is at least
    one.
    """

    pages: Sequence[str]
    gold: Collection[str]

    @property
    def ranks(self) -> list[int]:
        """The 1-based ranks of the correct pages."""
        return [rank for rank, page in enumerate(self.pages, start=1) if page in self.gold]


class _Counting:
    """A searcher that counts the failures of its reranker."""

    def __init__(self, searcher: Searcher) -> None:
        self.failed = 0
        self._searcher = searcher

    async def search(self, request: SearchRequest) -> Findings:
        findings = await self._searcher.search(request)
        self.failed += RERANKING in findings.fallbacks
        return findings


async def evaluate(
    data: Path, *, embedder: Embedder | None = None, reranker: Reranker | None = None
) -> Figures:
    """Return the measurements for a folder; raises `UnknownFormatError` if the folder has an
    unknown format.
    """
    corpus = corpus_of(data)
    questions = questions_of(data, limit=LIMIT)
    model = local_embedder() if embedder is None else embedder
    reranks = make_reranker(load_settings()) if reranker is None else reranker
    with tempfile.TemporaryDirectory(prefix="refdesk-evaluate-") as folder:
        identity = Identity("evaluate", "retrieval", model.name, model.dimensions)
        index = await open_embedded(Path(folder), identity)
        try:
            result = await ingest_corpus(corpus, index, model)
            return {
                "suite": "retrieval",
                "data": data.name,
                **await _counts(index, questions, result),
                **await _measure(index, model, questions),
                **(await _measure_reranked(index, model, questions, reranks) if reranks else {}),
            }
        finally:
            if reranks is not None:
                await reranks.close()
            await index.close()


async def ingest_corpus(
    corpus: Sequence[Path], index: Index, embedder: Embedder
) -> IngestionResult:
    """Ingest the files of an evaluation in the same way as `refdesk ingest`."""
    with ReaderProcess(ReadingLimits()) as reader:
        return await ingest(
            corpus,
            index,
            embedder,
            RuleDescriber(),
            [reader],
            PlainReport(lambda _line: None),
            language_of=lambda _text: "en",
        )


def compute_scores(rankings: Sequence[Ranking]) -> dict[str, float]:
    """Return the means over all rankings: hit@k, recall@5, nDCG@5, and MRR@10."""
    figures = {f"hit@{cut}": _mean([_hit(ranking, cut) for ranking in rankings]) for cut in HITS}
    figures[f"recall@{CUTOFF}"] = _mean([_recall(ranking, CUTOFF) for ranking in rankings])
    figures[f"ndcg@{CUTOFF}"] = _mean([_ndcg(ranking, CUTOFF) for ranking in rankings])
    figures["mrr"] = _mean([_reciprocal(ranking, HITS[-1]) for ranking in rankings])
    return {"questions": len(rankings), **figures}


async def _counts(
    index: Index, questions: Sequence[GoldQuestion], result: IngestionResult
) -> Figures:
    info = await index.info()
    return {
        "documents": info.documents,
        "chunks": info.chunks,
        "questions": len(questions),
        "unreadable": len(result.failed),
        "ingestion": {
            "seconds": round(result.seconds, 1),
            "chunks_per_second": round(result.chunks / max(result.seconds, 1e-9), 1),
        },
    }


async def _measure(index: Index, model: Embedder, questions: Sequence[GoldQuestion]) -> Figures:
    searcher = LevelSearcher(index, model)
    await searcher.warm()
    whole = await _measure_milliseconds(searcher, questions[:50])
    model = RememberingEmbedder(model)
    searcher = LevelSearcher(index, model)
    for asked in questions:
        await searcher.search(asked.request)
    rankings, milliseconds = await _rank(searcher, questions)
    return {
        "milliseconds": {
            "search": _spread(milliseconds),
            "search_and_embedding": _spread(whole),
        },
        "fused": compute_scores(rankings),
        "levels": {
            name: compute_scores(
                (await _rank(LevelSearcher(index, model, weights=alone), questions))[0]
            )
            for name, alone in weigh_levels_alone().items()
        },
        "languages": _by(questions, rankings, lambda asked: asked.language),
        "kinds": _by(questions, rankings, lambda asked: asked.kind),
    }


async def _measure_reranked(
    index: Index, model: Embedder, questions: Sequence[GoldQuestion], reranker: Reranker
) -> Figures:
    """Return the scores with a reranker, and how many searches it left unchanged."""
    await reranker.warm()
    asked = [
        replace(question, request=replace(question.request, reranked=True))
        for question in questions
    ]
    searcher = _Counting(LevelSearcher(index, model, reranker=reranker))
    rankings, milliseconds = await _rank(searcher, asked)
    return {
        "reranked": {
            **compute_scores(rankings),
            "failed": searcher.failed,
            "milliseconds": _spread(milliseconds),
        }
    }


async def _rank(
    searcher: Searcher, questions: Sequence[GoldQuestion]
) -> tuple[list[Ranking], list[float]]:
    rankings: list[Ranking] = []
    milliseconds: list[float] = []
    for asked in questions:
        started = time.perf_counter()
        findings = await searcher.search(asked.request)
        milliseconds.append(1000 * (time.perf_counter() - started))
        rankings.append(Ranking(_pages(findings), asked.gold))
    return rankings, milliseconds


async def _measure_milliseconds(
    searcher: Searcher, questions: Sequence[GoldQuestion]
) -> list[float]:
    return (await _rank(searcher, questions))[1]


def _pages(findings: Findings) -> list[str]:
    return list(dict.fromkeys(hit.page for hit in findings.hits))


def _by(
    questions: Sequence[GoldQuestion],
    rankings: Sequence[Ranking],
    key: Callable[[GoldQuestion], str],
) -> dict[str, dict[str, float]]:
    groups: dict[str, list[Ranking]] = {}
    for asked, ranking in zip(questions, rankings, strict=True):
        groups.setdefault(key(asked), []).append(ranking)
    return {name: compute_scores(groups[name]) for name in sorted(groups) if name}


def _spread(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    ordered = sorted(milliseconds)
    return {
        "p50": round(ordered[len(ordered) // 2], 2),
        "p95": round(ordered[min(len(ordered) * 95 // 100, len(ordered) - 1)], 2),
    }


def _hit(ranking: Ranking, cut: int) -> float:
    return float(any(rank <= cut for rank in ranking.ranks))


def _recall(ranking: Ranking, cut: int) -> float:
    return sum(rank <= cut for rank in ranking.ranks) / len(ranking.gold)


def _ndcg(ranking: Ranking, cut: int) -> float:
    """Return the normalized discounted cumulative gain of Järvelin and Kekäläinen (2002), with
    relevance 0 or 1.
    """
    gain = sum(1 / math.log2(1 + rank) for rank in ranking.ranks if rank <= cut)
    best = sum(1 / math.log2(1 + rank) for rank in range(1, min(len(ranking.gold), cut) + 1))
    return gain / best


def _reciprocal(ranking: Ranking, cut: int) -> float:
    return next((1 / rank for rank in ranking.ranks if rank <= cut), 0.0)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
