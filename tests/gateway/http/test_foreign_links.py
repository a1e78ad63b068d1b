"""Whatever a model was talked into, no answer over HTTP leads elsewhere."""

import json
from typing import Any

import openai

from envelope.role import Role
from tests.citations.shapes import FOREIGN, PAGE, SHAPES, SOURCE, leads_elsewhere
from tests.support.http_server import HttpServerFixture, events, text_of

PATH = "/v1/conversations/c-1"


def answers(http_server: HttpServerFixture, text: str, **source: Any) -> None:
    http_server.harness.script.next(
        Role.RESPONSE, {"response": text, "sources_used": [{**SOURCE, **source}]}
    )


def asks_back(http_server: HttpServerFixture, text: str) -> None:
    actions = [
        {"label": text, "value": "A rule", "kind": "option"},
        {"label": text, "value": "A page", "kind": "source", "url": "//evil.test/login"},
    ]
    script = http_server.harness.script
    script.ask_back(Role.ESSENCE, response=text, suggested_actions=actions)


async def test_no_answer_leads_elsewhere_whole_streamed_or_read_again(
    http_server: HttpServerFixture,
) -> None:
    client = await http_server.secret()
    for number, shape in enumerate(SHAPES):
        answers(http_server, shape.text)
        path = f"{PATH}{number}/messages"

        whole = await client.post(path, json={"text": "How?", "message_id": "m"})
        seen = await events(client, "GET", f"{path}/m/events")

        assert whole.status_code == 200
        assert not leads_elsewhere(whole.text), shape.name
        assert shape.kept in whole.json()["text"]
        assert not leads_elsewhere(json.dumps([event.data for event in seen])), shape.name
        assert text_of(seen) == whole.json()["text"]
        assert not leads_elsewhere((await client.get(f"{PATH}{number}")).text), shape.name


async def test_no_completion_leads_elsewhere_whole_or_streamed(
    http_server: HttpServerFixture,
) -> None:
    question: Any = {"role": "user", "content": "How do I add a rule?"}
    async with openai.AsyncOpenAI(
        base_url=f"{http_server.url}/v1", api_key=await http_server.key()
    ) as client:
        for shape in SHAPES:
            answers(http_server, shape.text)
            whole = await client.chat.completions.create(model="docs", messages=[question])
            answers(http_server, shape.text)
            streamed = await client.chat.completions.create(
                model="docs", messages=[question], stream=True
            )
            chunks = [chunk.model_dump_json() async for chunk in streamed]

            assert not leads_elsewhere(whole.model_dump_json()), shape.name
            assert shape.kept in str(whole.choices[0].message.content)
            assert not leads_elsewhere("".join(chunks)), shape.name


async def test_no_question_back_leads_elsewhere(http_server: HttpServerFixture) -> None:
    client = await http_server.secret()
    for number, shape in enumerate(SHAPES):
        asks_back(http_server, shape.text)

        response = await client.post(f"{PATH}{number}/messages", json={"text": "How?"})

        assert response.json()["outcome"] == "clarification"
        assert not leads_elsewhere(response.text), shape.name
        assert [action["value"] for action in response.json()["suggested_actions"]]


async def test_sources_name_only_addresses_of_the_web_and_plain_words(
    http_server: HttpServerFixture,
) -> None:
    hidden = f"[Rules]({FOREIGN}) \u202e\x1b]8;;{FOREIGN}\x07"
    for url in (
        "javascript:alert(1)",
        "//evil.test/login",
        f"https://docs.acme.test@{FOREIGN[8:]}",
    ):
        answers(
            http_server,
            "Open it. [1]",
            url=url,
            title=hidden,
            heading_path=[hidden],
            crumbs=[hidden],
        )
    client = await http_server.secret()

    for number in range(3):
        response = await client.post(f"{PATH}{number}/messages", json={"text": "How?"})

        assert not leads_elsewhere(response.text)
        assert "\\u202e" not in ascii(response.text)
        assert "\\u001b" not in response.text
        [source] = response.json()["sources"]
        assert "url" not in source
        assert source["title"].startswith("Rules")


async def test_an_address_that_a_source_holds_is_shown_as_code_and_other_ones_are_not(
    http_server: HttpServerFixture,
) -> None:
    held = "https://console.acme.test/settings"
    text = f"Open {held}, not {held}/x; see [the page]({PAGE}#a). [1]"
    answers(http_server, text, addresses=[held])
    client = await http_server.secret()

    response = await client.post(f"{PATH}/messages", json={"text": "How?"})

    assert (
        response.json()["text"]
        == f"Open `{held}`, not [address removed]; see [the page]({PAGE}#a). [1]"
    )
