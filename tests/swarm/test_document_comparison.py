"""Named documents are compared on the topics that a question lists."""

import pytest

from swarm.planning.plan import DocumentReference
from swarm.strategies.document_comparison import make_comparison_workers, read_comparison

DOCUMENTS = tuple(
    DocumentReference(document_id=name, title=title)
    for name, title in (
        ("law", "Register Data Protection Act"),
        ("lindqvist", "Contract with Lindqvist Hosting"),
        ("brandt", "Contract with Brandt Datacentre"),
        ("v2", "Handbook 2025"),
        ("v1", "Handbook 2024"),
    )
)


@pytest.mark.parametrize(
    ("question", "documents", "topics"),
    [
        (
            "Compare the fees, the notice periods and the sale of data in the Lindqvist contract "
            "and the Brandt contract",
            ("lindqvist", "brandt"),
            ("fees", "notice periods", "sale of data"),
        ),
        (
            "How do Brandt and Lindqvist differ in fees and training?",
            ("brandt", "lindqvist"),
            ("fees", "training"),
        ),
        (
            "What is the difference between the 2024 and the 2025 handbook regarding leave?",
            ("v1", "v2"),
            ("leave",),
        ),
        (
            "Vergleiche die Gebühren und die Fristen in Lindqvist und Brandt",
            ("lindqvist", "brandt"),
            ("Gebühren", "Fristen"),
        ),
    ],
)
def test_documents_and_topics_are_read_from_a_question(
    question: str, documents: tuple[str, ...], topics: tuple[str, ...]
) -> None:
    found = read_comparison(question, DOCUMENTS)

    assert found is not None
    assert tuple(one.document_id for one in found.documents) == documents
    assert found.topics == topics


@pytest.mark.parametrize(
    "question",
    [
        "What are the fees in the Lindqvist contract?",
        "Compare the fees in the Lindqvist contract",
        "Compare the Lindqvist contract and the Brandt contract",
        "Compare the protection of register data",
        "",
    ],
)
def test_other_questions_are_no_comparison_of_documents_by_topic(question: str) -> None:
    assert read_comparison(question, DOCUMENTS) is None


def test_each_document_has_a_worker_and_workers_are_bounded() -> None:
    found = read_comparison("Compare the fees in Lindqvist and Brandt", DOCUMENTS)
    assert found is not None

    each = list(make_comparison_workers(found, 8))
    together = list(make_comparison_workers(found, 1))

    assert [one.documents for one in each] == [("lindqvist",), ("brandt",)]
    assert [one.documents for one in together] == [("lindqvist", "brandt")]
    assert all(one.criteria == ("fees",) for one in each)
