"""The figures of questions that ask for the documents of a portfolio."""

from collections.abc import Sequence
from dataclasses import dataclass

from deploy.evaluation.multistep.measures import Figures, compute_changes

NONE = "none"
COUNT = "count"
"""The kinds of questions to which no document, or a number of documents, is the answer."""


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """One question with the correct documents of its portfolio and those that a way selected."""

    kind: str
    portfolio: str
    gold: frozenset[str]
    found: frozenset[str]


def compute_sets(measured: Sequence[MeasuredSet]) -> Figures:
    """Return the figures by kind, of all portfolios and of each one.

    For most kinds it is the mean F1 of the sets; for `none` the share of questions to which no
    document was selected; for `count` the mean difference of the numbers.
    """
    kinds = sorted({one.kind for one in measured})
    portfolios = sorted({one.portfolio for one in measured})
    return {
        kind: {
            "questions": sum(one.kind == kind for one in measured),
            "all": _compute(kind, measured),
            **{name: _compute(kind, [one for one in measured if one.portfolio == name])
               for name in portfolios},
        }
        for kind in kinds
    }  # fmt: skip


def _compute(kind: str, measured: Sequence[MeasuredSet]) -> float | None:
    own = [one for one in measured if one.kind == kind]
    if not own:
        return None
    return round(sum(map(_rate, own)) / len(own), 4)


def _rate(one: MeasuredSet) -> float:
    if one.kind == NONE:
        return float(not one.found)
    if one.kind == COUNT:
        return float(abs(len(one.gold) - len(one.found)))
    return compute_changes(one.gold, one.found)
