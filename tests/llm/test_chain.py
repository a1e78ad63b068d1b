import pytest

from llm.call_log import record_calls
from llm.errors import (
    ChainExhausted,
    MissingKey,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
    Refused,
    RejectedRequest,
    UnknownModel,
    UnreadableOutput,
)
from llm.fallback.chain import FallbackChain
from llm.scripted import ScriptedModel
from tests.llm.sample_task import BLUE, COLOUR, SKY


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("down"),
        ModelTimeout("slow"),
        RateLimited("busy"),
        UnknownModel("gone"),
        MissingKey("no key"),
        RejectedRequest("too long"),
        UnreadableOutput("no JSON"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_model_that_cannot_answer_is_followed_by_the_next(error: ModelError) -> None:
    first, second = ScriptedModel([error], name="a"), ScriptedModel([BLUE], name="b")
    chain = FallbackChain([first, second])

    answer = await chain.ask(COLOUR, SKY)

    assert (answer.output, answer.model) == (BLUE, "b")
    assert chain.fallbacks == {("a", "b", type(error).__name__): 1}


async def test_a_fallback_is_in_the_record_with_its_reason() -> None:
    chain = FallbackChain(
        [ScriptedModel([ModelUnavailable("down")], name="a"), ScriptedModel([BLUE], name="b")]
    )

    with record_calls() as calls:
        await chain.ask(COLOUR, SKY)

    assert [(call.model, call.error) for call in calls] == [
        ("a", "ModelUnavailable: down"),
        ("b", None),
    ]


async def test_a_refusal_is_not_carried_to_another_model() -> None:
    second = ScriptedModel([BLUE], name="b")
    chain = FallbackChain([ScriptedModel([Refused("no")], name="a"), second])

    with pytest.raises(Refused):
        await chain.ask(COLOUR, SKY)

    assert second.calls == []


@pytest.mark.parametrize(("skip", "asked"), [(0, "a"), (1, "b"), (2, "c"), (9, "c")])
async def test_skip_starts_further_down_and_at_the_last_model_at_most(
    skip: int, asked: str
) -> None:
    chain = FallbackChain([ScriptedModel([BLUE], name=name) for name in "abc"])

    answer = await chain.ask(COLOUR, SKY, skip=skip)

    assert answer.model == asked


async def test_an_exhausted_chain_tells_what_each_model_said() -> None:
    chain = FallbackChain(
        [
            ScriptedModel([ModelUnavailable("down")], name="a"),
            ScriptedModel([RateLimited("busy", retry_after_seconds=3)], name="b"),
        ]
    )

    with pytest.raises(ChainExhausted, match="a: down; b: busy") as caught:
        await chain.ask(COLOUR, SKY)

    assert [type(error) for error in caught.value.errors] == [ModelUnavailable, RateLimited]
    assert chain.fallbacks.total() == 1


async def test_a_chain_that_is_limited_everywhere_says_when_the_first_is_free_again() -> None:
    chain = FallbackChain(
        [
            ScriptedModel([RateLimited("busy", retry_after_seconds=30)], name="a"),
            ScriptedModel([RateLimited("busy", retry_after_seconds=3)], name="b"),
        ]
    )

    with pytest.raises(RateLimited) as caught:
        await chain.ask(COLOUR, SKY)

    assert caught.value.retry_after_seconds == 3


async def test_a_chain_of_one_raises_what_its_model_raised() -> None:
    with pytest.raises(ModelTimeout):
        await FallbackChain([ScriptedModel([ModelTimeout("slow")])]).ask(COLOUR, SKY)


def test_an_empty_chain_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one model"):
        FallbackChain([])
