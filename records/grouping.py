"""Groups texts by the similarity of their vectors."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]

CLOSENESS = 0.4
"""The average similarity within a group, from 0 (like unrelated questions) to 1 (equal questions),
so that it is independent of the embedding model. It was chosen with `python -m benchmarks.quality
gaps`.
"""


def group_vectors(vectors: Matrix, least: float) -> list[int]:
    """Return the group number of each vector, using average linkage down to a similarity of
    `least`.

    `vectors` must have length one. The nearest-neighbour chain algorithm gives the same groups as
    repeatedly merging the closest pair, in quadratic time (F. Murtagh, A survey of recent advances
    in hierarchical clustering algorithms, The Computer Journal 26, 1983).
    """
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -np.inf)
    members = {at: [at] for at in range(len(vectors))}
    waiting, chain = set(members), list[int]()
    while waiting:
        chain = chain or [min(waiting)]
        last, before = chain[-1], chain[-2:-1]
        nearest = int(likeness[last].argmax())
        if before and likeness[last, before[0]] >= likeness[last, nearest]:
            nearest = before[0]
        if likeness[last, nearest] < least:
            # Nothing is similar enough to the last one, and merging others does not change that.
            chain.pop()
            waiting.remove(last)
        elif [nearest] == before:
            chain = chain[:-2]
            waiting.remove(last)
            _merge(likeness, nearest, last, len(members[nearest]), len(members[last]))
            members[nearest] += members.pop(last)
        else:
            chain.append(nearest)
    labels = [0] * len(vectors)
    for label, group in enumerate(members.values()):
        for at in group:
            labels[at] = label
    return labels


def find_least(unrelated: Matrix, closeness: float = CLOSENESS) -> float:
    """Return the minimum similarity within a group for a model, given vectors of unrelated
    questions.
    """
    count = len(unrelated)
    total = float((unrelated @ unrelated.T).sum()) - count
    usual = total / max(1, count * (count - 1))
    return usual + closeness * (1 - usual)


def normalise(vector: Sequence[float]) -> Matrix:
    """Scale a vector to length one."""
    made = np.asarray(vector, dtype=np.float32)
    length = math.sqrt(float(made @ made))
    return made / np.float32(length or 1.0)


def _merge(likeness: Matrix, at: int, other: int, size: int, other_size: int) -> None:
    """Merge two groups, averaging their similarities to the other groups."""
    row = (size * likeness[at] + other_size * likeness[other]) / (size + other_size)
    row[at] = -np.inf
    likeness[at] = likeness[:, at] = row
    likeness[other] = likeness[:, other] = -np.inf
