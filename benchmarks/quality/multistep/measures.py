"""The figures of the suite `multistep`, without a language model."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

Figures = dict[str, object]


@dataclass(frozen=True, slots=True)
class Measured:
    """One task with the pages that a way found, in their order."""

    part: str
    gold: frozenset[str]
    pages: tuple[str, ...]
    answerable: bool | None = None


def measure_parts(
    measured: Sequence[Measured], compute: Callable[[Sequence[Measured]], Figures]
) -> Figures:
    """Return figures of all tasks and of each part, and of every other task.

    Tasks at odd positions are those that nothing was fitted on.
    """
    parts = sorted({one.part for one in measured})
    figures: Figures = {"all": compute(measured)}
    if len(parts) > 1:
        figures |= {part: compute([one for one in measured if one.part == part]) for part in parts}
    odd = measured[1::2]
    figures["odd positions"] = {"all": compute(odd)} | {
        part: compute([one for one in odd if one.part == part]) for part in parts if len(parts) > 1
    }
    return figures


def compute_retrieval(measured: Sequence[Measured], *, k: int) -> Figures:
    """Return the number of tasks, mean recall, and the share with every correct page among k."""
    asked = [one for one in measured if one.gold and one.answerable is not False]
    return {
        "tasks": len(asked),
        f"recall@{k}": _mean([count_recall(one.gold, one.pages[:k]) for one in asked]),
        f"all@{k}": _mean([float(one.gold <= set(one.pages[:k])) for one in asked]),
    }


def count_recall(gold: Collection[str], found: Collection[str]) -> float:
    """Return the share of `gold` in `found`."""
    return len(set(gold) & set(found)) / len(gold)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
