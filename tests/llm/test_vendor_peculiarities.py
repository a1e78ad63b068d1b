"""What one vendor does and the other does not."""

import json
from collections.abc import AsyncIterator

import pytest

from config.prompts import PromptFiles
from envelope.run import OUTSIDE
from llm.errors import MissingKey, ModelError, QuotaExhausted, RateLimited, Refused, UnknownModel
from llm.port import ToolConversation
from llm.prompts import OWN_PROMPTS
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.google import thoughts
from llm.vendors.openai import sampling
from llm.vendors.wire import Request
from tests.llm.sample_task import BLUE, COLOUR, SKY, PlainPrompts, Question, Written
from tests.llm.vendor_dialects import Google, OpenAI
from tests.support.model_server import ModelServer, Response


class PromptsWithOurOwn(PlainPrompts):
    """The vendors' own prompts from their files."""

    def __init__(self) -> None:
        self._files = PromptFiles(OWN_PROMPTS)

    def render(self, task_name: str, inputs: object) -> Written:
        if isinstance(inputs, Question):
            return super().render(task_name, inputs)
        made = self._files.render(task_name, inputs)  # type: ignore[arg-type] # ours are models
        return Written(made.system, made.user, made.hash)


@pytest.fixture
async def registry(server: ModelServer) -> AsyncIterator[Registry]:
    registry = Registry(
        prompts=PromptsWithOurOwn(),
        access={
            "openai": VendorAccess(base_url=f"{server.url}/v1"),
            "google": VendorAccess(api_key="k", base_url=server.url),
            "deepinfra": VendorAccess(api_key="k", base_url=f"{server.url}/v1"),
        },
    )
    yield registry
    await registry.close()


def failure(http_status: int, **error: object) -> Response:
    return Response(http_status, json.dumps({"error": error}).encode())


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (failure(429, message="m", code="insufficient_quota"), QuotaExhausted),
        (failure(400, message="m", code="model_not_found"), UnknownModel),
        (
            failure(
                400,
                message="/chat/completions: Invalid model name passed in model=gpt-4.",
                type="invalid_request_error",
                code="400",
            ),
            UnknownModel,
        ),
        (failure(400, message="m is not a valid model ID", code=400), UnknownModel),
        (failure(400, message="Use another one.", type="invalid_model"), UnknownModel),
        (failure(400, message="m", code="content_filter"), Refused),
    ],
    ids=["quota", "model", "litellm", "openrouter", "type", "filter"],
)
async def test_openai_error_codes_refine_the_status(
    server: ModelServer, registry: Registry, response: Response, expected: type[ModelError]
) -> None:
    server.will_send(response)

    with pytest.raises(expected):
        await registry.model("gpt-4@openai").ask(COLOUR, SKY, OUTSIDE)

    assert len(server.received) == 1


async def test_google_reports_a_wrong_key_as_a_bad_request(
    server: ModelServer, registry: Registry
) -> None:
    details = [{"@type": "ErrorInfo", "reason": "API_KEY_INVALID"}]
    server.will_send(failure(400, code=400, message="m", status="INVALID", details=details))

    with pytest.raises(MissingKey):
        await registry.model("gemini-2.5-flash").ask(COLOUR, SKY, OUTSIDE)


async def test_google_states_when_to_retry_in_the_body(
    server: ModelServer, registry: Registry
) -> None:
    details = [{"@type": "Help"}, {"@type": "RetryInfo", "retryDelay": "34.5s"}]
    server.will_send(failure(429, code=429, message="m", status="EXHAUSTED", details=details))

    with pytest.raises(RateLimited) as caught:
        await registry.model("gemini-2.5-flash").ask(COLOUR, SKY, OUTSIDE)

    assert caught.value.retry_after_seconds == 34.5


async def test_google_stops_an_answer_as_a_refusal(server: ModelServer, registry: Registry) -> None:
    stopped = {"candidates": [{"finishReason": "SAFETY"}]}
    server.will_send(Response(body=json.dumps(stopped).encode()))

    with pytest.raises(Refused, match="SAFETY"):
        await registry.model("gemini-2.5-flash").ask(COLOUR, SKY, OUTSIDE)


@pytest.mark.parametrize("path", ["/proxy/v1beta", "/proxy/v1beta/"])
async def test_an_address_of_google_may_name_the_version_of_its_api(
    server: ModelServer, path: str
) -> None:
    access = {"google": VendorAccess(api_key="k", base_url=f"{server.url}{path}")}
    registry = Registry(prompts=PlainPrompts(), access=access)
    server.will_send(Google().answer(BLUE.model_dump_json()))

    answer = await registry.model("gemini-2.5-flash").ask(COLOUR, SKY, OUTSIDE)
    await registry.close()

    assert answer.output == BLUE
    assert server.received[0].path.startswith("/proxy/v1beta/models/gemini-2.5-flash")


async def test_the_thoughts_of_google_are_paid_but_not_part_of_the_answer(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(Google().answer(BLUE.model_dump_json()))

    answer = await registry.model("gemini-2.5-flash").ask(COLOUR, SKY, OUTSIDE)

    config = server.received[0].body["generationConfig"]
    assert (answer.output, answer.usage.output_tokens) == (BLUE, 20)
    (thoughts,) = config["thinkingConfig"].values()
    assert config["maxOutputTokens"] == 64 + thoughts


@pytest.mark.parametrize(
    ("model", "thinks"),
    [("gemini-2.5-pro", True), ("gemini-3-pro-preview", True), ("gemini-2.0-flash", False)],
)
def test_models_of_google_that_think_get_room_for_it(model: str, *, thinks: bool) -> None:
    budget, room = thoughts(model)

    assert (budget is not None) is thinks
    assert (room > 0) is thinks


async def test_a_server_without_json_schema_gets_the_schema_in_the_prompt(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(OpenAI().answer(BLUE.model_dump_json()))

    answer = await registry.model("local-7b@deepinfra").ask(COLOUR, SKY, OUTSIDE)

    sent = server.received[0]
    assert answer.output == BLUE
    assert sent.body["response_format"] == {"type": "json_object"}
    assert '"required": ["name", "shade", "notes"]' in OpenAI().said(sent)[0][1]
    assert sent.body["max_tokens"] == 64


async def test_a_server_that_does_not_count_has_an_unknown_price(
    server: ModelServer, registry: Registry
) -> None:
    body = json.loads(OpenAI().answer(BLUE.model_dump_json()).body)
    del body["usage"]
    server.will_send(Response(body=json.dumps(body).encode()))

    answer = await registry.model("local-7b@openai").ask(COLOUR, SKY, OUTSIDE)

    assert answer.cost_usd is None


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-5-mini", True),
        ("o3", True),
        ("gpt-6", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4.1", False),
        ("gpt-4o", False),
    ],
)
def test_reasoning_models_get_room_for_thoughts_and_no_temperature(
    model: str, *, reasons: bool
) -> None:
    conversation = ToolConversation(task="colour", messages=(), max_output_tokens=100)
    request = Request(conversation, 1.0)

    parameters = sampling(model, request, compatible=False)

    assert ("temperature" in parameters) is not reasons
    assert (parameters["max_completion_tokens"] > 100) is reasons
