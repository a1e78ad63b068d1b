import pytest
from pydantic import ValidationError

from config.answer_settings import CHARACTERS_PER_TOKEN, AnswerSettings
from knowledge.search.context.token_count import count_tokens


@pytest.mark.parametrize(
    ("given", "tokens"), [("3000", 3000), (3000, 3000), ("12000c", 3000), (" 12003c ", 3000)]
)
def test_the_length_of_the_context_is_given_in_tokens_or_in_characters(
    given: object, tokens: int
) -> None:
    assert AnswerSettings.model_validate({"max_context_length": given}).max_context_length == tokens


@pytest.mark.parametrize("given", ["c", "12k", "-12000c", "400c", "1e4c"])
def test_a_length_that_is_no_number_or_too_small_is_refused(given: str) -> None:
    with pytest.raises(ValidationError, match="max_context_length"):
        AnswerSettings.model_validate({"max_context_length": given})


def test_characters_are_converted_as_the_context_counts_tokens() -> None:
    assert count_tokens("a" * 100 * CHARACTERS_PER_TOKEN) == 100
