from decimal import Decimal

import pytest

from llm.port import Usage
from llm.prices import cost_usd

SOME = Usage(input_tokens=100_000, output_tokens=1_000)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("openai", "gpt-5-mini"),
        ("openai", "gpt-4"),
        ("google", "gemini-2.5-flash"),
        ("openai", "text-embedding-3-small"),
        ("google", "gemini-embedding-001"),
    ],
)
def test_a_known_model_has_a_price_that_grows_with_its_tokens(provider: str, model: str) -> None:
    low = cost_usd(provider, model, Usage(1_000), base_url=None)
    high = cost_usd(provider, model, Usage(2_000), base_url=None)

    assert low is not None
    assert isinstance(low, Decimal)
    assert high == 2 * low > 0


def test_cached_tokens_cost_less_and_are_part_of_the_input() -> None:
    cached = Usage(SOME.input_tokens, SOME.output_tokens, cached_input_tokens=90_000)

    full = cost_usd("openai", "gpt-5-mini", SOME, base_url=None)
    less = cost_usd("openai", "gpt-5-mini", cached, base_url=None)

    assert full is not None
    assert less is not None
    assert 0 < less < full


@pytest.mark.parametrize("usage", [SOME, Usage()])
def test_the_price_of_an_unknown_model_is_none_and_not_zero(usage: Usage) -> None:
    assert cost_usd("openai", "gpt-none-such", usage, base_url=None) is None


def test_tokens_that_are_written_to_a_cache_have_their_own_price() -> None:
    plain = cost_usd("anthropic", "claude-sonnet-4-5", Usage(100_000), base_url=None)
    written = Usage(100_000, cache_write_tokens=100_000)

    stored = cost_usd("anthropic", "claude-sonnet-4-5", written, base_url=None)

    assert plain is not None
    assert stored == plain * Decimal("1.25")


def test_a_compatible_server_does_not_have_the_vendors_prices() -> None:
    assert cost_usd("openai", "gpt-4", SOME, base_url="http://127.0.0.1:8000/v1") is None


def test_a_known_compatible_server_has_its_own_prices() -> None:
    assert cost_usd("openai", "deepseek-chat", SOME, base_url="https://api.deepseek.com/v1")


def test_a_call_of_nothing_to_a_known_model_costs_nothing() -> None:
    assert cost_usd("openai", "gpt-4", Usage(), base_url=None) == 0
