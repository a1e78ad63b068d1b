"""Two servers that are compatible with OpenAI's, side by side: one fails, the other answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from time import monotonic

import pytest
import structlog

from envelope.question import Question as Message
from envelope.run import OUTSIDE, Run
from llm.errors import MissingKey, ModelUnavailable, RateLimited
from llm.port import ModelAnswer, record_calls
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.model_transport import LEAST_FAILURES, WINDOW_SECONDS, RetryRules
from tests.llm.sample_task import BLUE, COLOUR, SKY, Colour, PlainPrompts
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Response, running_server
from tests.support.runs import start_run
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import Clock, wait_until, within

MESSAGE = Message(tenant="t", assistant="a", conversation_id="c", message_id="m")
VENDOR = OpenAI()
ANSWER = VENDOR.answer(BLUE.model_dump_json())
HANGS = Response(ends="never")
CHAIN = "small@first,large@second"
PATIENCE_SECONDS = 0.2


@dataclass
class Vendors:
    """Two servers under names of the operator's choice, and one registry over both."""

    first: ModelServer
    second: ModelServer
    registry: Registry
    clock: Clock = field(default_factory=Clock)

    async def ask(self, setting: str = CHAIN, run: Run = OUTSIDE) -> ModelAnswer[Colour]:
        return await self.registry.model(setting).ask(COLOUR, SKY, run)

    async def let_first_be_left_alone(self) -> None:
        """Have calls of the first server fail until its breaker opens."""
        self.first.will_send(*[VENDOR.failure(500)] * LEAST_FAILURES)
        self.second.will_send(*[ANSWER] * LEAST_FAILURES)
        for _ in range(LEAST_FAILURES):
            await self.ask()

    def counts(self) -> tuple[int, int]:
        """How many requests each server has received."""
        return len(self.first.received), len(self.second.received)


@pytest.fixture
async def vendors() -> AsyncIterator[Vendors]:
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(running_server()) for _ in range(2)]
        clock = Clock()
        registry = Registry(
            prompts=PlainPrompts(),
            access={
                "first": VendorAccess("key-of-first", f"{first.url}/v1"),
                "second": VendorAccess("key-of-second", f"{second.url}/v1"),
            },
            patience_seconds=PATIENCE_SECONDS,
            retries=RetryRules(wait_initial_seconds=0.001, wait_max_seconds=0.002),
            scripted=ScriptedModel([Colour(name="grey")] * 20, name="scripted"),
            clock=clock,
        )
        stack.push_async_callback(registry.close)
        yield Vendors(first, second, registry, clock)


async def test_two_compatible_servers_have_their_own_addresses_and_keys(vendors: Vendors) -> None:
    vendors.first.will_send(ANSWER)
    vendors.second.will_send(ANSWER)

    first = await vendors.ask("small@first")
    other = await vendors.ask("large@second")

    assert (first.model, other.model) == ("small@first", "large@second")
    assert VENDOR.key(vendors.first.received[0]) == "key-of-first"
    assert VENDOR.key(vendors.second.received[0]) == "key-of-second"


async def test_a_model_that_hangs_is_overtaken_by_the_next(vendors: Vendors) -> None:
    vendors.first.will_send(HANGS)
    vendors.second.will_send(ANSWER)
    started = monotonic()

    with record_calls() as calls:
        answer = await vendors.ask()

    assert answer.model == "large@second"
    assert monotonic() - started < 8
    assert {call.model: call.error for call in calls} == {
        "large@second": None,
        "small@first": "cancelled before the model answered",
    }


async def test_later_questions_stay_off_a_model_that_hung_until_a_probe_succeeds(
    vendors: Vendors,
) -> None:
    vendors.first.will_send(*[HANGS] * 3, ANSWER, ANSWER)
    vendors.second.will_send(*[ANSWER] * 5)

    for _ in range(LEAST_FAILURES):
        await vendors.ask()
    off = [(await vendors.ask()).model for _ in range(2)]
    vendors.clock.now += 11
    probe = await vendors.ask()
    after = await vendors.ask()

    assert off == ["large@second"] * 2
    assert (probe.model, after.model) == ("small@first", "small@first")
    assert vendors.counts() == (5, 5)


async def test_a_probe_that_fails_doubles_the_pause(vendors: Vendors) -> None:
    await vendors.let_first_be_left_alone()
    vendors.first.will_send(VENDOR.failure(500))
    vendors.second.will_send(*[ANSWER] * 2)

    vendors.clock.now += 11
    await vendors.ask()
    vendors.clock.now += 11
    await vendors.ask()

    assert vendors.counts() == (LEAST_FAILURES + 1, LEAST_FAILURES + 2)


async def test_one_question_at_a_time_is_the_probe(vendors: Vendors) -> None:
    await vendors.let_first_be_left_alone()
    vendors.first.will_send(HANGS)
    vendors.second.will_send(*[ANSWER] * 2)
    vendors.clock.now += 11
    vendors.first.was_asked.clear()

    async with asyncio.TaskGroup() as group:
        probe = group.create_task(vendors.ask())
        await vendors.first.was_asked.wait()
        beside = await vendors.ask()

    assert (probe.result().model, beside.model) == ("large@second", "large@second")
    assert vendors.counts() == (LEAST_FAILURES + 1, LEAST_FAILURES + 2)


async def test_a_cancelled_probe_leaves_room_for_the_next(vendors: Vendors) -> None:
    await vendors.let_first_be_left_alone()
    vendors.first.will_send(HANGS, ANSWER)
    vendors.clock.now += 11
    vendors.first.was_asked.clear()

    async with asyncio.TaskGroup() as group:
        probe = group.create_task(vendors.ask())
        await vendors.first.was_asked.wait()
        probe.cancel()

    assert (await vendors.ask()).model == "small@first"


async def test_the_rules_answer_when_every_vendor_has_failed(vendors: Vendors) -> None:
    vendors.first.will_send(HANGS)
    vendors.second.will_send(HANGS)
    third = "scripted"

    async with asyncio.TaskGroup() as group:
        asking = group.create_task(vendors.ask(f"{CHAIN},{third}"))
        await vendors.second.was_asked.wait()
        # Both run at the same time; the rules wait until both have failed.
        assert not asking.done()
        await vendors.first.close()
        await vendors.second.close()

    assert asking.result().model == third


async def test_a_limit_with_retry_after_is_left_alone_for_exactly_that_long(
    vendors: Vendors,
) -> None:
    vendors.first.will_send(VENDOR.failure(429, retry_after="8"), ANSWER)
    vendors.second.will_send(*[ANSWER] * 2)
    started = monotonic()

    at_once = await vendors.ask()
    vendors.clock.now += 7.9
    early = await vendors.ask()
    vendors.clock.now += 0.2
    later = await vendors.ask()

    assert [at_once.model, early.model, later.model] == [
        "large@second",
        "large@second",
        "small@first",
    ]
    assert vendors.counts() == (2, 2)
    assert monotonic() - started < 8


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_without_another_vendor_each_call_of_a_failing_one_is_repeated_until_it_is_left_alone(
    vendors: Vendors, status: int
) -> None:
    vendors.first.will_send(*[VENDOR.failure(status)] * 18)

    answers = [await vendors.ask("small@first,scripted") for _ in range(5)]

    assert [answer.model for answer in answers] == ["scripted"] * 5
    assert vendors.counts() == (2 * LEAST_FAILURES, 0)


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_the_failure_of_one_call_keeps_no_other_call_off_the_model(
    vendors: Vendors, status: int
) -> None:
    vendors.first.will_send(*[VENDOR.failure(status)] * (2 if status == 500 else 1), ANSWER)

    failed = await vendors.ask("small@first,scripted")
    next_question = await vendors.ask("small@first,scripted")

    assert (failed.model, next_question.model) == ("scripted", "small@first")


async def test_a_model_that_fails_less_often_than_it_answers_stays_in_use(
    vendors: Vendors,
) -> None:
    vendors.first.will_send(*[ANSWER, ANSWER, VENDOR.failure(404)] * 4)

    answers = [await vendors.ask("small@first,scripted") for _ in range(12)]

    assert [answer.model for answer in answers] == ["small@first", "small@first", "scripted"] * 4


async def test_failures_that_are_long_past_do_not_count(vendors: Vendors) -> None:
    vendors.first.will_send(*[VENDOR.failure(404)] * LEAST_FAILURES, ANSWER)

    for _ in range(LEAST_FAILURES):
        await vendors.ask("small@first,scripted")
        vendors.clock.now += WINDOW_SECONDS / (LEAST_FAILURES - 1) + 1

    assert (await vendors.ask("small@first,scripted")).model == "small@first"


async def test_calls_that_are_still_running_speak_for_a_model(vendors: Vendors) -> None:
    others = 2 * LEAST_FAILURES + 1
    vendors.first.will_send(*[HANGS] * others, *[VENDOR.failure(404)] * LEAST_FAILURES, ANSWER)

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(vendors.ask("small@first,scripted")) for _ in range(others)]
        await wait_until(lambda: len(vendors.first.received) == others)
        for _ in range(LEAST_FAILURES):
            await vendors.ask("small@first,scripted")
        after = await vendors.ask("small@first,scripted")
        for task in running:
            task.cancel()

    assert after.model == "small@first"


async def test_without_any_other_model_the_failure_is_reported_at_once_with_its_reason(
    vendors: Vendors,
) -> None:
    vendors.first.will_send(*[VENDOR.failure(500)] * 18)

    for _ in range(LEAST_FAILURES):
        with pytest.raises(ModelUnavailable, match=r"\(500\): The model did not work"):
            await vendors.ask("small@first")
    with (
        record_calls() as calls,
        pytest.raises(ModelUnavailable, match="not called again") as again,
    ):
        await vendors.ask("small@first")

    assert vendors.counts() == (2 * LEAST_FAILURES, 0)
    assert again.value.retry_after_seconds == pytest.approx(10)
    assert "The model did not work" in str(calls[0].error)


def content_filter() -> Response:
    return Response(body=VENDOR.answer("").body.replace(b'"stop"', b'"content_filter"'))


def filter_prompt() -> Response:
    error = {"message": "m", "code": "content_filter", "param": None, "type": "t"}
    return Response(400, json.dumps({"error": error}).encode())


@pytest.mark.parametrize(
    "response",
    [VENDOR.refusal(), content_filter(), filter_prompt()],
    ids=["refusal", "filtered answer", "filtered prompt"],
)
async def test_a_request_that_one_model_rejects_goes_to_the_next(
    vendors: Vendors, response: Response
) -> None:
    vendors.first.will_send(response, ANSWER)
    vendors.second.will_send(ANSWER)

    answer = await vendors.ask()
    next_question = await vendors.ask()

    assert answer.model == "large@second"
    # A refusal is about one question: the model stays in use.
    assert next_question.model == "small@first"


async def test_a_wrong_key_is_reported_once_and_costs_later_questions_nothing(
    vendors: Vendors,
) -> None:
    vendors.first.will_send(*[VENDOR.failure(401)] * 5)
    vendors.second.will_send(*[ANSWER] * 3)

    with structlog.testing.capture_logs() as logs, record_calls() as calls:
        answers = [await vendors.ask() for _ in range(3)]

    assert [answer.model for answer in answers] == ["large@second"] * 3
    assert vendors.counts() == (1, 3)
    [line] = [log for log in logs if log["event"] == "model_left_alone"]
    assert "COMPATIBLE_SERVERS" in line["reason"]
    assert line["model"] == "small@first"
    errors = [call.error for call in calls if call.model == "small@first"]
    assert len(errors) == 3
    assert all("MissingKey" in str(error) and "401" in str(error) for error in errors)
    assert "key-of-first" not in str(logs) + str(calls)


async def test_a_wrong_key_without_another_model_is_reported_at_once(vendors: Vendors) -> None:
    vendors.first.will_send(*[VENDOR.failure(401)] * 5)

    for _ in range(3):
        with pytest.raises(MissingKey, match="COMPATIBLE_SERVERS"):
            await vendors.ask("small@first")

    assert vendors.counts() == (1, 0)


async def test_a_chain_that_hangs_leaves_time_for_the_rules(vendors: Vendors) -> None:
    vendors.first.will_send(HANGS)
    vendors.second.will_send(HANGS)

    run = start_run(MESSAGE, stage="essence", attempt=0, remaining_seconds=2.0)
    async with within(2.0):
        answer = await vendors.ask(f"{CHAIN},scripted", run)

    assert answer.model == "scripted"


async def test_a_call_with_hardly_any_time_does_not_count_against_the_vendor(
    vendors: Vendors,
) -> None:
    vendors.first.will_send(HANGS)

    run = start_run(MESSAGE, stage="essence", attempt=0, remaining_seconds=0.05)
    with pytest.raises(ModelUnavailable):
        await vendors.ask("small@first", run)
    # The request may have been given up before it was sent.
    vendors.first.responses.clear()
    vendors.first.will_send(ANSWER)

    assert (await vendors.ask("small@first")).model == "small@first"


async def test_another_attempt_stays_with_the_vendors(vendors: Vendors) -> None:
    vendors.first.will_send(*[ANSWER] * 2)
    model = vendors.registry.model("small@first,scripted")

    models = [(await model.ask(COLOUR, SKY, OUTSIDE, skip=skip)).model for skip in (0, 1)]

    assert models == ["small@first"] * 2


async def test_a_model_that_is_left_alone_keeps_no_healthy_one_behind_it_waiting(
    vendors: Vendors,
) -> None:
    chain = "small@first,other@first,large@second"
    vendors.first.will_send(VENDOR.failure(429, retry_after="60"), HANGS)
    vendors.second.will_send(ANSWER)
    with pytest.raises(RateLimited):
        await vendors.ask("other@first")

    async with within(8):
        answer = await vendors.ask(chain)

    assert answer.model == "large@second"
    assert vendors.counts() == (2, 1)
