"""Writes `compliance/verdicts/weights.json` from reviewed documents at even positions.

    python -m benchmarks.compliance --reviews FOLDER --reviews FOLDER --cases FOLDER

Documents at odd positions are never read here: `refdesk evaluate compliance` reports both halves.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.compliance.logistic import (
    Matrix,
    choose_thresholds,
    compute_shares,
    fit_classes,
    fit_two,
)
from benchmarks.compliance.review_rows import (
    ReviewRow,
    list_citation_rows,
    list_conduct_rows,
    list_verdict_rows,
)
from compliance.verdicts.weights import WEIGHTS_FILE

RULE_RIDGE, TOPIC_RIDGE, CITATION_RIDGE, CONDUCT_RIDGE = 300.0, 100.0, 30.0, 30.0


def main() -> None:
    """Fit all models and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=Path, action="append", default=[])
    parser.add_argument("--cases", type=Path, action="append", default=[])
    chosen = parser.parse_args()
    print(f"wrote {asyncio.run(fit_all(chosen.reviews, chosen.cases))}")


async def fit_all(reviews: Sequence[Path], cases: Sequence[Path]) -> Path:
    """Fit all models and return the file."""
    verdicts = [row for folder in reviews for row in await list_verdict_rows(folder)]
    rules = [row for row in verdicts if not row.is_topic]
    topics = [row for row in verdicts if row.is_topic]
    names = list(verdicts[0].features)
    citations = [row for folder in reviews for row in await list_citation_rows(folder)]
    conduct = [row for folder in cases for row in list_conduct_rows(folder)]
    found = {
        "rules": _fit_model(rules, names, RULE_RIDGE),
        "topics": _fit_model(topics, [one for one in names if not _has_kind(one)], TOPIC_RIDGE),
        "citations": _fit_two_classes(citations, CITATION_RIDGE, is_balanced=False),
        "conduct": _fit_two_classes(conduct, CONDUCT_RIDGE, is_balanced=True),
    }
    WEIGHTS_FILE.write_text(json.dumps(found, separators=(",", ":")) + "\n", "utf-8")
    return WEIGHTS_FILE


def _has_kind(name: str) -> bool:
    """Return whether a feature speaks of the kind of a requirement: a topic has none."""
    return "*" in name or name.startswith("is.")


def _fit_model(rows: Sequence[ReviewRow], names: Sequence[str], ridge: float) -> dict[str, object]:
    values = np.array([[row.features[name] for name in names] for row in rows])
    labels = [row.label for row in rows]
    weights, bias = fit_classes(values, labels, 3, ridge)
    thresholds = choose_thresholds(compute_shares(values @ weights + bias), labels)
    return _describe(names, weights, bias, thresholds)


def _fit_two_classes(
    rows: Sequence[ReviewRow], ridge: float, *, is_balanced: bool
) -> dict[str, object]:
    names = list(rows[0].features)
    values = np.array([[row.features[name] for name in names] for row in rows])
    labels = [float(row.label) for row in rows]
    good = sum(labels)
    share = (len(labels) - good) / good if is_balanced else 1.0
    weights, bias = fit_two(values, labels, ridge, [share if one else 1.0 for one in labels])
    return {
        "bias": round(bias, 4),
        "weights": {name: round(float(one), 4) for name, one in zip(names, weights, strict=True)},
    }


def _describe(
    names: Sequence[str],
    weights: Matrix,
    bias: Matrix,
    thresholds: tuple[float, float, float],
) -> dict[str, object]:
    return {
        "bias": _round(bias),
        "weights": {name: _round(row) for name, row in zip(names, weights, strict=True)},
        "thresholds": thresholds,
    }


def _round(values: Matrix) -> list[float]:
    return [round(float(one), 4) for one in values]


if __name__ == "__main__":
    main()
