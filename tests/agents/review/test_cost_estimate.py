"""A review says before it begins what it will take."""

from decimal import Decimal

from agents.review.cost_estimate import estimate_cost
from llm.port import Usage


def test_a_longer_law_and_a_longer_document_take_more_calls_and_tokens() -> None:
    small, law, both = estimate_cost(12, 13), estimate_cost(300, 13), estimate_cost(300, 200)

    assert small.calls == 12
    assert (small.usd, small.seconds) == (None, None), "nobody knows them"
    assert small.calls < law.calls < both.calls
    assert small.tokens < law.tokens < both.tokens


def test_the_estimate_is_near_the_review_that_was_played() -> None:
    """It made 10 calls of 32,750 tokens for a law of 12 articles and a contract of 13 clauses."""
    played = estimate_cost(12, 13)

    assert 8 <= played.calls <= 14
    assert 20_000 <= played.tokens <= 65_000


def test_the_time_follows_the_speed_of_the_model_and_the_price_its_tokens() -> None:
    prices: list[Usage] = []

    def price(usage: Usage) -> Decimal:
        prices.append(usage)
        return Decimal("0.1")

    fast = estimate_cost(12, 13, price=price, tokens_per_second=100)
    slow = estimate_cost(12, 13, price=price, tokens_per_second=10)

    assert fast.usd == Decimal("0.1")
    assert prices[0].input_tokens + prices[0].output_tokens == fast.tokens
    assert fast.seconds == 80
    assert slow.seconds == 800
