"""A sentence is covered by the citations that a reader would take for its own."""

import pytest

from deploy.evaluation.sentences import split_covered


def covers(answer: str, language: str = "en") -> list[tuple[int, ...]]:
    return [sentence.cites for sentence in split_covered(answer, language)]


@pytest.mark.parametrize(
    ("answer", "cites"),
    [
        ("It is fast. It is small. [2]", [(2,), (2,)]),
        ("It is fast. [1] It is small.", [(1,), ()]),
        ("It is fast.\n\nIt is small. [1]", [(), (1,)]),
        ("Do this:\n\n1. Open it.\n2. Close it. [3]", [(3,), (3,)]),
        ("Run this. [1]\n\n```\nmake it\n```", [(1,), (1,)]),
        ("```\nmake it\n```\n\n[2]", [(2,)]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\n[1][2]", [(1, 2)]),
        ("Yes.\n\nIt is so. [1]", [(1,)]),
        ("# A heading\n\nIt is so. [1]", [(1,)]),
    ],
)
def test_a_citation_covers_what_it_stands_under(answer: str, cites: list[tuple[int, ...]]) -> None:
    assert covers(answer) == cites


def test_what_the_desk_itself_says_about_an_answer_needs_no_source() -> None:
    assert covers("I assume that you mean: the console\n\nIt is so. [1]") == [(1,)]
    assert covers("Ich nehme an, dass es so ist.\n\nSo ist es. [1]", "de") == [(), (1,)]
