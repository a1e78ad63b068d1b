"""Whatever a model was talked into, no message in Telegram leads elsewhere."""

import json
from functools import partial
from typing import Any

from citations.addresses import find_addresses
from envelope.role import Role
from tests.citations.shapes import PAGE, SHAPES, SOURCE, leads_elsewhere
from tests.support.fake_telegram import Said
from tests.support.telegram_harness import TelegramHarness, wait_until_settled
from tests.support.waiting import wait_until

HELD = "https://console.acme.test/settings"


def spans(said: Said, *kinds: str) -> list[str]:
    """What is covered by entities of these kinds."""
    units = said.text.encode("utf-16-le")
    entities: list[dict[str, Any]] = said.fields.get("entities") or []
    return [
        units[one["offset"] * 2 : (one["offset"] + one["length"]) * 2].decode("utf-16-le")
        for one in entities
        if one["type"] in kinds
    ]


def has_answered(desk: TelegramHarness, count: int) -> bool:
    """Whether that many outcomes were shown."""
    return desk.connector.tally.counts.get("answered", 0) >= count


async def test_no_shape_of_a_foreign_link_reaches_telegram(desk: TelegramHarness) -> None:
    for shape in SHAPES:
        desk.harness.script.next(Role.RESPONSE, {"response": shape.text, "sources_used": [SOURCE]})
    for number in range(len(SHAPES)):
        await desk.say("How?")
        await wait_until(partial(has_answered, desk, number + 1))
    await wait_until_settled(desk.harness, desk.api)

    shown = desk.api.texts(7)
    assert len(shown) == len(SHAPES)
    for shape in SHAPES:
        assert any(shape.kept in text for text in shown), shape.name
    assert not leads_elsewhere(json.dumps([call for _, call in desk.api.calls]))
    linked = [
        entity["url"]
        for said in desk.api.chats.values()
        for entity in said.fields.get("entities") or []
        if entity["type"] == "text_link"
    ]
    assert {url.partition("#")[0] for url in linked} == {PAGE}


async def test_what_telegram_would_make_a_link_is_code(desk: TelegramHarness) -> None:
    source = {**SOURCE, "url": None, "path": "routing/rules.md", "addresses": [HELD]}
    text = f"Open {HELD}, acme.test or rules.md. [1]"
    desk.harness.script.next(Role.RESPONSE, {"response": text, "sources_used": [source]})

    await desk.say("How?")

    await wait_until(lambda: desk.connector.tally.counts.get("answered"))
    await wait_until_settled(desk.harness, desk.api)
    [said] = desk.api.chats.values()
    code = spans(said, "code")
    assert HELD in said.text
    assert {found.text for found in find_addresses(said.text, any_name=True)} == set(code)
    edits = desk.api.called("editMessageText")
    assert all(edit["link_preview_options"]["is_disabled"] for edit in edits)
