import pytest

from llm.answer_checks.facts import find_differences
from llm.offline.support import support

EVIDENCE = """Routing > Rules
A rule may have up to 8 conditions. All of them must match. The third condition is optional.
Messages are not stored after 30 days. Deliveries go through Frankfurt.
Setup is unavailable offline.
"""


@pytest.mark.parametrize(
    "claim",
    [
        "A rule may have up to 9 conditions.",
        "Deliveries go through Berlin.",
        "Deliveries of Telefonica go through Frankfurt.",
        "A rule may not have up to 8 conditions.",
        "All of them must not match.",
        "Messages are stored after 30 days.",
        "The 40th condition is optional.",
    ],
)
def test_a_false_number_name_or_negation_is_found(claim: str) -> None:
    assert find_differences(f"{claim} [1]", EVIDENCE)


@pytest.mark.parametrize(
    "claim",
    [
        "2. A rule has up to eight conditions.",
        "The 3rd condition is optional.",
        "Messages aren't stored after 30 days.",
        "After 30 days no messages are stored.",
        "The setup is not available offline.",
        "Not only rules: deliveries go through Frankfurt.",
        "**Delivery Path**: through Frankfurt.",
        "Frankfurt's deliveries match.",
    ],
)
def test_what_the_evidence_says_in_other_words_is_no_difference(claim: str) -> None:
    assert find_differences(claim, EVIDENCE) == ()


def test_what_the_question_names_is_known() -> None:
    assert (
        find_differences("With Telefonica, 12 rules match.", EVIDENCE, "12 rules, Telefonica?")
        == ()
    )


def test_german_nouns_are_no_names() -> None:
    claim = "Es zählt nur die Einstellung, und die Reihenfolge ist egal."

    assert find_differences(claim, "Die Folge ist gleichgültig, es zählt das Eingestellte.") == ()


def test_a_long_passage_is_read_to_its_end() -> None:
    passage = "Filler words stand here. " * 400 + "Invoices are sent on Monday."

    assert support("Invoices are sent on Monday.", passage) == 1.0


@pytest.mark.parametrize(
    "evidence",
    [
        "The default rule can be paused.\nIt can be changed, but neither paused\nnor deleted.",
        "| Role | Reports | Keys |\n|---|---|---|\n| Analyst | yes | no |\n| Owner | no | yes |",
    ],
)
def test_a_quotation_never_differs_from_what_it_quotes(evidence: str) -> None:
    assert find_differences(f"{evidence} [1]", evidence) == ()
    assert find_differences(evidence.split("\n", 1)[1], evidence) == ()
    assert find_differences(evidence.replace("\n", " ").replace("  ", " "), evidence) == ()
