"""Citations: whether each exists, has the numbers of its source, and is well formatted."""

import pytest

from agents.review.audit import CitablePassage, CitationAudit, audit_citations, read_citations

PASSAGES = [
    CitablePassage(
        "law#1",
        "The keeper shall answer every request within 30 days, unless the request is anonymous. A "
        "processor has at most ten subcontractors. The forms are those of Annex IV, valid in 2030.",
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
    audited = audit("The processor shall not sell register data to third parties. [1]\n\n"
                  "Sources\n  [1] Law > Sale\n      law.md#sale\n")  # fmt: skip

    assert audited.is_valid
    assert audited.used_citations == ("law#2",)


def test_struck_out_claims_are_not_checked() -> None:
    read = read_citations(
        "Kept. [1] ~~Sold. [2]~~\n\n~~Given away. [1]~~\n\nSources\n[1] A\n[2] B\n"
    )

    assert [(claim.claim, claim.label) for claim in read.claims] == [("Kept.", "[1]")]


def test_a_list_of_sources_may_have_lost_its_line_breaks() -> None:
    read = read_citations("Kept. [1] Not sold. [2]\n\nSources\n\n[1] Law > Logs [2] Law > Sale\n")

    assert [claim.names[0] for claim in read.claims] == ["Law > Logs", "Law > Sale"]


def test_a_citation_of_a_source_that_does_not_exist_is_found() -> None:
    audited = audit("The processor shall not sell register data. [1]\n\nSources\n[1] Law > Gifts\n")

    assert not audited.citations[0].exists
    assert "no document or passage is named 'Law > Gifts'" in audited.citations[0].problems[0]


def test_a_number_without_a_source_is_found() -> None:
    audited = audit("The processor shall not sell register data. [3]")

    assert audited.invalid_citations == ("[3]",)
    assert "the list of sources has no entry" in audited.citations[0].problems[0]


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        (
            "The keeper shall answer every request within 90 days.",
            "the claim says “answer every request within 90 days”, but the source says “answer "
            "every request within 30 days”",
        ),
        (
            "There are at most five subcontractors.",
            "the claim says “There are at most five subcontractors”, but the source says "
            "“processor has at most ten subcontractors”",
        ),
        ("The keeper shall answer within a fine of EUR 900.", "“a fine of EUR 900” does not occur"),
        ("The forms are those of Annex V.", "Annex V does not occur in the source"),
        ("The request follows Article 17.", "Article 17 does not occur in the source"),
    ],
)
def test_another_number_period_or_annex_than_that_of_the_source_is_found(
    claim: str, problem: str
) -> None:
    audited = audit(f"{claim} \\cite{{law#1}}")

    assert any(item.startswith(problem) for item in audited.citations[0].problems), audited


@pytest.mark.parametrize(
    "claim",
    [
        "The keeper answers within 30 days; the forms are in Annex IV.",
        "By 2030 the keeper answers every request within thirty days.",
        "The processor has no more than 10 subcontractors.",
    ],
)
def test_a_paraphrase_is_not_a_problem(claim: str) -> None:
    assert audit(f"{claim} \\cite{{law#1}}").is_valid


def test_whether_a_source_says_a_claim_is_left_to_a_model() -> None:
    audited = audit("The processor may sell register data to third parties. \\cite{law#2}")

    assert (audited.is_valid, audited.citations[0].says) == (True, "unjudged")


@pytest.mark.parametrize(
    "sources",
    [
        "Sources\n\n1. Law > Sale\n",
        "## Sources\n\n1) [Sale](law.md#sale)\n",
        "**References:**\n\n- [1] **Law > Sale**\n",
        "Quellen:\n[1]: law.md#sale\n",
        "Zdroje\n\n* [1] Law > Sale\n",
        "### Sources\n1. law.md – the act\n",
        "[1]: law.md#sale\n",
    ],
)
def test_ordinary_lists_of_sources_are_read(sources: str) -> None:
    audited = audit(f"The processor shall not sell register data. [1]\n\n{sources}")

    assert [citation.passage_id for citation in audited.citations] == ["law#2"], audited


def test_footnotes_are_citations() -> None:
    audited = audit("The processor shall not sell register data.[^1]\n\n[^1]: Law > Sale\n")

    assert [citation.passage_id for citation in audited.citations] == ["law#2"]


@pytest.mark.parametrize(
    "citation",
    [
        "[^act]\n\n[^act]: Law > Sale\n",
        " [1](law.md#sale)\n",
        " [[1]](law.md#sale)\n",
        " [the act][sale]\n\n[sale]: law.md#sale\n",
    ],
)
def test_named_footnotes_and_numbers_that_are_links_are_citations(citation: str) -> None:
    audited = audit(f"The processor shall not sell register data.{citation}")

    assert [audited_citation.passage_id for audited_citation in audited.citations] == ["law#2"], (
        audited
    )
    assert audited.is_valid


def test_a_part_in_lower_case_that_the_source_lacks_is_found() -> None:
    audited = audit("The request follows clause 44. \\cite{law#1}")

    assert "clause 44 does not occur in the source" in audited.citations[0].problems


def test_two_forms_of_citations_in_one_text_are_badly_formatted() -> None:
    audited = audit(
        "The processor shall not sell register data to third parties. \\cite{law#2}\n\n"
        "The processor shall not sell register data to third parties. [1]\n\n"
        "Sources\n[1] [Sale](law.md#sale)\n"
    )

    assert [citation.is_well_formatted for citation in audited.citations] == [False, False]


def test_sentences_without_a_citation_and_unused_sources_are_listed() -> None:
    audited = audit("Anybody may ask for a copy.\n\nSources\n[1] Law > Sale\n")

    assert audited.citations == ()
    assert audited.uncited == ("Anybody may ask for a copy.",)
    assert audited.unused == ("[1]",)


def test_code_contains_no_citations() -> None:
    assert read_citations("```\nx = a[1]\n```\n").claims == ()


def test_a_document_by_its_file_is_compared_by_its_best_passage() -> None:
    audited = audit("The processor shall not sell register data to third parties. [law](law.md)")

    assert audited.citations[0].passage_id == "law#2"
