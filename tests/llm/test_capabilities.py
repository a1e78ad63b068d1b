"""What a server cannot do is found out on the wire, left out, and remembered."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from envelope.run import OUTSIDE
from llm.errors import RejectedRequest
from llm.port import ModelAnswer, record_calls
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from tests.llm.sample_task import BLUE, COLOUR, SKY, Colour, PlainPrompts
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Response

VENDOR = OpenAI()
TEXT = BLUE.model_dump_json()
ANSWER = VENDOR.answer(TEXT)
SCHEMA_IN_PROMPT = "You do json_object."
"""How the sample prompts describe the schema."""


@pytest.fixture
async def registry(server: ModelServer) -> AsyncIterator[Registry]:
    registry = Registry(
        prompts=PlainPrompts(), access={"openai": VendorAccess("k", f"{server.url}/v1")}
    )
    yield registry
    await registry.close()


async def ask(registry: Registry, model: str = "local-7b@openai") -> ModelAnswer[Colour]:
    return await registry.model(model).ask(COLOUR, SKY, OUTSIDE)


def rejection(message: str, parameter: str | None = None, status: int = 400) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": parameter, "code": None}
    return Response(status, json.dumps({"error": error}).encode())


def form(body: dict[str, Any]) -> str:
    return str(body.get("response_format", {"type": "none"})["type"])


NO_SCHEMA = rejection(
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    "response_format",
)
NO_OBJECT = rejection(
    "Invalid parameter: 'response_format' of type 'json_object' is not supported with this model.",
    "response_format",
)


async def test_a_model_without_schemas_and_json_mode_is_asked_in_words_from_then_on(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(NO_SCHEMA, NO_OBJECT, ANSWER, ANSWER)

    first = await ask(registry, "gpt-4@openai")
    second = await ask(registry, "gpt-4@openai")

    bodies = [received.body for received in server.received]
    assert (first.output, second.output) == (BLUE, BLUE)
    assert [form(body) for body in bodies] == ["json_schema", "json_object", "none", "none"]
    systems = [VENDOR.said(received)[0][1] for received in server.received]
    assert [SCHEMA_IN_PROMPT in system for system in systems] == [False, True, True, True]


async def test_a_missing_capability_of_one_model_does_not_affect_another(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(NO_SCHEMA, ANSWER, ANSWER)

    await ask(registry, "gpt-4@openai")
    await ask(registry, "gpt-4o@openai")

    assert [form(received.body) for received in server.received] == [
        "json_schema",
        "json_object",
        "json_schema",
    ]


@pytest.mark.parametrize(
    "response",
    [
        rejection("unknown field"),
        rejection("[{'loc': ['body', 'response_format'], 'msg': 'not permitted'}]", status=422),
        rejection("grammar is not supported", status=400),
    ],
    ids=["unnamed", "422", "grammar"],
)
async def test_servers_reject_schemas_in_many_words(
    server: ModelServer, registry: Registry, response: Response
) -> None:
    server.will_send(response, ANSWER)

    assert (await ask(registry)).output == BLUE
    assert [form(received.body) for received in server.received] == ["json_schema", "json_object"]


async def test_a_server_that_ignores_schemas_gets_them_in_words(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(VENDOR.answer("The sky is blue."), ANSWER, ANSWER)

    with record_calls() as calls:
        first = await ask(registry)
    second = await ask(registry)

    assert (first.output, second.output) == (BLUE, BLUE)
    systems = [VENDOR.said(received)[0][1] for received in server.received]
    assert [SCHEMA_IN_PROMPT in system for system in systems] == [False, True, True]
    assert [call.error is None for call in calls] == [False, True]


async def test_a_value_out_of_range_is_repaired_without_giving_up_the_schema(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(VENDOR.answer('{"name": "blue", "shade": 7, "notes": []}'), ANSWER, ANSWER)

    await ask(registry)
    await ask(registry)

    assert {form(received.body) for received in server.received} == {"json_schema"}


@pytest.mark.parametrize(
    "text",
    [
        f"<think>It is day. {{maybe}}</think>\n{TEXT}",
        f"<think>\n</think>\n\n```json\n{TEXT}\n```",
        f"It is day, so.</think>{TEXT}",
        f"```\n{TEXT}\n```",
        f"```json\n{TEXT}\n```\nI hope this helps.",
        f"```json\n{TEXT}",
        f"Here is the answer:\n\n```json\n{TEXT}\n```",
        f"Here is the answer: {TEXT} I hope this helps.",
        f"\ufeff \n{TEXT}",
    ],
    ids=[
        "thoughts", "thoughts and fence", "thoughts without a begin", "fence", "fence and closing",
        "fence without an end", "introduction and fence", "prose around", "byte order mark",
    ],
)  # fmt: skip
async def test_json_is_extracted_from_surrounding_text_of_local_servers(
    server: ModelServer, registry: Registry, text: str
) -> None:
    server.will_send(VENDOR.answer(text))

    assert (await ask(registry)).output == BLUE
    assert len(server.received) == 1


async def test_a_mark_of_thoughts_inside_an_answer_is_part_of_it(
    server: ModelServer, registry: Registry
) -> None:
    said = Colour(name="blue", notes=("Close the tag </think> yourself.",))
    server.will_send(VENDOR.answer(said.model_dump_json()))

    assert (await ask(registry)).output == said


@pytest.mark.parametrize("model", ["gpt-5-mini", "o3", "openai/gpt-5-mini"])
async def test_reasoning_models_behind_an_address_get_their_parameters(
    server: ModelServer, registry: Registry, model: str
) -> None:
    server.will_send(ANSWER)

    await ask(registry, f"{model}@openai")

    body = server.received[0].body
    assert body["max_completion_tokens"] > COLOUR.max_output_tokens
    assert body["reasoning_effort"] == "low"
    assert not {"max_tokens", "temperature"} & set(body)


async def test_other_models_behind_an_address_get_the_older_parameter(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(ANSWER)

    await ask(registry)

    body = server.received[0].body
    assert (body["max_tokens"], body["temperature"]) == (COLOUR.max_output_tokens, 0.0)
    assert "max_completion_tokens" not in body


async def test_a_reasoning_model_under_another_name_is_found_out(
    server: ModelServer, registry: Registry
) -> None:
    newer = rejection(
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "max_tokens",
    )
    cold = rejection("Unsupported value: 'temperature' does not support 0.0.", "temperature")
    server.will_send(newer, cold, ANSWER, ANSWER)

    await ask(registry, "our-deployment@openai")
    await ask(registry, "our-deployment@openai")

    bodies = [received.body for received in server.received]
    assert ["max_tokens" in body for body in bodies] == [True, False, False, False]
    assert ["temperature" in body for body in bodies] == [True, True, False, False]
    assert bodies[3]["max_completion_tokens"] > COLOUR.max_output_tokens


async def test_a_server_that_knows_no_reasoning_effort_is_not_sent_it_again(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(rejection("Unknown parameter: 'reasoning_effort'."), ANSWER)

    await ask(registry, "gpt-5-mini@openai")

    assert "reasoning_effort" not in server.received[1].body
    assert form(server.received[1].body) == "json_schema"


async def test_a_request_that_is_too_long_is_not_asked_in_other_words(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(
        rejection("This model's maximum context length is 8192 tokens.", "messages"), ANSWER
    )

    with pytest.raises(RejectedRequest, match="maximum context length"):
        await ask(registry)

    assert len(server.received) == 1


async def test_a_server_that_rejects_everything_is_reported_by_its_first_reason(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(NO_SCHEMA, *[rejection("still no")] * 10)

    with pytest.raises(RejectedRequest, match="json_schema"):
        await ask(registry)

    assert len(server.received) <= 4


async def test_servers_that_contradict_themselves_are_not_asked_for_ever(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(
        *[rejection("no", "max_tokens"), rejection("no", "max_completion_tokens")] * 10
    )

    with pytest.raises(RejectedRequest):
        await ask(registry)

    assert len(server.received) <= 4
