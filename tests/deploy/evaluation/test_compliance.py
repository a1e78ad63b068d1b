"""The suite `compliance`: three kinds of folders, and the figures of halves."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from compliance.verdicts.verdict import Status
from deploy.evaluation.compliance.checklist_suite import evaluate
from deploy.evaluation.compliance.review_figures import (
    JudgedVerdict,
    compute_separation,
    compute_verdict_figures,
)
from deploy.evaluation.questions import UnknownFormatError


def write_rows(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    (folder / name).write_text("\n".join(json.dumps(row) for row in rows), "utf-8")


def write_agreements(folder: Path) -> None:
    text = "The receiver shall return all documents. Fees are paid in May."
    write_rows(
        folder,
        "requirements.jsonl",
        [{"req_id": "r1", "requirement": "The receiver shall return documents."}],
    )
    write_rows(
        folder,
        "contracts.jsonl",
        [
            {"doc_id": name, "text": text, "spans": [[0, 40], [41, len(text)]]}
            for name in ("one", "two")
        ],
    )
    write_rows(
        folder,
        "labels.jsonl",
        [
            {"doc_id": name, "req_id": "r1", "label": "Entailment", "evidence": [0]}
            for name in ("one", "two")
        ],
    )
    write_rows(
        folder,
        "citations.jsonl",
        [
            {"doc_id": "one", "req_id": "r1", "claim": "The receiver shall return documents.",
             "cited_span": span, "verdict": verdict}
            for span, verdict in ((0, "supports"), (1, "unrelated"))
        ],
    )  # fmt: skip


async def test_agreements_are_recognised_by_their_files(tmp_path: Path) -> None:
    write_agreements(tmp_path)

    figures: Any = await evaluate(tmp_path)

    assert figures["kind"] == "agreements"
    assert figures["verdicts"]["all"]["verdicts"] == 2
    assert figures["verdicts"]["odd positions"]["verdicts"] == 1
    assert figures["verdicts"]["all"]["evidence recall"] == 1.0
    assert figures["citations"]["all"] == {"citations": 2, "AUC": 1.0}


async def test_labels_change_no_verdict(tmp_path: Path) -> None:
    write_agreements(tmp_path)
    before: Any = await evaluate(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    write_rows(tmp_path, "labels.jsonl", [{**row, "label": "NotMentioned"} for row in rows])

    after: Any = await evaluate(tmp_path)

    right = before["verdicts"]["all"]["accuracy"]
    assert right in {0.0, 1.0}
    assert after["verdicts"]["all"]["accuracy"] in {0.0, 1.0 - right}


async def test_cases_are_recognised_by_their_files(tmp_path: Path) -> None:
    write_rows(
        tmp_path,
        "units.jsonl",
        [
            {"unit_id": "1", "section": "1", "crumbs": [], "text": "Records may go to the police."},
            {"unit_id": "2", "section": "2", "crumbs": [], "text": "Fees are set in spring."},
        ],
    )
    case = {"text": "The police asked.", "label": "Permit", "gold_sections": ["1"]}
    write_rows(tmp_path, "cases.jsonl", [{"case_id": "c1", **case}])

    figures: Any = await evaluate(tmp_path)

    assert figures["kind"] == "cases"
    assert figures["all"]["sections recall@5"] == 1.0


async def test_the_units_of_a_law_are_recognised_by_their_file(tmp_path: Path) -> None:
    units = [
        {"doc": "law", "unit_id": "1", "text": "The keeper shall answer. Nobody may be charged."},
        {"doc": "law", "unit_id": "2", "text": "This law is about registers."},
    ]
    write_rows(tmp_path, "units.jsonl", units)

    figures: Any = await evaluate(tmp_path)

    assert figures["kind"] == "rules"
    assert figures["units accounted for"] == 2
    assert figures["of these with a requirement"] == 1.0
    assert figures["requirements that their place holds"] == 1.0


async def test_another_folder_is_refused_by_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match="expected contracts"):
        await evaluate(tmp_path)


def test_figures_of_verdicts_count_gaps_both_ways() -> None:
    judged = [
        JudgedVerdict(0, Status.GAP, Status.GAP, 0.9, None),
        JudgedVerdict(0, Status.GAP, Status.COMPLIANT, 0.6, None),
        JudgedVerdict(1, Status.COMPLIANT, Status.COMPLIANT, 0.8, 0.5),
    ]

    figures = compute_verdict_figures(judged)

    assert figures["gaps, recall"] == 0.5
    assert figures["gaps, precision"] == 1.0
    assert figures["evidence recall"] == 0.5


def test_a_score_that_says_nothing_separates_nothing() -> None:
    assert compute_separation([0.5], [0.5]) == 0.5
    assert compute_separation([], [0.5]) is None
