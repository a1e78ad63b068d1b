"""Time is divided: what prepares an answer leaves time for it, and nobody waits in vain twice."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from envelope.question import Question as Message
from envelope.run import OUTSIDE
from llm.errors import ModelTimeout
from llm.output_parsing import ask_and_follow
from llm.port import ModelAnswer, PartialText, TextListener
from llm.registry import Registry
from llm.stored_model import MOST_TIMEOUTS, StoredModel
from llm.vendors.catalogue import VendorAccess
from tests.llm.sample_task import BLUE, COLOUR, SKY, CallsInMemory, Colour, PlainPrompts
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Response
from tests.support.runs import start_run
from tests.support.scripted_model import ScriptedModel

PREPARING = replace(COLOUR, time_share=0.25)
ANSWER = OpenAI().answer(BLUE.model_dump_json())
SILENCE = Response(ends="never")


@pytest.fixture
async def registry(server: ModelServer) -> AsyncIterator[Registry]:
    registry = Registry(
        prompts=PlainPrompts(),
        access={"openai": VendorAccess(base_url=f"{server.url}/v1")},
        timeout_seconds=2.0,
        first_token_seconds=0.1,
        patience_seconds=0.01,
    )
    yield registry
    await registry.close()


async def test_a_call_that_prepares_an_answer_may_take_a_part_of_the_time_only(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(SILENCE)

    with pytest.raises(ModelTimeout, match=r"within 0\.5 s"):
        await registry.model("gpt-4@openai").ask(PREPARING, SKY, OUTSIDE)


async def test_a_model_that_ran_out_of_a_part_of_the_time_is_asked_for_the_answer(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(SILENCE, ANSWER)
    model = registry.model("gpt-4@openai")

    with pytest.raises(ModelTimeout):
        await model.ask(PREPARING, SKY, OUTSIDE)

    assert (await model.ask(COLOUR, SKY, OUTSIDE)).output == BLUE


async def follow(registry: Registry) -> ModelAnswer[Colour]:
    async def ignore(_partial: PartialText) -> None: ...

    model = registry.model("gpt-4@openai")
    return await ask_and_follow(
        TextListener(COLOUR.name),
        lambda listener: model.ask(COLOUR, SKY, OUTSIDE, listener=listener),
        ignore,
    )


async def test_a_streamed_answer_has_to_begin_in_time(
    server: ModelServer, registry: Registry
) -> None:
    held = asyncio.Event()
    server.will_send(replace(OpenAI().stream("", BLUE.model_dump_json()), gates={1: held}))

    with pytest.raises(ModelTimeout, match=r"did not start to respond within 0\.1 s"):
        await follow(registry)
    held.set()


async def test_a_streamed_answer_that_has_begun_may_take_the_whole_time(
    server: ModelServer, registry: Registry
) -> None:
    pieces = [BLUE.model_dump_json()[place : place + 4] for place in range(0, 40, 4)]
    server.will_send(replace(OpenAI().stream(*pieces), pause_seconds=0.015))

    assert (await follow(registry)).output.name == "blue"


async def test_a_model_that_ran_out_of_time_twice_is_not_asked_a_third_time_in_the_question() -> (
    None
):
    inner = ScriptedModel([ModelTimeout("late"), ModelTimeout("late"), BLUE])
    calls = CallsInMemory()

    async def ask(message_id: str, stage: str) -> Colour:
        # A process of its own for each stage: they share the store alone.
        model = StoredModel(inner, calls, prompts=PlainPrompts())
        message = Message(tenant="t", assistant="a", conversation_id="c", message_id=message_id)
        run = start_run(message, stage=stage, attempt=0)
        return (await model.ask(COLOUR, SKY, run)).output

    for stage in ("translation", "response", "quality"):
        with pytest.raises(ModelTimeout):
            await ask("m", stage)

    assert len(inner.calls) == MOST_TIMEOUTS
    assert await ask("another", "translation") == BLUE
