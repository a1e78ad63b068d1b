r"""Citations: whether each exists, says it, says all of it, and is well formatted."""

from compliance.auditing.citation_audit import (
    CitablePassage,
    CitationAudit,
    audit_citations,
    find_omitted_conditions,
)
from compliance.auditing.citation_reading import read_citations

PASSAGES = [
    CitablePassage(
        "law#1",
        "The keeper shall answer every request within 30 days, unless the request is anonymous.",
        frozenset({"law#1", "Law > Requests", "law.md", "law.md#requests"}),
        "Law > Requests",
    ),
    CitablePassage(
        "law#2",
        "The processor shall not sell register data to third parties.",
        frozenset({"law#2", "Law > Sale", "law.md", "law.md#sale"}),
        "Law > Sale",
    ),
]


def audit(text: str) -> CitationAudit:
    return audit_citations(read_citations(text), PASSAGES)


def test_a_true_citation_is_good() -> None:
    found = audit("The processor shall not sell register data to third parties. [1]\n\n"
                  "Sources\n  [1] Law > Sale\n      law.md#sale\n")  # fmt: skip

    assert found.is_valid
    assert found.used_citations == ("law#2",)


def test_a_citation_of_a_source_that_does_not_exist_is_found() -> None:
    found = audit("The processor shall not sell register data. [1]\n\nSources\n[1] Law > Gifts\n")

    assert not found.citations[0].exists
    assert "named 'Law > Gifts', found none" in found.citations[0].problems[0]


def test_a_number_without_a_source_is_found() -> None:
    found = audit("The processor shall not sell register data. [3]")

    assert found.invalid_citations == ("[3]",)
    assert "in the list of sources" in found.citations[0].problems[0]


def test_a_claim_that_turns_its_source_round_is_found() -> None:
    found = audit("The processor may sell register data to third parties. \\cite{law#2}")

    assert found.citations[0].says == "contradicts"


def test_a_claim_with_another_number_is_found() -> None:
    found = audit("The keeper shall answer every request within 90 days. \\cite{law#1}")

    assert found.citations[0].says == "partly"
    assert "90" in found.citations[0].problems[0]


def test_a_passage_about_something_else_is_found() -> None:
    found = audit("Invoices are payable in crowns at the town hall. \\cite{law#1}")

    assert found.citations[0].says == "no"


def test_a_claim_that_leaves_out_a_condition_is_found() -> None:
    found = audit("The keeper shall answer every request within 30 days. \\cite{law#1}")

    assert found.citations[0].says == "yes"
    assert found.citations[0].omitted == ("unless the request is anonymous",)


def test_a_claim_with_its_condition_leaves_out_nothing() -> None:
    claim = "Unless the request is anonymous, the keeper shall answer it within 30 days."

    assert find_omitted_conditions(claim, PASSAGES[0].text) == ()


def test_two_forms_of_citations_in_one_text_are_badly_formatted() -> None:
    found = audit(
        "The processor shall not sell register data to third parties. \\cite{law#2}\n\n"
        "The processor shall not sell register data to third parties. [1]\n\n"
        "Sources\n[1] [Sale](law.md#sale)\n"
    )

    assert [one.is_well_formatted for one in found.citations] == [False, False]


def test_sentences_without_a_citation_and_unused_sources_are_listed() -> None:
    found = audit("Anybody may ask for a copy.\n\nSources\n[1] Law > Sale\n")

    assert found.citations == ()
    assert found.uncited == ("Anybody may ask for a copy.",)
    assert found.unused == ("[1]",)


def test_code_contains_no_citations() -> None:
    assert read_citations("```\nx = a[1]\n```\n").claims == ()


def test_a_document_by_its_file_is_compared_by_its_best_passage() -> None:
    found = audit("The processor shall not sell register data to third parties. [law](law.md)")

    assert found.citations[0].passage_id == "law#2"
