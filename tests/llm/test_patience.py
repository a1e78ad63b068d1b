"""How long one answer may take, and who waits for what."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import stamina.instrumentation
from stamina.instrumentation import RetryDetails

from envelope.question import Question as Message
from envelope.run import OUTSIDE
from llm.errors import ModelTimeout, ModelUnavailable, RateLimited
from llm.port import record_calls
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.guard import retry_after_seconds
from llm.vendors.model_transport import RetryRules, Transport, remaining_seconds
from tests.llm.sample_task import BLUE, COLOUR, SKY, PlainPrompts
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Response
from tests.support.runs import start_run
from tests.support.waiting import within

MESSAGE = Message(tenant="t", assistant="a", conversation_id="c", message_id="m")
NAME = "gpt-4@openai"
ANSWER = OpenAI().answer(BLUE.model_dump_json())


class Places:
    """A limiter that lets wait as its script says, and then passes."""

    def __init__(self, *waits: float) -> None:
        self.asked: list[tuple[str, int]] = []
        self._waits = list(waits)

    async def acquire(self, model: str, tokens: int) -> float:
        self.asked.append((model, tokens))
        return self._waits.pop(0) if self._waits else 0.0


def make_registry_at_places(server: ModelServer, *waits: float) -> tuple[Registry, Places]:
    places = Places(*waits)
    registry = Registry(
        prompts=PlainPrompts(),
        access={"openai": VendorAccess(base_url=f"{server.url}/v1")},
        retries=RetryRules(attempts=3, wait_initial_seconds=0.001, wait_max_seconds=0.002),
        limiter=places,
    )
    return registry, places


@pytest.fixture
async def registry(server: ModelServer) -> AsyncIterator[Registry]:
    registry, _ = make_registry_at_places(server)
    yield registry
    await registry.close()


@pytest.fixture
def waits() -> Iterator[list[float]]:
    """Return how long was waited before each further attempt."""
    seen: list[float] = []

    def note(details: RetryDetails) -> None:
        seen.append(details.wait_for)

    before = stamina.instrumentation.get_on_retry_hooks()
    stamina.instrumentation.set_on_retry_hooks([note])
    yield seen
    stamina.instrumentation.set_on_retry_hooks(before)


async def test_a_retry_waits_for_the_delay_that_the_vendor_states(
    server: ModelServer, registry: Registry, waits: list[float]
) -> None:
    vendor = OpenAI()
    server.will_send(
        vendor.failure(429, retry_after="0.03"),
        vendor.failure(503, retry_after_ms="20"),
        ANSWER,
    )

    await registry.model(NAME).ask(COLOUR, SKY, OUTSIDE)

    assert waits == pytest.approx([0.03, 0.02])


async def test_a_hop_without_time_left_does_not_wait_for_a_retry(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(OpenAI().failure(429, retry_after="5"))

    run = start_run(MESSAGE, stage="essence", attempt=0, remaining_seconds=4)
    with pytest.raises(RateLimited):
        await registry.model(NAME).ask(COLOUR, SKY, run)

    assert len(server.received) == 1


async def test_a_request_takes_no_longer_than_the_hop_has_left(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(Response(ends="never"))

    run = start_run(MESSAGE, stage="essence", attempt=0, remaining_seconds=0.1)
    with pytest.raises(ModelTimeout):
        await registry.model(NAME).ask(COLOUR, SKY, run)


async def test_the_time_left_is_the_smaller_of_limit_and_hop() -> None:
    outside = remaining_seconds(OUTSIDE, 30)
    run = start_run(MESSAGE, stage="essence", attempt=0, remaining_seconds=10)
    inside = remaining_seconds(run, 30), remaining_seconds(run, 1)
    over = start_run(MESSAGE, stage="essence", attempt=0, remaining_seconds=-1)
    late = remaining_seconds(over, 30)

    assert outside == 30
    assert 0 < inside[0] <= 10
    assert (inside[1], late) == (1, 0)


async def test_a_cancelled_call_is_in_the_record(server: ModelServer, registry: Registry) -> None:
    server.will_send(Response(ends="never"))

    with record_calls() as calls:
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(registry.model(NAME).ask(COLOUR, SKY, OUTSIDE))
            async with within(5):
                await server.was_asked.wait()
            asking.cancel()

    assert asking.cancelled()
    assert [call.error for call in calls] == ["cancelled before the model answered"]


async def test_a_place_within_the_limits_is_waited_for(server: ModelServer) -> None:
    registry, places = make_registry_at_places(server, 0.001, 0.001)
    server.will_send(ANSWER)

    await registry.model(NAME).ask(COLOUR, SKY, OUTSIDE)

    assert [model for model, _ in places.asked] == [NAME] * 3
    assert all(tokens > COLOUR.max_output_tokens for _, tokens in places.asked)
    await registry.close()


async def test_a_place_that_is_too_far_away_is_reported_as_a_limit(server: ModelServer) -> None:
    registry, _ = make_registry_at_places(server, *[120.0] * 3)

    with pytest.raises(RateLimited, match="MODEL_LIMITS of 'gpt-4@openai'") as caught:
        await registry.model(NAME).ask(COLOUR, SKY, OUTSIDE)

    assert caught.value.retry_after_seconds == 120
    assert server.received == []
    await registry.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_read_in_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


def test_retry_after_may_be_a_date_to_come() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)

    seconds = retry_after_seconds({"retry-after": date})

    assert seconds is not None
    assert 500 < seconds <= 600


async def test_only_transport_errors_are_retried() -> None:
    asked = []

    async def ask(_seconds: float) -> None:
        asked.append(1)
        raise ModelTimeout("slow") if len(asked) == 2 else ModelUnavailable("down")

    rules = RetryRules(attempts=5, wait_initial_seconds=0.001, wait_max_seconds=0.002)
    with pytest.raises(ModelTimeout):
        await Transport(NAME, 1.0, rules, None).call(OUTSIDE, 10, ask)

    assert len(asked) == 2
