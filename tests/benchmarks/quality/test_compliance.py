"""The suite `compliance`: two kinds of folders, and the figures of halves."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.quality.compliance import evaluate
from cli.evaluation.questions import UnknownFormatError

FILLER = "Fees are paid in May. The court sits in the capital. Visitors wear a badge. "


def write_rows(folder: Path, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
    (folder / name).write_text("\n".join(json.dumps(row) for row in rows), "utf-8")


def write_agreements(folder: Path, *evidence: list[int]) -> None:
    """Write a contract for each list of evidence: span 0 is about the requirement, 1 is not."""
    rule = "The receiver shall return all documents."
    text = f"{rule} {FILLER * 40}"
    requirement = {"req_id": "r1", "requirement": "The receiver shall return documents."}
    write_rows(folder, "requirements.jsonl", [requirement])
    spans = [[0, len(rule)], [len(text) - 200, len(text)]]
    names = [f"contract-{at}" for at in range(len(evidence))]
    write_rows(
        folder,
        "contracts.jsonl",
        [{"doc_id": name, "text": text, "spans": spans} for name in names],
    )
    labels = [
        {"doc_id": name, "req_id": "r1", "label": "Entailment", "evidence": own}
        for name, own in zip(names, evidence, strict=True)
    ]
    write_rows(folder, "labels.jsonl", labels)


async def test_agreements_are_recognised_by_their_files_and_measured_by_halves(
    tmp_path: Path,
) -> None:
    write_agreements(tmp_path, [0], [1], [])

    figures: Any = await evaluate(tmp_path)

    assert figures["kind"] == "agreements"
    assert figures["even positions"]["right passage among three"] == 1.0
    assert figures["odd positions"]["right passage among three"] == 0.0
    assert figures["all"]["requirements with evidence"] == 2


async def test_notices_are_recognised_by_their_files(tmp_path: Path) -> None:
    passages = [{"i": at, "kind": "text", "crumbs": [], "text": text} for at, text in
                enumerate(("We share data with banks.", *FILLER.split(". ")[:3]))]  # fmt: skip
    write_rows(tmp_path, "policies.jsonl", [{"doc_id": "p", "passages": passages}])
    write_rows(
        tmp_path, "requirements.jsonl",
        [{"req_id": "g", "name": "Recipients", "legal_text": "With whom data are shared."}],
    )  # fmt: skip
    write_rows(tmp_path, "labels.jsonl", [{"doc_id": "p", "req_id": "g", "evidence": [0]}])

    figures: Any = await evaluate(tmp_path)

    assert figures["kind"] == "notices"
    assert figures["all"]["evidence recall"] == 1.0


async def test_another_folder_is_refused_by_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormatError, match="expected contracts"):
        await evaluate(tmp_path)
