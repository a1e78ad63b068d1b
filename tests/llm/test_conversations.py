"""Conversations with tools: their values, and what every vendor makes of them on the wire."""

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from envelope.question import Question
from envelope.run import OUTSIDE
from llm.chain import ChainLink, FallbackChain
from llm.errors import ModelUnavailable, RateLimited, Refused, UnreadableOutput
from llm.port import (
    ConversationModel,
    ModelMessage,
    ModelStep,
    StopReason,
    TextListener,
    ToolChoice,
    ToolConversation,
    ToolDescription,
    ToolMessage,
    ToolUse,
    Usage,
    UserMessage,
    record_calls,
)
from llm.registry import Registry
from llm.stored_model import StoredModel
from llm.vendors.catalogue import VendorAccess
from tests.llm.conftest import QUICK
from tests.llm.sample_task import BLUE, COLOUR, SKY, CallsInMemory, PlainPrompts
from tests.llm.step_dialects import AnthropicSteps, GoogleSteps, OpenAISteps, StepDialect
from tests.support.model_server import ModelServer
from tests.support.runs import start_run
from tests.support.scripted_model import ScriptedModel, ScriptError

SEARCH = ToolDescription(
    name="search",
    description="Searches.",
    input_schema={
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    },
)
ASKED = ToolConversation(
    task="reason",
    system="Answer from the documents.",
    messages=(UserMessage(text="What is the fee?"),),
    tools=(SEARCH,),
)
CALLS = (
    ToolUse(call_id="c1", name="search", arguments={"query": "fee"}),
    ToolUse(call_id="c2", name="search", arguments={"query": "price"}),
)
ANSWERED = ASKED.extend(
    ModelMessage(text="I search.", calls=CALLS),
    ToolMessage(call_id="c1", name="search", text="150 euros", sources=("a#0",)),
    ToolMessage(call_id="c2", name="search", text="no such page", is_error=True),
)


@pytest.fixture(
    params=[OpenAISteps(), GoogleSteps(), AnthropicSteps()], ids=["openai", "google", "anthropic"]
)
def steps(request: pytest.FixtureRequest) -> StepDialect:
    dialect: StepDialect = request.param
    return dialect


@pytest.fixture
async def model(server: ModelServer, steps: StepDialect) -> AsyncIterator[ConversationModel]:
    access = VendorAccess(api_key="secret-key", base_url=steps.base_url(server.url))
    registry = Registry(
        prompts=PlainPrompts(), access={steps.provider: access}, timeout_seconds=10, retries=QUICK
    )
    made = registry.model(f"{steps.model}@{steps.provider}")
    assert isinstance(made, ConversationModel)
    yield made
    await registry.close()


def test_a_conversation_travels_as_json_with_calls_and_results() -> None:
    assert ToolConversation.model_validate_json(ANSWERED.model_dump_json()) == ANSWERED
    assert len(ASKED.messages) == 1


async def test_parallel_calls_arrive_with_their_arguments_and_the_usage(
    server: ModelServer, steps: StepDialect, model: ConversationModel
) -> None:
    server.will_send(steps.calls("I search.", *CALLS))

    with record_calls() as made:
        step = await model.converse(ASKED, OUTSIDE)

    assert step.stop is StopReason.TOOL_USE
    assert step.message.text == "I search."
    assert [(tool_use.name, tool_use.arguments) for tool_use in step.message.calls] == [
        ("search", {"query": "fee"}),
        ("search", {"query": "price"}),
    ]
    assert len({tool_use.call_id for tool_use in step.message.calls}) == 2
    assert step.usage == Usage(input_tokens=100, output_tokens=20, cached_input_tokens=40)
    assert [(call.task, call.usage, call.error) for call in made] == [("reason", step.usage, None)]


async def test_the_vendor_receives_tools_calls_and_results_in_its_form(
    server: ModelServer, steps: StepDialect, model: ConversationModel
) -> None:
    server.will_send(steps.calls("150 euros."))

    step = await model.converse(ANSWERED, OUTSIDE)

    assert (step.stop, step.message) == (StopReason.END_TURN, ModelMessage(text="150 euros."))
    sent = server.received[0].body
    assert steps.tools_of(sent) == [("search", "Searches.", SEARCH.input_schema)]
    assert steps.turns_of(sent) == [
        ("user", "What is the fee?"),
        ("model", "I search."),
        ("call", "c1 search " + json.dumps({"query": "fee"})),
        ("call", "c2 search " + json.dumps({"query": "price"})),
        ("result", "c1 150 euros"),
        ("result", "c2 no such page"),
    ]
    assert "secret-key" not in json.dumps(sent)


async def test_names_and_ids_that_a_vendor_refuses_are_sent_in_a_form_that_it_accepts(
    server: ModelServer, steps: StepDialect, model: ConversationModel
) -> None:
    odd = {"call_id": "functions.search:0/" + 50 * "x", "name": "3 multi.tool/parallel" + 80 * "y"}
    asked = ASKED.extend(
        ModelMessage(calls=(ToolUse(**odd), ToolUse(call_id="c2", name="search"))),
        ToolMessage(**odd, text="there is no such tool", is_error=True),
        ToolMessage(call_id="c2", name="search", text="150 euros"),
    )
    server.will_send(steps.calls("150 euros."))

    step = await model.converse(asked, OUTSIDE)

    assert step.message.text == "150 euros."
    turns = steps.turns_of(server.received[0].body)
    odd_call, known_call = (text for kind, text in turns if kind == "call")
    odd_result, _ = (text for kind, text in turns if kind == "result")
    assert odd_call.split()[0] == odd_result.split()[0] != odd["call_id"]
    assert known_call == "c2 search {}"


@pytest.mark.parametrize("choice", list(ToolChoice))
async def test_whether_tools_may_be_called_is_sent(
    server: ModelServer, steps: StepDialect, model: ConversationModel, choice: ToolChoice
) -> None:
    server.will_send(steps.calls("Text."))

    await model.converse(ASKED.model_copy(update={"tool_choice": choice}), OUTSIDE)

    assert steps.choice_of(server.received[0].body) == choice


async def test_a_truncated_step_is_marked(
    server: ModelServer, steps: StepDialect, model: ConversationModel
) -> None:
    server.will_send(steps.cut("The fee is"))

    assert (await model.converse(ASKED, OUTSIDE)).stop is StopReason.MAX_TOKENS


async def test_a_refusal_and_an_empty_message_are_errors(
    server: ModelServer, steps: StepDialect, model: ConversationModel
) -> None:
    server.will_send(steps.refusal(), steps.calls(""), steps.calls(""))

    with pytest.raises(Refused):
        await model.converse(ASKED, OUTSIDE)
    with pytest.raises(UnreadableOutput):
        await model.converse(ASKED, OUTSIDE)


async def test_a_failure_is_repeated_and_one_that_stays_is_reported(
    server: ModelServer, steps: StepDialect, model: ConversationModel
) -> None:
    server.will_send(steps.failure(500), steps.calls("Text."), *[steps.failure(429)] * 5)

    assert (await model.converse(ASKED, OUTSIDE)).message.text == "Text."
    with pytest.raises(RateLimited):
        await model.converse(ASKED, OUTSIDE)


async def test_an_invalid_response_is_unreadable_and_requested_again(
    server: ModelServer, steps: StepDialect, model: ConversationModel
) -> None:
    server.will_send(*[steps.nonsense()] * 5)

    with pytest.raises(UnreadableOutput):
        await model.converse(ASKED, OUTSIDE)

    assert len(server.received) == 2


async def test_arguments_that_are_not_json_reach_the_executor_as_text(
    server: ModelServer,
) -> None:
    steps = OpenAISteps()
    server.will_send(steps.raw_call("search", '{"query": '))
    access = {"openai": VendorAccess(api_key="k", base_url=steps.base_url(server.url))}
    registry = Registry(prompts=PlainPrompts(), access=access, retries=QUICK)
    model = registry.model("gpt-4o-mini@openai")
    assert isinstance(model, ConversationModel)

    step = await model.converse(ASKED, OUTSIDE)
    await registry.close()

    assert step.message.calls[0].arguments == '{"query": '


async def test_anthropic_answers_typed_tasks_too_streamed_and_whole(server: ModelServer) -> None:
    steps = AnthropicSteps()
    server.will_send(steps.calls(BLUE.model_dump_json()), steps.stream(BLUE.model_dump_json()))
    access = {"anthropic": VendorAccess(api_key="k", base_url=steps.base_url(server.url))}
    registry = Registry(prompts=PlainPrompts(), access=access, retries=QUICK)
    model = registry.model("claude-sonnet-4-5")

    whole = await model.ask(COLOUR, SKY, OUTSIDE)
    streamed = await model.ask(COLOUR, SKY, OUTSIDE, listener=TextListener("colour"))
    await registry.close()

    assert (whole.output, whole.usage.input_tokens) == (BLUE, 100)
    assert (streamed.output, streamed.usage) == (BLUE, whole.usage)
    assert server.received[0].headers["x-api-key"] == "k"
    [block] = server.received[0].body["system"]
    assert block["cache_control"] == {"type": "ephemeral"}
    assert server.received[0].headers["anthropic-version"]


QUESTION = Question(tenant="tenant", assistant="desk", conversation_id="c1", message_id="m1")


async def test_equal_steps_of_one_hop_are_two_calls_and_a_redelivery_pays_for_none() -> None:
    usage, cost = Usage(10, 2), Decimal("0.01")
    paid = ScriptedModel(
        [ModelMessage(text="one"), ModelMessage(text="two")], usage=usage, cost_usd=cost
    )
    model = StoredModel(paid, CallsInMemory(), prompts=None)

    async def run_hop() -> list[ModelStep]:
        run = start_run(QUESTION, stage="reason", attempt=0)
        return [await model.converse(ASKED, run) for _ in range(2)]

    first = await run_hop()
    with record_calls() as calls:
        again = await run_hop()

    assert [step.message.text for step in first] == ["one", "two"]
    assert [step.message for step in again] == [step.message for step in first]
    assert all(step.from_store for step in again)
    assert [(call.from_store, call.cost_usd) for call in calls] == [(True, cost)] * 2
    assert len(paid.calls) == 2


async def test_the_next_model_of_a_chain_continues_the_conversation() -> None:
    failing = ScriptedModel([ModelUnavailable("away")], name="first")
    second = ScriptedModel([ModelMessage(text="", calls=CALLS)], name="second")
    chain = FallbackChain([ChainLink(failing), ChainLink(second)])

    step = await chain.converse(ASKED)

    assert (step.model, step.message.calls) == ("second", CALLS)


async def test_a_script_of_another_kind_is_an_error() -> None:
    with pytest.raises(ScriptError):
        await ScriptedModel([BLUE]).converse(ASKED)


def test_facts_stay_out_of_every_request() -> None:
    from llm.vendors.google import make_contents
    from llm.vendors.openai import make_parameters
    from llm.vendors.wire import Request

    secret: dict[str, Any] = {"hint": "for rules alone"}
    informed = ASKED.model_copy(update={"facts": secret})

    sent = (make_parameters(Request(informed, 1.0)), make_contents(informed))
    assert "rules alone" not in str(sent)
