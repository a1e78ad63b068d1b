r"""`\cite{id}` becomes the number of a source, and nothing else does."""

from agents.review.synthesis import number_citations


def test_ids_become_numbers_and_unknown_ids_are_named_and_removed() -> None:
    found = number_citations(
        "It must \\cite{law#1, law#9} and may \\cite{law#2}.", {"law#1": 1, "law#2": 2}
    )

    assert found.text == "It must [1] and may [2]."
    assert found.check.used_citations == ("law#1", "law#2")
    assert found.check.invalid_citations == ("law#9",)
    assert not found.check.valid
