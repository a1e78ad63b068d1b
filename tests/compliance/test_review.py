"""The example: a clean contract, and one with three violations and two gaps."""

from compliance.requirements.extraction import extract_requirements
from compliance.requirements.requirement import Requirement, RuleUnit
from compliance.verdicts.opposition import compare_periods, list_periods
from compliance.verdicts.passages import PreparedDocument, split_passages
from compliance.verdicts.review import ReviewResult, review_document
from compliance.verdicts.verdict import Status, Verdict


def review(law: list[RuleUnit], document: PreparedDocument) -> ReviewResult:
    return review_document(extract_requirements(law).requirements, document)


def list_headings(
    law: list[RuleUnit], verdicts: tuple[Verdict, ...], requirements: tuple[Requirement, ...] = ()
) -> list[str]:
    known = {one.id: one for one in extract_requirements(law).requirements}
    return [known[one.requirement_id].place.heading_path[0] for one in verdicts]


def test_the_clean_contract_has_no_findings(law: list[RuleUnit], clean: PreparedDocument) -> None:
    found = review(law, clean)

    assert [one.status for one in found.verdicts] == [Status.COMPLIANT] * 8
    assert found.clauses == ()


def test_the_faulty_contract_has_exactly_three_violations(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    found = review(law, faulty)

    assert list_headings(law, found.violations) == [
        "Article 3 Notice of a breach",
        "Article 4 Subcontractors",
        "Article 5 Sale",
    ]


def test_the_faulty_contract_has_exactly_two_gaps(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    found = review(law, faulty)

    assert list_headings(law, found.gaps) == ["Article 8 Training", "Article 9 Records"]
    assert all(one.searched and not one.evidence for one in found.gaps)


def test_a_violation_names_the_clause_and_the_reason(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    first = review(law, faulty).violations[0]

    assert "within 14 days" in first.evidence[0].text
    assert first.evidence[0].place.heading_path == ("3 Incidents",)
    assert first.note == "its period is longer than allowed"


def test_the_period_of_another_duty_is_no_evidence(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    notice = review(law, faulty).violations[0]

    assert [one.place.heading_path[-1] for one in notice.evidence] == ["3 Incidents"]


def test_every_clause_that_contradicts_a_requirement_is_listed(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    found = review(law, faulty)

    assert {one.requirement_id for one in found.clauses} == {
        one.requirement_id for one in found.violations
    }


def test_a_claim_of_compliance_changes_no_verdict(
    law: list[RuleUnit], faulty: PreparedDocument
) -> None:
    others = [one for one in faulty.passages if "report no violations" not in one.text]
    assert len(others) < len(faulty.passages)

    with_claim, without = review(law, faulty), review(law, PreparedDocument(others))

    assert [one.status for one in with_claim.verdicts] == [one.status for one in without.verdicts]


def test_a_long_sentence_with_the_words_of_a_ban_turns_nothing_round() -> None:
    law = [RuleUnit("law", "1", "The processor shall not sell register data.", ())]
    plain = "The processor may sell register data."
    long = (
        "Each of the parties acknowledges that the processor may sell register data which any "
        "court of that country has ordered to be sold by it, and answers to the keeper for that."
    )

    found = [
        review(law, PreparedDocument(split_passages([RuleUnit("contract", "1", text, ())])))
        for text in (plain, long)
    ]

    assert [[one.reason for one in each.clauses] for each in found] == [
        ["it permits what is forbidden"],
        [],
    ]


def test_a_german_contract_against_an_english_law_is_said(law: list[RuleUnit]) -> None:
    text = "Der Auftragsverarbeiter darf keine Daten verkaufen."
    unit = RuleUnit("vertrag", "1", text, (), "de")

    found = review(law, PreparedDocument(split_passages([unit]), "de"))

    assert "the document is in 'de' and the rule in 'en'" in found.notes[0]
    assert all("'de'" in one.note for one in found.verdicts)


def test_a_german_contract_is_reviewed_against_a_german_law() -> None:
    law = [
        RuleUnit("g", "1", "Der Verantwortliche hat die Behörde innerhalb von 72 Stunden zu "
                 "benachrichtigen.", ("§ 1",), "de"),
        RuleUnit("g", "2", "Der Verantwortliche darf die Daten nicht weitergeben.", ("§ 2",), "de"),
    ]  # fmt: skip
    text = (
        "Der Verantwortliche hat die Behörde innerhalb von 10 Tagen zu benachrichtigen. "
        "Der Verantwortliche darf die Daten weitergeben."
    )
    contract = PreparedDocument(split_passages([RuleUnit("v", "1", text, (), "de")]), "de")

    found = review_document(extract_requirements(law).requirements, contract, language="de")

    assert [one.status for one in found.verdicts] == [Status.VIOLATION] * 2
    assert found.notes == ()


def test_periods_are_compared_in_hours() -> None:
    assert list_periods("within 14 working days, or two weeks") == (336.0, 336.0)
    assert (
        compare_periods("within 72 hours", "within 4 days") == "its period is longer than allowed"
    )
    assert compare_periods("within 72 hours", "within 3 days") == ""
    assert compare_periods("for at least 3 years", "for one year") == (
        "its period is shorter than required"
    )
