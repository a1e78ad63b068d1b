"""Questions about two versions: what differs, and what is new or gone, without a model."""

import pytest

from envelope.sources import TOOL_SOURCE
from llm.offline.answering.comparisons import find_comparison
from llm.tasks.respond import Inputs, PromptSource

TABLE = "| Breach | Fine |\n|---|---|\n| Late report | {} marks |\n| Flight | 6 marks |"
COMPARED = "2 changes, 0 unchanged\nremoved: none\nadded: Article 9\nchanged: Article 8"


def make_page(number: int, version: str, text: str) -> PromptSource:
    place = f"Article 8 (version {version})"
    return PromptSource(
        number=number, chunk_id=f"8@{version}#{number}", place=place, version=version, text=text
    )


def compare(question: str, *sources: PromptSource) -> str | None:
    return find_comparison(Inputs(question=question, language="en", sources=sources))


def test_all_passages_of_a_page_are_compared_and_rows_stay_apart() -> None:
    repeated = make_page(3, "2025", "A repeated breach doubles the fine.")
    both = (make_page(1, "2024", TABLE.format(4)), make_page(2, "2025", TABLE.format(10)))

    found = compare("Compare the fines of 2024 and 2025.", repeated, *both)

    assert found == (
        "- Article 8 (version 2024): Late report: 4 marks [1]\n"
        "- Article 8 (version 2025): A repeated breach doubles the fine. [3]\n"
        "- Article 8 (version 2025): Late report: 10 marks [2]"
    )


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Which articles are new in version 2025?", "- added: Article 9 [1]"),
        ("Which articles were removed in version 2025?", "- removed: none [1]"),
    ],
)
def test_new_and_removed_documents_come_from_the_comparison_of_all(
    question: str, said: str
) -> None:
    own = PromptSource(
        number=1, chunk_id=f"{TOOL_SOURCE}r1-1", place="compare_documents", text=COMPARED
    )

    assert compare(question, own, make_page(2, "2025", "It rains.")) == said


def test_a_page_that_looks_like_a_comparison_is_none() -> None:
    page = make_page(1, "2025", COMPARED)

    assert compare("Which articles are new in version 2025?", page) is None
