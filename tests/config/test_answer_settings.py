import pytest
from pydantic import ValidationError

from config.answer_settings import CHARACTERS_PER_TOKEN, AnswerSettings
from config.errors import SettingsError
from config.settings import Settings, load_settings
from deploy.assembly.model_choice import find_context_tokens
from knowledge.sections import count_tokens


@pytest.mark.parametrize(
    ("given", "tokens"), [("3000", 3000), (3000, 3000), ("12000c", 3000), (" 12003c ", 3000)]
)
def test_the_length_of_the_context_is_given_in_tokens_or_in_characters(
    given: object, tokens: int
) -> None:
    assert AnswerSettings.model_validate({"max_context_length": given}).max_context_length == tokens


@pytest.mark.parametrize("given", ["c", "12k", "-12000c", "400c", "1e4c"])
def test_a_length_that_is_invalid_or_too_small_is_rejected(given: str) -> None:
    with pytest.raises(ValidationError, match="max_context_length"):
        AnswerSettings.model_validate({"max_context_length": given})


def test_characters_are_converted_as_the_context_counts_tokens() -> None:
    assert count_tokens("a" * 100 * CHARACTERS_PER_TOKEN) == 100


@pytest.mark.parametrize(
    ("changes", "tokens"),
    [
        ({}, 4000),
        ({"gen_model": "gpt-5-mini@openai"}, 6000),
        ({"gen_model": "gpt-5-mini@openai,gpt-4@openai"}, 2730),
        ({"gen_model": "gpt-5-mini@openai", "quality_model": "gpt-4@openai"}, 2730),
        (
            {"gen_model": "own@llama", "model_limits": {"own@llama": {"context_window": 15_000}}},
            4000,
        ),
        ({"gen_model": "own@llama"}, 6000),
        ({"gen_model": "own@llama", "max_context_length": 12_000}, 12_000),
    ],
    ids=["no model", "large", "small in the chain", "small judge", "stated", "unknown", "set"],
)
def test_the_smallest_window_of_the_models_that_read_the_context_decides_its_size(
    changes: dict[str, object], tokens: int
) -> None:
    servers = {"llama": {"base_url": "http://127.0.0.1:9/v1"}}

    settings = Settings(_env_file=None, compatible_servers=servers, **changes)  # type: ignore[arg-type]

    assert find_context_tokens(settings) == tokens


def test_an_invalid_json_list_is_rejected_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PRODUCT_NAMES", "Otter, Beaver")

    with pytest.raises(SettingsError, match=r"^PRODUCT_NAMES: expected JSON, such as "):
        load_settings()
