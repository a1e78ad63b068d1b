"""Whether a text meets a criterion, by rules for kinds of clauses or by its words."""

import pytest

from llm.offline.criteria.check_text import check_texts, find_kind


@pytest.mark.parametrize(
    ("criterion", "text", "kind"),
    [
        (
            "Does the contract include a cap on liability?",
            "In no event will the aggregate liability of a party exceed the fees paid.",
            "liability_capped",
        ),
        (
            "Does a party have the right to audit the books of the counterparty?",
            "The Licensor may inspect the books and records of the Licensee once a year.",
            "books_audited",
        ),
        (
            "Can a party terminate this contract without cause?",
            "Either party may terminate this Agreement at any time upon 30 days written notice.",
            "terminated_without_cause",
        ),
        (
            "Is consent required if the contract is assigned to a third party?",
            "Neither party may assign this Agreement without the prior consent of the other.",
            "assignment_restricted",
        ),
    ],
)
def test_a_clause_of_a_usual_kind_is_found_and_quoted(criterion: str, text: str, kind: str) -> None:
    met = check_texts(criterion, ["The parties agree to work together in good faith.", text])

    assert (met.is_met, met.kind, met.position) == (True, kind, 1)
    assert met.quotation == text


def test_a_clause_that_excludes_itself_does_not_count() -> None:
    text = "Nothing in this agreement grants a license to use a trademark of the other party."

    assert not check_texts("Does it contain a license granted by one party?", [text]).is_met


def test_the_named_law_must_be_in_the_sentence() -> None:
    texts = ["This Agreement is governed by the laws of the State of Texas and of no other."]

    assert check_texts("are governed by the law of Texas", texts).is_met
    assert not check_texts("are governed by the law of New York", texts).is_met


def test_another_criterion_is_met_by_a_sentence_with_most_of_its_words() -> None:
    texts = ["A visitor brings a dog only with the permission of the ranger."]

    met = check_texts("permission of the ranger for a dog", texts)

    assert (met.is_met, met.kind) == (True, "")
    assert not check_texts("permission of the mayor for a fire", texts).is_met
    assert find_kind("permission of the ranger") is None


def test_a_rare_word_counts_more_than_one_of_every_sentence_and_a_heading_counts() -> None:
    texts = [
        "The processor shall encrypt register data during storage.",
        "The processor shall delete register data within 14 days.",
        "The keeper pays 900 crowns a month for the whole register.",
    ]
    headings = ["2 Security", "6 End", "10 Fees"]

    assert not check_texts("sale of data", texts, headings).is_met
    assert check_texts("fees", texts, headings).quotation == texts[2]
    assert check_texts("rules to delete data", texts, headings).position == 1
