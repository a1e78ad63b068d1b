"""Both vendors' real clients against a server that speaks as they do."""

import pytest

from envelope.run import OUTSIDE
from llm.errors import (
    AccessDenied,
    MissingKey,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
    Refused,
    RejectedRequest,
    UnknownModel,
    UnreadableOutput,
    WrongAddress,
)
from llm.port import ModelAnswer, Usage, record_calls
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.model_transport import RetryRules
from tests.llm.sample_task import BLUE, COLOUR, SKY, Colour, PlainPrompts
from tests.llm.vendor_dialects import Dialect
from tests.support.model_server import ModelServer, Response

ANSWER = BLUE.model_dump_json()
USAGE = Usage(input_tokens=100, output_tokens=20, cached_input_tokens=40)


async def ask(registry: Registry, dialect: Dialect) -> ModelAnswer[Colour]:
    return await registry.model(f"{dialect.model}@{dialect.provider}").ask(COLOUR, SKY, OUTSIDE)


async def test_an_answer_is_typed_and_reports_its_usage(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.answer(ANSWER))

    with record_calls() as calls:
        answer = await ask(registry, dialect)

    assert (answer.output, answer.usage) == (BLUE, USAGE)
    assert answer.model == f"{dialect.model}@{dialect.provider}"
    assert [(call.task, call.usage, call.error) for call in calls] == [("colour", USAGE, None)]
    assert calls[0].prompt_hash == "colour:" + SKY.model_dump_json()


async def test_the_vendor_is_sent_prompt_key_and_strict_schema(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.answer(ANSWER))

    await ask(registry, dialect)

    sent = server.received[0]
    assert dialect.said(sent) == [("system", "You do colour."), ("user", SKY.model_dump_json())]
    assert dialect.key(sent) == "secret-key"
    assert dialect.schema(sent)["required"] == ["name", "shade", "notes"]
    assert dialect.schema(sent)["additionalProperties"] is False


@pytest.mark.parametrize("status", [500, 502, 503, 429, 408])
async def test_a_failure_that_passes_is_asked_again(
    server: ModelServer, dialect: Dialect, registry: Registry, status: int
) -> None:
    server.will_send(dialect.failure(status), dialect.answer(ANSWER))

    answer = await ask(registry, dialect)

    assert answer.output == BLUE
    assert len(server.received) == 2


@pytest.mark.parametrize(
    ("status", "expected", "asked"),
    [
        (500, ModelUnavailable, 3),
        (429, RateLimited, 3),
        (400, RejectedRequest, 3),
        (401, MissingKey, 1),
        (403, AccessDenied, 1),
        (404, UnknownModel, 1),
    ],
)
async def test_a_permanent_failure_is_reported_with_its_type(
    server: ModelServer,
    dialect: Dialect,
    registry: Registry,
    status: int,
    expected: type[ModelError],
    asked: int,
) -> None:
    server.will_send(*[dialect.failure(status)] * 5)

    with record_calls() as calls, pytest.raises(expected) as caught:
        await ask(registry, dialect)

    assert type(caught.value) is expected
    assert dialect.model in str(caught.value)
    assert "secret-key" not in str(caught.value)
    assert len(server.received) == asked
    assert [call.error for call in calls] == [f"{expected.__name__}: {caught.value}"]


async def test_a_long_retry_after_is_handed_on_instead_of_waited_for(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.failure(429, retry_after="3600"))

    with pytest.raises(RateLimited) as caught:
        await ask(registry, dialect)

    assert caught.value.retry_after_seconds == 3600
    assert len(server.received) == 1


async def test_a_server_that_never_answers_is_not_waited_for_longer_than_allowed(
    server: ModelServer, dialect: Dialect
) -> None:
    vendor = VendorAccess(api_key="k", base_url=dialect.base_url(server.url))
    registry = Registry(
        prompts=PlainPrompts(), access={"openai": vendor, "google": vendor}, timeout_seconds=0.2
    )
    server.will_send(Response(ends="never"))

    with pytest.raises(ModelTimeout, match=r"within 0\.2 s|in time"):
        await ask(registry, dialect)

    assert len(server.received) == 1
    await registry.close()


async def test_a_response_that_is_cut_is_asked_for_again(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    whole = dialect.answer(ANSWER)
    server.will_send(Response(body=whole.body[:40], ends="cut"), whole)

    answer = await ask(registry, dialect)

    assert answer.output == BLUE
    assert len(server.received) == 2


async def test_a_web_page_is_reported_with_its_title_and_not_requested_again(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(Response(body=b"<html><title>Please log in</title>"))

    with pytest.raises(WrongAddress, match=r"Please log in.*_BASE_URL"):
        await ask(registry, dialect)

    assert len(server.received) == 1


async def test_an_unreachable_address_is_reported_as_unavailable(dialect: Dialect) -> None:
    nobody = VendorAccess(api_key="k", base_url="http://127.0.0.1:1")
    registry = Registry(
        prompts=PlainPrompts(),
        access={"openai": nobody, "google": nobody},
        retries=RetryRules(attempts=2, wait_initial_seconds=0.001, wait_max_seconds=0.001),
    )

    with pytest.raises(ModelUnavailable):
        await ask(registry, dialect)

    await registry.close()


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ('{"name": "blue"', "Invalid JSON"),
        ('{"name": "blue", "shade": 7}', "shade: Input should be less than or equal to 1"),
        ("[]", "Colour"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_repaired_once(
    server: ModelServer, dialect: Dialect, registry: Registry, broken: str, problem: str
) -> None:
    server.will_send(dialect.answer(broken), dialect.answer(ANSWER))

    with record_calls() as calls:
        answer = await ask(registry, dialect)

    (_, _, (speaker, said), (_, repair)) = dialect.said(server.received[1])
    assert (answer.output, answer.usage) == (BLUE, Usage(200, 40, 80))
    assert (speaker, said) == ("model", broken)
    assert problem in repair
    assert [call.error is None for call in calls] == [False, True]


async def test_an_empty_answer_is_repaired_without_repeating_it(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.answer(""), dialect.answer(ANSWER))

    answer = await ask(registry, dialect)

    assert answer.output == BLUE
    assert [speaker for speaker, _ in dialect.said(server.received[1])] == [
        "system",
        "user",
        "user",
    ]


async def test_an_answer_that_is_unreadable_twice_is_an_error_that_was_paid(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.answer("blue"), dialect.answer("still blue"))

    with pytest.raises(UnreadableOutput, match="Invalid JSON") as caught:
        await ask(registry, dialect)

    assert caught.value.usage == Usage(200, 40, 80)
    assert len(server.received) == 2


async def test_a_refusal_is_reported_and_not_retried(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.refusal())

    with pytest.raises(Refused) as caught:
        await ask(registry, dialect)

    assert caught.value.usage == USAGE
    assert len(server.received) == 1


async def test_a_truncated_answer_is_requested_again_with_more_tokens(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.cut_off('{"name": "bl'), dialect.answer(ANSWER))

    with record_calls() as calls:
        answer = await ask(registry, dialect)

    first, second = (dialect.room(received) for received in server.received)
    assert (answer.output, answer.usage) == (BLUE, Usage(200, 40, 80))
    assert second - first == 3 * COLOUR.max_output_tokens
    assert [call.error for call in calls] == ["UnreadableOutput: the answer was cut off", None]


WHOLE = '{"name": "blue", "shade": 0.25, "notes": ["By day it is blue. By night'


@pytest.mark.parametrize(
    ("cut", "then", "notes", "asked"),
    [
        (ANSWER, [], (), 1),
        (WHOLE, ["failure"] * 3, ("By day it is blue.",), 4),
        ('{"name": "bl', [WHOLE], ("By day it is blue.",), 2),
    ],
    ids=["cut after its end", "nobody gives more room", "cut twice"],
)
async def test_complete_parts_of_a_truncated_answer_are_read(
    server: ModelServer,
    dialect: Dialect,
    registry: Registry,
    cut: str,
    then: list[str],
    notes: tuple[str, ...],
    asked: int,
) -> None:
    later = [dialect.failure(500) if it == "failure" else dialect.cut_off(it) for it in then]
    server.will_send(dialect.cut_off(cut), *later)

    answer = await ask(registry, dialect)

    assert answer.output == Colour(name="blue", shade=0.25, notes=notes)
    assert len(server.received) == asked


async def test_an_answer_without_room_twice_and_without_a_whole_part_is_an_error(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(*[dialect.cut_off('{"name": "bl')] * 2)

    with pytest.raises(UnreadableOutput, match="256 tokens"):
        await ask(registry, dialect)

    assert len(server.received) == 2
