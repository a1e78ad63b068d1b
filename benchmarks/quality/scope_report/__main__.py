"""Reports scope and answer, ask or refuse, leaving out one collection at a time.

`python -m benchmarks.quality.scope_report --data FOLDER --features FILE [--write]`

`FOLDER` holds the public sets that `benchmarks.quality.scope_report.corpora` names. `FILE` keeps
the features of all searches: it is made when it is missing, which takes minutes; with it a report
takes seconds. `--write` replaces the table in docs/measurements/evaluation.md.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from benchmarks.quality.scope_report.corpora import compose_collections
from benchmarks.quality.scope_report.features import (
    Measured,
    measure_collections,
    read_features,
    write_features,
)
from benchmarks.quality.scope_report.leave_out import make_table, replace_table, report_collections
from knowledge.answerability import BY_COSINES, BY_WORDS, AssessmentWeights, assess, assess_by_words

PAGE = Path(__file__).parents[3] / "docs" / "measurements" / "evaluation.md"


def main() -> None:
    """Run the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality.scope_report")
    parser.add_argument("--data", required=True, type=Path, metavar="FOLDER")
    parser.add_argument("--features", required=True, type=Path, metavar="FILE")
    parser.add_argument("--write", action="store_true", help=f"write the table to {PAGE.name}")
    chosen = parser.parse_args()
    if not chosen.features.is_file():
        write_features(chosen.features, _measure(chosen.data))
    measured = read_features(chosen.features)
    reports = report_collections(measured, assess, *_name_features(BY_COSINES))
    by_words = report_collections(measured, assess_by_words, *_name_features(BY_WORDS))
    table = make_table(reports, by_words)
    print(table)
    if chosen.write:
        PAGE.write_text(replace_table(PAGE.read_text("utf-8"), table), "utf-8")


def _measure(data: Path) -> list[Measured]:
    collections = compose_collections(data)
    return asyncio.run(measure_collections(collections, lambda line: print(line, file=sys.stderr)))


def _name_features(weights: AssessmentWeights) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(weights.covered), tuple(weights.asked)


if __name__ == "__main__":
    main()
