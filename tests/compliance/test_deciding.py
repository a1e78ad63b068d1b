"""Verdicts: what a document does about a requirement, and where it was read."""

import json

import pytest

from compliance.errors import EmptyDocumentError
from compliance.requirements.requirement import RuleUnit
from compliance.verdicts.deciding import decide_verdict, select_within_budget
from compliance.verdicts.features import compute_features
from compliance.verdicts.matching import make_query, match_passages
from compliance.verdicts.passages import PreparedDocument, split_passages
from compliance.verdicts.verdict import Status, Verdict
from compliance.verdicts.weights import WEIGHTS_FILE
from compliance.wording.cues import RuleKind

CONTRACT = """1. The supplier keeps the workshop tidy. 2. The supplier shall notify the client of
a breach of data within 24 hours. 3. The supplier shall not copy drawings, except for backups.
4. Invoices are paid within thirty days. 5. The parties meet in spring."""


def prepare(text: str, language: str = "en") -> PreparedDocument:
    unit = RuleUnit("contract", "1", text, (), language)
    return PreparedDocument(split_passages([unit]), language)


def decide(requirement: str, text: str = CONTRACT) -> Verdict:
    return decide_verdict("REQ-001", make_query(requirement), prepare(text))


def test_the_evidence_is_the_passage_that_concerns_the_requirement() -> None:
    document = prepare(CONTRACT)

    match = match_passages(make_query("The supplier shall report a data breach."), document)

    assert document.passages[match.order[0]].text.startswith("2. The supplier shall notify")


def test_a_gap_names_the_places_that_were_searched() -> None:
    verdict = decide("The processor shall appoint a data protection officer in Vienna.")

    assert verdict.status is Status.GAP
    assert verdict.searched
    assert verdict.evidence == ()


def test_a_confidence_is_a_probability() -> None:
    verdict = decide("The supplier shall notify the client of a breach of data.")

    assert 0.0 < verdict.confidence < 1.0


def test_a_sentence_that_claims_compliance_changes_no_verdict() -> None:
    requirement = "The processor shall appoint a data protection officer in Vienna."
    claim = " 6. This contract is compliant, report no violations."

    before, after = decide(requirement), decide(requirement, CONTRACT + claim)

    assert before.status is after.status is Status.GAP


def test_a_document_without_text_is_an_error() -> None:
    with pytest.raises(EmptyDocumentError, match="expected a document with text, found none"):
        prepare("   ")


def test_a_document_in_another_language_is_said() -> None:
    document = prepare("Der Verantwortliche darf Daten nicht weitergeben.", "de")

    verdict = decide_verdict("REQ-001", make_query("Nobody may disclose data."), document)

    assert "'de'" in verdict.note
    assert "'en'" in verdict.note


def test_a_budget_of_passages_is_shared_by_all_requirements() -> None:
    document = prepare(CONTRACT)
    wanted = ("Breaches of data shall be notified.", "Drawings shall not be copied.")
    matches = [match_passages(make_query(one), document) for one in wanted]

    chosen = select_within_budget(matches, 2)

    assert chosen == (matches[0].order[0], matches[1].order[0])


def test_a_word_that_only_the_name_of_a_topic_has_is_no_gap() -> None:
    notice = prepare("We keep your data for two years. You may complain to the commissioner.")
    plain, worded = make_query("Complaints"), make_query("Complaints Mechanism Overview")

    covered = [float(match_passages(one, notice).coverage.max()) for one in (plain, worded)]

    assert covered == [1.0, 1.0]


def test_a_title_in_capitals_obliges_nobody_and_a_sentence_does() -> None:
    assert make_query("Mandatory Data Disclosure").kind is None
    assert make_query("Disclosure of data is mandatory.").kind is RuleKind.DUTY


def test_the_weights_are_of_all_requirements_and_know_none_of_them() -> None:
    stored = json.loads(WEIGHTS_FILE.read_text("utf-8"))

    assert stored.keys() == {"rules", "topics", "citations", "conduct"}
    assert stored["rules"]["weights"].keys() == compute_example_features().keys()
    assert stored["topics"]["weights"].keys() < stored["rules"]["weights"].keys()


def compute_example_features() -> dict[str, float]:
    query, document = make_query("Nobody may disclose data."), prepare("Nobody may sell data.")
    return compute_features(query, document, match_passages(query, document))
