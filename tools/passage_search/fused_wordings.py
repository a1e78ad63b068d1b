"""Fuses the passages that several wordings of one search have found."""

from collections.abc import Sequence

from knowledge.port import Findings, Hit

_OWN_WEIGHT, _OTHER_WEIGHT = 2.0, 1.0
"""Half of the weight of the words that were asked for: an invented passage may be wrong."""
_RANK_OFFSET = 60
"""The usual constant of reciprocal rank fusion (Cormack et al. 2009)."""


def fuse_wordings(own: Findings, others: Sequence[Findings], limit: int) -> tuple[Hit, ...]:
    """Return the best passages of all wordings, by weighted reciprocal ranks."""
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    for weight, findings in ((_OWN_WEIGHT, own), *((_OTHER_WEIGHT, one) for one in others)):
        for rank, hit in enumerate(findings.hits):
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + weight / (_RANK_OFFSET + rank)
            hits.setdefault(hit.chunk_id, hit)
    best = sorted(scores, key=lambda name: -scores[name])[:limit]
    return tuple(hits[name] for name in best)
