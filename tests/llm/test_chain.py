import asyncio
from contextlib import suppress

import pytest

from llm.chain import ChainLink, FallbackChain
from llm.errors import (
    ChainExhausted,
    MissingKey,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    NoModel,
    RateLimited,
    Refused,
    RejectedRequest,
    UnknownModel,
    UnreadableOutput,
)
from llm.missing_model import MissingModel
from llm.port import record_calls
from llm.vendors.model_transport import FIRST_PAUSE_SECONDS, LEAST_FAILURES, CircuitBreaker
from tests.llm.sample_task import BLUE, COLOUR, SKY
from tests.support.scripted_model import ScriptedModel, ScriptError, gate


def make_chain(models: list[ScriptedModel], patience_seconds: float = 5.0) -> FallbackChain:
    links = [ChainLink(model, CircuitBreaker(model.name)) for model in models]
    return FallbackChain(links, patience_seconds=patience_seconds)


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
        Refused("no"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_model_that_cannot_answer_is_followed_by_the_next(error: ModelError) -> None:
    first, second = ScriptedModel([error], name="a"), ScriptedModel([BLUE], name="b")
    chain = make_chain([first, second])

    answer = await chain.ask(COLOUR, SKY)

    assert (answer.output, answer.model) == (BLUE, "b")


async def test_a_fallback_is_in_the_record_with_its_reason() -> None:
    chain = make_chain(
        [ScriptedModel([ModelUnavailable("down")], name="a"), ScriptedModel([BLUE], name="b")]
    )

    with record_calls() as calls:
        await chain.ask(COLOUR, SKY)

    assert [(call.model, call.error) for call in calls] == [
        ("a", "ModelUnavailable: down"),
        ("b", None),
    ]


@pytest.mark.parametrize(("skip", "asked"), [(0, "a"), (1, "b"), (2, "c"), (9, "c")])
async def test_skip_starts_further_down_and_at_the_last_model_at_most(
    skip: int, asked: str
) -> None:
    chain = make_chain([ScriptedModel([BLUE], name=name) for name in "abc"])

    answer = await chain.ask(COLOUR, SKY, skip=skip)

    assert answer.model == asked


async def test_an_exhausted_chain_reports_the_error_of_each_model() -> None:
    chain = make_chain(
        [
            ScriptedModel([ModelUnavailable("down")], name="a"),
            ScriptedModel([RateLimited("busy", retry_after_seconds=3)], name="b"),
        ]
    )

    with pytest.raises(ChainExhausted, match="down; busy") as caught:
        await chain.ask(COLOUR, SKY)

    assert [type(error) for error in caught.value.errors] == [ModelUnavailable, RateLimited]


async def test_a_rate_limited_chain_reports_the_shortest_delay() -> None:
    chain = make_chain(
        [
            ScriptedModel([RateLimited("busy", retry_after_seconds=30)], name="a"),
            ScriptedModel([RateLimited("busy", retry_after_seconds=3)], name="b"),
        ]
    )

    with pytest.raises(RateLimited) as caught:
        await chain.ask(COLOUR, SKY)

    assert caught.value.retry_after_seconds == 3


async def test_a_chain_with_one_model_raises_its_error() -> None:
    with pytest.raises(ModelTimeout):
        await make_chain([ScriptedModel([ModelTimeout("slow")])]).ask(COLOUR, SKY)


def test_an_empty_chain_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one model"):
        make_chain([])


async def test_a_slow_model_that_answers_before_the_next_is_not_left_alone() -> None:
    slow, never = gate(BLUE), gate(BLUE)
    first = ScriptedModel([slow, BLUE], name="a")
    second = ScriptedModel([never], name="b")
    chain = make_chain([first, second], patience_seconds=0.01)

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(chain.ask(COLOUR, SKY))
        await never.reached.wait()
        slow.opened.set()

    assert asking.result().model == "a"
    assert (await chain.ask(COLOUR, SKY)).model == "a"


async def test_a_cancelled_question_leaves_no_call_running() -> None:
    slow, never = gate(BLUE), gate(BLUE)
    chain = make_chain(
        [ScriptedModel([slow], name="a"), ScriptedModel([never], name="b")], patience_seconds=0.01
    )

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(chain.ask(COLOUR, SKY))
        await never.reached.wait()
        asking.cancel()

    assert asking.cancelled()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_fault_of_the_program_is_not_hidden_by_the_next_model() -> None:
    chain = make_chain([ScriptedModel([ScriptError("wrong")], name="a"), ScriptedModel([BLUE])])

    with pytest.raises(ScriptError):
        await chain.ask(COLOUR, SKY)


async def test_a_missing_model_raises_an_error_without_a_request() -> None:
    with (
        record_calls() as calls,
        pytest.raises(NoModel, match="no model is configured for the task 'colour'"),
    ):
        await MissingModel().ask(COLOUR, SKY)

    assert calls == []


async def test_a_chain_that_ends_without_a_model_names_the_failure_of_its_first() -> None:
    failing = ScriptedModel([ModelUnavailable("the vendor is away")])
    chain = FallbackChain([ChainLink(failing), ChainLink(MissingModel())])

    with pytest.raises(ChainExhausted) as raised:
        await chain.ask(COLOUR, SKY)

    assert raised.value.reason == "unavailable"


def fail_until_open(breaker: CircuitBreaker, task: str) -> None:
    for _ in range(LEAST_FAILURES):
        breaker.enter(task)
        breaker.note_failure(ModelUnavailable("status 500"), task)


def test_a_task_whose_calls_always_fail_keeps_no_other_task_from_the_model() -> None:
    breaker = CircuitBreaker("a", clock=lambda: 0.0)
    fail_until_open(breaker, "classifier")

    breaker.enter("compliance")
    breaker.note_success()

    assert not breaker.is_open()


def test_when_several_tasks_fail_all_of_them_wait_for_the_end_of_the_pause() -> None:
    now = [0.0]
    breaker = CircuitBreaker("a", clock=lambda: now[0])
    fail_until_open(breaker, "classifier")
    breaker.enter("compliance")
    breaker.note_failure(ModelUnavailable("status 500"), "compliance")

    for task in ("classifier", "compliance", ""):
        with pytest.raises(ModelUnavailable, match="status 500"):
            breaker.enter(task)
    now[0] = FIRST_PAUSE_SECONDS
    breaker.enter("compliance")


@pytest.mark.parametrize(
    "error", [ModelTimeout("slow"), RateLimited("busy", retry_after_seconds=9.0)]
)
def test_a_slow_or_busy_server_is_not_called_for_another_task(error: ModelError) -> None:
    breaker = CircuitBreaker("a", clock=lambda: 0.0)
    for _ in range(LEAST_FAILURES):
        with suppress(ModelError):
            breaker.enter("classifier")
            breaker.note_failure(error, "classifier")

    with pytest.raises(type(error)):
        breaker.enter("compliance")
