"""A request in place of a fact is a new question."""

import pytest

from swarm.information.requests import is_new_request


@pytest.mark.parametrize(
    "text",
    ["Compare Python and Rust", "What is a webhook signature?", "Vergleiche Python und Rust"],
)
def test_a_request_with_a_subject_is_a_new_question(text: str) -> None:
    assert is_new_request(text)


@pytest.mark.parametrize("text", ["the history", "history", "compare it", "security and costs"])
def test_a_value_is_no_new_question(text: str) -> None:
    assert not is_new_request(text)
