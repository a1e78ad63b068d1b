"""Gaps of five kinds, risks by rank, and a document in five dimensions."""

from datetime import date

from compliance.assessment.document_kind import classify_text
from compliance.assessment.gaps import synthesize_gaps
from compliance.assessment.risk import RiskCategory, rank_risks
from compliance.auditing.citation_audit import audit_citations
from compliance.auditing.citation_reading import read_citations
from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import RuleUnit
from compliance.verdicts.passages import PreparedDocument, split_passages
from compliance.verdicts.review import review_document
from tests.compliance.conftest import EXAMPLE

TODAY = date(2030, 1, 1)


def prepare(text: str) -> PreparedDocument:
    return PreparedDocument(split_passages([RuleUnit("d", "1", text)]))


def test_gaps_of_the_example_are_regulatory(law: list[RuleUnit], faulty: PreparedDocument) -> None:
    requirements = extract_requirements(law).requirements
    verdicts = review_document(requirements, faulty).verdicts

    found = synthesize_gaps(requirements, verdicts, document=faulty, today=TODAY)

    assert [(one.kind, one.requirement_ids) for one in found] == [
        ("regulatory", ("REQ-009",)),
        ("regulatory", ("REQ-010",)),
    ]


def test_a_heading_that_is_only_partly_fulfilled_is_a_gap_of_coverage() -> None:
    text = "The keeper shall encrypt backups. The keeper shall paint the fence yellow."
    requirements = extract_requirements([RuleUnit("l", "1", text, ("Care",))]).requirements
    document = prepare("The keeper shall encrypt backups.")
    verdicts = review_document(requirements, document).verdicts

    found = synthesize_gaps(requirements, verdicts)

    assert [one.kind for one in found] == ["regulatory", "coverage"]
    assert found[1].summary == "1 of 2 requirements have a passage: Care"


def test_passages_that_contradict_each_other_are_a_gap_of_consistency() -> None:
    document = prepare(
        "The supplier may disclose confidential information to employees. "
        "The supplier shall not disclose confidential information to employees."
    )

    found = synthesize_gaps((), (), document=document)

    assert [one.kind for one in found] == ["consistency"]
    assert len(found[0].places) == 2


def test_a_claim_without_evidence_is_a_gap_of_citation() -> None:
    audit = audit_citations(read_citations("Anybody may ask for a copy."), ())

    found = synthesize_gaps((), (), audit=audit)

    assert [(one.kind, one.summary) for one in found] == [
        ("citation", "no source: Anybody may ask for a copy.")
    ]


def test_a_date_that_has_passed_is_a_temporal_gap() -> None:
    document = prepare("The certificate is valid until 2026-05-01. The next audit is by 2040.")

    found = synthesize_gaps((), (), document=document, today=TODAY)

    assert [one.kind for one in found] == ["temporal"]
    assert "2026-05-01" in found[0].summary


def test_a_date_that_does_not_exist_is_no_date() -> None:
    document = prepare("The code is valid from 2026-99-99 onwards.")

    assert [one.kind for one in synthesize_gaps((), (), document=document, today=TODAY)] == [
        "temporal"
    ]


def test_risks_are_ranked_and_a_violation_of_a_ban_is_the_greatest(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    requirements = extract_requirements(law).requirements

    found = rank_risks(requirements, review_document(requirements, faulty).verdicts)

    assert len(found) == 5
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert found[0].requirement_id in {"REQ-004", "REQ-005", "REQ-006"}
    assert all(one.mitigation and one.category in RiskCategory for one in found)


def test_a_contract_is_classified_in_five_dimensions() -> None:
    text = (EXAMPLE / "clean_contract.md").read_text("utf-8")

    found = classify_text(text, "en")

    assert found.document_type.value == "contract"
    assert found.domain.value == "data protection"
    assert found.complexity == "low"
    assert found.language == "en"
    assert found.sensitivity.value == "public"


def test_one_mention_of_health_data_is_the_most_sensitive_class() -> None:
    found = classify_text("Confidential. The clinic stores health data.", "en")

    assert found.sensitivity.value == "special categories"


def test_an_empty_document_has_no_class() -> None:
    found = classify_text("", "en")

    assert found.document_type.value == "other"
    assert found.complexity_score == 0
