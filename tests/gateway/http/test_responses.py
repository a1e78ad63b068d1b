"""OpenAI's own client at the desk, with responses."""

from typing import Any

import openai
import pytest

from envelope.role import Role
from gateway.api_keys import Scope
from tests.gateway.http.test_completions import OPTIONS, SOURCE, asks_back
from tests.support.http_server import HttpServerFixture

QUESTION = "How do I add a rule?"


async def test_the_official_client_gets_a_response_with_its_sources(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"sources_used": [SOURCE]})

    response: Any = await desk.responses.create(model="docs", input=QUESTION)

    assert (response.status, response.output_text) == ("completed", "Open Routing [1].")
    [annotation] = response.output[0].content[0].annotations
    cited = response.output_text[annotation.start_index : annotation.end_index]
    assert (annotation.type, annotation.title, cited) == ("url_citation", "Rules", "[1]")
    assert response.sources[0]["number"] == 1
    assert response.usage.total_tokens == 0


async def test_a_stream_has_the_events_that_the_client_puts_together(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"sources_used": [SOURCE]})

    async with desk.responses.stream(model="docs", input=QUESTION) as stream:
        events = [event async for event in stream]
        final: Any = await stream.get_final_response()

    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-5:] == [
        "response.output_text.annotation.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == final.output_text == "Open Routing [1]."
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(events)))


async def test_a_response_continues_an_earlier_one(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    first = await desk.responses.create(model="docs", input=QUESTION)

    second = await desk.responses.create(
        model="docs", input="And a second one?", previous_response_id=first.id
    )
    third: Any = await desk.responses.create(
        model="docs", input="And a third?", previous_response_id=second.id
    )

    seen = http_server.harness.script.seen[Role.LANG]
    assert [len(item["history"]) for item in seen] == [0, 2, 4]
    assert third.previous_response_id == second.id


async def test_a_clarification_is_answered_by_the_next_response(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    asks_back(http_server)
    asked: Any = await desk.responses.create(model="docs", input="How do I set it up?")

    await desk.responses.create(model="docs", input="1", previous_response_id=asked.id)

    assert OPTIONS[0]["label"] in asked.output_text
    assert http_server.harness.script.seen[Role.LANG][-1]["open_pause"]


async def test_a_client_may_keep_the_history_itself(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    asks_back(http_server)
    history: list[Any] = [{"role": "user", "content": "How do I set it up?"}]
    asked: Any = await desk.responses.create(model="docs", input=history, store=False)
    history += asked.output
    history.append({"role": "user", "content": [{"type": "input_text", "text": "1"}]})

    answered: Any = await desk.responses.create(model="docs", input=history, store=False)

    assert (asked.store, answered.store) == (False, False)
    seen = http_server.harness.script.seen[Role.LANG][-1]
    assert [turn["speaker"] for turn in seen["history"]] == ["user", "assistant"]
    assert seen["open_pause"]


async def test_a_response_of_another_key_or_assistant_continues_nothing(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    first = await desk.responses.create(model="docs", input=QUESTION)
    unkept = await desk.responses.create(model="docs", input=QUESTION, store=False)
    other = desk.with_options(api_key=await http_server.key())

    for client, model, name in (
        (other, "docs", first.id),
        (desk, "api", first.id),
        (desk, "docs", unkept.id),
    ):
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(model=model, input="More", previous_response_id=name)
        assert refused.value.code == "previous_response_not_found"


async def test_unsupported_options_of_a_response_are_refused(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    tools: Any = [{"type": "function", "name": "f", "parameters": {}}]
    image: Any = [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]
    call: Any = [{"type": "function_call_output", "call_id": "1", "output": "x"}]
    unscoped = desk.with_options(api_key=await http_server.key(scopes=frozenset({Scope.FEEDBACK})))

    for wanted in (
        {"input": QUESTION, "tools": tools},
        {"input": image},
        {"input": call},
        {"input": QUESTION, "background": True},
        {"input": QUESTION, "conversation": "c", "previous_response_id": "resp_1"},
    ):
        with pytest.raises(openai.BadRequestError):
            await desk.responses.create(model="docs", **wanted)
    with pytest.raises(openai.NotFoundError):
        await desk.responses.create(model="nowhere", input=QUESTION)
    with pytest.raises(openai.PermissionDeniedError):
        await unscoped.responses.create(model="docs", input=QUESTION)
