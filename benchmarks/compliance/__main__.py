"""Writes `compliance/verdicts/weights.json` from reviewed documents at even positions.

    python -m benchmarks.compliance --reviews FOLDER --reviews FOLDER --cases FOLDER

Documents at odd positions are never read here: `refdesk evaluate compliance` reports both halves.
"""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
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
from compliance.verdicts.weights import WEIGHTS_FILE, make_key

GENERAL_RIDGE, CHECKLIST_RIDGE, CITATION_RIDGE, CONDUCT_RIDGE = 300.0, 100.0, 30.0, 30.0
SLOPES = (
    "score1", "coverage", "cosine", "rare", "has_predicate", "predicate_count", "predicate.ban",
    "predicate.permission", "predicate.negated", "predicate.exception", "focus_count", "has_focus",
    "known_weight", "missing_least", "passages",
)  # fmt: skip


def main() -> None:
    """Fit all models and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reviews", type=Path, action="append", default=[])
    parser.add_argument("--cases", type=Path, action="append", default=[])
    chosen = parser.parse_args()
    print(f"wrote {asyncio.run(fit_all(chosen.reviews, chosen.cases))}")


async def fit_all(reviews: Sequence[Path], cases: Sequence[Path]) -> Path:
    """Fit all models and return the file."""
    verdicts = {folder.name: await list_verdict_rows(folder) for folder in reviews}
    citations = [row for folder in reviews for row in await list_citation_rows(folder)]
    conduct = [row for folder in cases for row in list_conduct_rows(folder)]
    pooled = [row for rows in verdicts.values() for row in rows]
    found = {
        "general": _fit_model(pooled, list(pooled[0].features), GENERAL_RIDGE),
        "checklists": [_fit_checklist(name, rows) for name, rows in verdicts.items()],
        "citations": _fit_two_classes(citations, CITATION_RIDGE, is_balanced=False),
        "conduct": _fit_two_classes(conduct, CONDUCT_RIDGE, is_balanced=True),
    }
    WEIGHTS_FILE.write_text(json.dumps(found, separators=(",", ":")) + "\n", "utf-8")
    return WEIGHTS_FILE


def _fit_model(rows: Sequence[ReviewRow], names: Sequence[str], ridge: float) -> dict[str, object]:
    values = np.array([[row.features[name] for name in names] for row in rows])
    labels = [row.label for row in rows]
    weights, bias = fit_classes(values, labels, 3, ridge)
    thresholds = choose_thresholds(compute_shares(values @ weights + bias), labels)
    return _describe(names, weights, bias, thresholds)


def _fit_checklist(name: str, rows: Sequence[ReviewRow]) -> dict[str, object]:
    names = [one for one in rows[0].features if "*" not in one]
    texts = list(dict.fromkeys(row.requirement for row in rows))
    centres = {
        slope: (float(np.mean(own)), float(np.std(own)) + 1e-6)
        for slope in SLOPES
        if (own := [row.features[slope] for row in rows])
    }
    block = np.array([_place_in_block(row, texts, centres) for row in rows])
    base = np.array([[row.features[one] for one in names] for row in rows])
    labels = [row.label for row in rows]
    values = np.c_[base, block]
    weights, bias = fit_classes(values, labels, 3, CHECKLIST_RIDGE, loose=block.shape[1])
    thresholds = choose_thresholds(compute_shares(values @ weights + bias), labels)
    calibrations = weights[len(names) :].reshape(len(texts), len(SLOPES) + 1, 3)
    return {
        "name": name,
        "model": _describe(names, weights[: len(names)], bias, thresholds),
        "centres": {slope: [round(one, 4) for one in pair] for slope, pair in centres.items()},
        "requirements": {
            make_key(text): [_round(row) for row in calibrations[at]]
            for at, text in enumerate(texts)
        },
    }


def _place_in_block(
    row: ReviewRow, texts: Sequence[str], centres: Mapping[str, tuple[float, float]]
) -> list[float]:
    values = [0.0] * (len(texts) * (len(SLOPES) + 1))
    start = texts.index(row.requirement) * (len(SLOPES) + 1)
    values[start] = 1.0
    for at, (slope, (mean, deviation)) in enumerate(centres.items(), start=start + 1):
        values[at] = (row.features[slope] - mean) / deviation
    return values


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
