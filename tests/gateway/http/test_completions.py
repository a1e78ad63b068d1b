"""OpenAI's own client at the desk, unchanged."""

from typing import Any

import openai
import pytest

from broker.values import JournalEntry
from envelope.role import Role
from gateway.http.routes.completion_form import usage_of
from tests.support.http_server import WEBSITE, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

QUESTION: Any = {"role": "user", "content": "How do I add a rule?"}
SOURCE = {
    "number": 1,
    "chunk_id": "c",
    "title": "Rules",
    "path": "routing/rules.md",
    "anchor": "add",
}
OPTIONS = [
    {"label": "Set up a webhook", "value": "Set up a webhook", "kind": "option"},
    {"label": "Set up an account", "value": "Set up an account", "kind": "option"},
    {"label": "Cancel", "value": "Cancel", "kind": "exit"},
]


def asks_back(http_server: HttpServerFixture) -> None:
    script = http_server.harness.script
    asked = "How do I set it up?"
    script.ask_back(Role.ESSENCE, asked=asked, response="Which one?", suggested_actions=OPTIONS)


async def test_the_official_client_gets_an_answer_with_its_sources(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"sources_used": [SOURCE]})

    completion: Any = await desk.chat.completions.create(model="docs", messages=[QUESTION])

    [choice] = completion.choices
    assert choice.finish_reason == "stop"
    assert choice.message.role == "assistant"
    assert choice.message.content == "Open Routing [1]."
    [note] = choice.message.annotations
    cited = note.url_citation
    assert choice.message.content[cited.start_index : cited.end_index] == "[1]"
    assert (cited.title, cited.url) == ("Rules", completion.sources[0]["link"])
    assert cited.url.startswith(f"{http_server.url}/v1/reader/")
    assert cited.url.endswith("#add")
    assert completion.sources[0]["title"] == "Rules"
    assert completion.refdesk["outcome"] == "answered"
    assert completion.usage.total_tokens == 0
    assert completion.id.startswith("chatcmpl-")


async def test_the_official_client_gets_a_stream(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    text = "One word after the other makes a long answer, cited [1]. " * 5
    http_server.harness.script.next(Role.RESPONSE, {"response": text, "sources_used": [SOURCE]})

    stream = await desk.chat.completions.create(
        model="docs", messages=[QUESTION], stream=True, stream_options={"include_usage": True}
    )
    chunks: list[Any] = [chunk async for chunk in stream]

    deltas = [choice.delta for chunk in chunks for choice in chunk.choices]
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == text
    assert len(deltas) > 4
    assert reasons == [None] * (len(reasons) - 1) + ["stop"]
    assert len(deltas[-1].annotations) == 5
    assert chunks[-2].sources[0]["title"] == "Rules"
    assert (chunks[-1].choices, chunks[-1].usage.total_tokens) == ([], 0)


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("tools", [{"type": "function", "function": {"name": "weather", "parameters": {}}}]),
        ("tool_choice", "auto"),
        ("functions", [{"name": "weather", "parameters": {}}]),
        ("function_call", {"name": "weather"}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_tools_of_a_caller_are_refused_and_never_ignored(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI, param: str, value: Any, stream: bool
) -> None:
    offered: Any = {param: value}

    with pytest.raises(openai.BadRequestError) as raised:
        await desk.chat.completions.create(
            model="docs", messages=[QUESTION], stream=stream, **offered
        )

    assert (raised.value.status_code, raised.value.type) == (400, "invalid_request_error")
    assert (raised.value.code, raised.value.param) == ("unsupported_parameter", param)
    assert "does not call tools of the client" in raised.value.message


async def test_a_caller_that_offers_no_tools_in_so_many_words_is_answered(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    nothing: Any = {"tools": [], "tool_choice": "none", "functions": None, "function_call": "none"}

    completion: Any = await desk.chat.completions.create(
        model="docs", messages=[QUESTION], **nothing
    )

    assert completion.choices[0].finish_reason == "stop"


async def test_assistants_are_models(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    models = [model.id async for model in desk.models.list()]

    assert models == ["docs", "api"]
    assert (await desk.models.retrieve("api")).owned_by == "refdesk"
    await desk.chat.completions.create(model="api", messages=[QUESTION])
    with pytest.raises(openai.NotFoundError) as raised:
        await desk.chat.completions.create(model="gpt-5", messages=[QUESTION])
    assert raised.value.code == "model_not_found"


async def test_the_history_is_what_the_request_says(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is a rule?"},
        {"role": "assistant", "content": "A way."},
        {"role": "user", "content": [{"type": "text", "text": "How do I add it?"}]},
    ]

    await desk.chat.completions.create(model="docs", messages=messages)
    await desk.chat.completions.create(model="docs", messages=[QUESTION])

    first, second = http_server.harness.script.seen[Role.ESSENCE]
    assert first["text"] == "How do I add it?"
    assert [turn["text"] for turn in first["history"]] == ["What is a rule?", "A way."]
    assert second["history"] == ()


@pytest.mark.parametrize("streams", [False, True])
async def test_a_reply_to_a_question_back_is_recognised(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI, streams: bool
) -> None:
    vague: Any = {"role": "user", "content": "How do I set it up?"}
    asks_back(http_server)

    asked = await _content(desk, [vague], streams=streams)

    assert asked == "Which one?\n\n1. Set up a webhook\n2. Set up an account"
    reply: Any = [vague, {"role": "assistant", "content": asked}, {"role": "user", "content": "1"}]
    await _content(desk, reply, streams=streams)
    await _content(desk, [*reply[:2], {"role": "user", "content": "2"}], streams=streams)
    _, first, second = http_server.harness.script.seen[Role.ESSENCE]
    for seen in (first, second):
        assert seen["open_pause"]["original_question"] == "How do I set it up?"
        assert seen["open_pause"]["options"] == ("Set up a webhook", "Set up an account")


@pytest.mark.parametrize("streams", [False, True])
async def test_the_open_questions_of_a_message_are_offered_after_an_answer(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI, streams: bool
) -> None:
    both: Any = {"role": "user", "content": "2"}
    http_server.harness.script.next(
        Role.ESSENCE,
        {"canonical_question": "How do I add a rule?", "remaining_questions": ["Who may?"]},
    )

    answered = await _content(desk, [both], streams=streams)

    assert answered.endswith("1. Who may?")
    reply: Any = [
        both, {"role": "assistant", "content": answered}, {"role": "user", "content": "1"}
    ]  # fmt: skip
    await _content(desk, reply, streams=streams)
    pause = http_server.harness.script.seen[Role.ESSENCE][-1]["open_pause"]
    assert (pause["options"], pause["is_offer"]) == (("Who may?",), True)


async def test_another_key_is_not_taken_for_who_was_asked_back(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    vague: Any = {"role": "user", "content": "How do I set it up?"}
    asks_back(http_server)
    asked = await _content(desk, [vague], streams=False)
    other = desk.with_options(api_key=await http_server.key())

    reply: Any = [vague, {"role": "assistant", "content": asked}, {"role": "user", "content": "1"}]
    await _content(other, reply, streams=False)

    assert http_server.harness.script.seen[Role.ESSENCE][-1]["open_pause"] is None


async def test_a_conversation_may_be_remembered_by_the_desk(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    for text in ("What is a rule?", "How do I add it?"):
        messages: Any = [{"role": "user", "content": text}]
        await desk.chat.completions.create(
            model="docs", messages=messages, extra_body={"conversation_id": "c1"}
        )

    said = [turn["text"] for turn in http_server.harness.script.seen[Role.ESSENCE][-1]["history"]]
    assert said == ["What is a rule?", "Open Routing [1]."]


async def test_errors_are_those_the_client_knows(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    picture: Any = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    answer: Any = {"role": "assistant", "content": "Hello."}
    for messages in ([picture], [answer], []):
        with pytest.raises(openai.BadRequestError) as raised:
            await desk.chat.completions.create(model="docs", messages=messages)
        assert raised.value.type == "invalid_request_error"
        assert raised.value.param is not None
    with pytest.raises(openai.AuthenticationError):
        await desk.with_options(api_key="sk-x").models.list()
    limited = desk.with_options(api_key=await http_server.key(questions_per_day=1))
    await limited.chat.completions.create(model="docs", messages=[QUESTION])
    with pytest.raises(openai.RateLimitError) as refused:
        await limited.chat.completions.create(model="docs", messages=[QUESTION])
    assert int(refused.value.response.headers["retry-after"]) > 0


async def test_an_idempotency_key_names_one_completion(
    http_server: HttpServerFixture, desk: openai.AsyncOpenAI
) -> None:
    named = {"Idempotency-Key": "order 1"}

    first, again = [
        await desk.chat.completions.create(model="docs", messages=[QUESTION], extra_headers=named)
        for _ in range(2)
    ]
    other: Any = {"role": "user", "content": "And delete it?"}
    with pytest.raises(openai.ConflictError):
        await desk.chat.completions.create(model="docs", messages=[other], extra_headers=named)

    assert first.id == again.id
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 1


async def test_two_keys_of_a_tenant_may_use_the_same_idempotency_key(
    http_server: HttpServerFixture,
) -> None:
    named = {"Idempotency-Key": "order 1"}
    answers = [
        await (await http_server.secret()).post(
            "/v1/chat/completions",
            json={"model": "docs", "messages": [{"role": "user", "content": text}]},
            headers=named,
        )
        for text in ("How do I add a rule?", "And delete it?")
    ]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json()["id"] != answers[1].json()["id"]


@pytest.mark.parametrize("streams", [False, True])
async def test_an_apology_is_in_the_language_that_the_client_reads(
    harness: WorkerHarness, streams: bool
) -> None:
    async with (
        open_http_server(harness, deadline_seconds=1.0) as http_server,
        openai.AsyncOpenAI(
            base_url=f"{http_server.url}/v1",
            api_key=await http_server.key(),
            max_retries=0,
            default_headers={"Accept-Language": "de-AT, en;q=0.5"},
        ) as desk,
    ):
        content = await _content(desk, [QUESTION], streams=streams)

    assert content == "deadline/de"


async def test_a_public_key_completes_nothing(http_server: HttpServerFixture) -> None:
    public = await http_server.public()
    browser = {"Origin": WEBSITE}
    async with openai.AsyncOpenAI(
        base_url=f"{http_server.url}/v1", api_key=public, max_retries=0, default_headers=browser
    ) as desk:
        with pytest.raises(openai.PermissionDeniedError) as refused:
            await desk.chat.completions.create(
                model="docs", messages=[QUESTION], extra_body={"conversation_id": "c1"}
            )

    assert refused.value.code == "secret_key_required"


def test_usage_adds_up_every_model_call() -> None:
    calls = [
        JournalEntry("model_call", {"input_tokens": 10, "output_tokens": 2}),
        JournalEntry("agent_run", {"input_tokens": 999}),
        JournalEntry("model_call", {"input_tokens": 30, "output_tokens": 4}),
    ]

    used = usage_of(calls)

    assert (used.prompt_tokens, used.completion_tokens, used.total_tokens) == (40, 6, 46)


async def _content(desk: openai.AsyncOpenAI, messages: Any, *, streams: bool) -> str:
    if not streams:
        completion = await desk.chat.completions.create(model="docs", messages=messages)
        return completion.choices[0].message.content or ""
    stream = await desk.chat.completions.create(model="docs", messages=messages, stream=True)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
