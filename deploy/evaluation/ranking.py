"""Scores rankings of pages against the correct pages."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

HITS = (1, 3, 5, 10)
CUTOFF = 5
"""The rank at which recall and nDCG end."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The found pages, best first, and the correct ones, of which there is at least one."""

    pages: Sequence[str]
    gold: Collection[str]

    @property
    def ranks(self) -> list[int]:
        """Return the ranks, from 1, of the correct pages."""
        return [rank for rank, page in enumerate(self.pages, start=1) if page in self.gold]


def compute_scores(rankings: Sequence[Ranking]) -> dict[str, float]:
    """Return the means over all rankings: hit@k, recall@5, nDCG@5 and MRR of ten."""
    figures = {f"hit@{cut}": _mean([_hit(one, cut) for one in rankings]) for cut in HITS}
    figures[f"recall@{CUTOFF}"] = _mean([_recall(one, CUTOFF) for one in rankings])
    figures[f"ndcg@{CUTOFF}"] = _mean([_ndcg(one, CUTOFF) for one in rankings])
    figures["mrr"] = _mean([_reciprocal(one, HITS[-1]) for one in rankings])
    return {"questions": len(rankings), **figures}


def _hit(ranking: Ranking, cut: int) -> float:
    return float(any(rank <= cut for rank in ranking.ranks))


def _recall(ranking: Ranking, cut: int) -> float:
    return sum(rank <= cut for rank in ranking.ranks) / len(ranking.gold)


def _ndcg(ranking: Ranking, cut: int) -> float:
    """Return the normalised discounted gain of Järvelin and Kekäläinen (2002), relevance 0 or 1."""
    gain = sum(1 / math.log2(1 + rank) for rank in ranking.ranks if rank <= cut)
    best = sum(1 / math.log2(1 + rank) for rank in range(1, min(len(ranking.gold), cut) + 1))
    return gain / best


def _reciprocal(ranking: Ranking, cut: int) -> float:
    return next((1 / rank for rank in ranking.ranks if rank <= cut), 0.0)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
