"""The context of a specialist: last turns, the original question, outputs, documents."""

import json

from agents.review.compliance import Reads
from agents.review.verdicts import add_context
from envelope.conversation import Turn
from envelope.specialists import (
    Extracted,
    ExtractedPassage,
    ReviewedDocument,
    StoredChecklist,
)
from llm.tasks.review import SpecialistInputs

EXTRACTED = Extracted(
    analysis="a" * 5_000,
    documents=(ReviewedDocument(document_id="c", title="Contract", language="en", units=9),),
    against=(ReviewedDocument(document_id="l", title="Act", language="cs", units=3),),
    chunks_data=(ExtractedPassage(chunk_id="c#1", document_id="c", title="C", content="TEXT"),),
    citations=("Contract > 1 Subject",),
)
READS = Reads(
    canonical_question="Does the contract comply with the act?",
    text="and does it comply?",
    history=tuple(Turn(speaker="user", text=f"turn {number} " + "x" * 900) for number in range(5)),
    extracted=EXTRACTED,
    checklist=StoredChecklist(
        reference="secret-name", target_law="Act", requirements=8, units_read=3
    ),
)


def test_a_specialist_gets_turns_question_outputs_and_documents_compactly() -> None:
    given = add_context(SpecialistInputs(question=READS.canonical_question), READS)

    assert given.original_query == "and does it comply?"
    assert [turn[:12] for turn in given.recent_turns] == [
        f"user: turn {number}" for number in (2, 3, 4)
    ]
    assert all(len(turn) < 400 for turn in given.recent_turns)
    assert given.retrieved == (
        "document: Contract (9 units, en)",
        "rules: Act (3 units, cs)",
        "passage: Contract > 1 Subject",
    )
    outputs = json.loads(given.previous_outputs)
    assert outputs["checklist"] == {"target_law": "Act", "requirements": 8, "units_read": 3}
    assert len(outputs["extracted"]["analysis"]) < 400
    assert "retrieval_method" not in outputs["extracted"]
    assert "TEXT" not in given.previous_outputs
    assert ", " not in given.previous_outputs[:40], "compact JSON"


def test_without_others_there_is_no_context() -> None:
    alone = SpecialistInputs(question="?")

    assert add_context(alone, None) is alone
    assert add_context(alone, Reads(canonical_question="?")) == alone
