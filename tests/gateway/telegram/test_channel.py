"""A message in Telegram is within its limits, and leads nowhere but to the sources."""

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citations.addresses import find_addresses
from envelope.role import Role
from gateway.answer import Source
from gateway.chat.ports import Button
from gateway.telegram.channel import LONGEST_UNITS, MOST_ENTITIES, keyboard, messages
from tests.citations.shapes import PAGE, SHAPES, leads_elsewhere
from tests.citations.shapes import SOURCE as CITED
from tests.gateway.chat.markdown_samples import QUICK, markdown, texts
from tests.support.fake_telegram import Said, units
from tests.support.telegram_harness import TelegramHarness, wait_until_settled
from tests.support.waiting import wait_until

SOURCE = Source(
    number=1, title="Rules 😀", heading_path=("Create",), url="https://example.org/a", anchor="b"
)


long_texts = st.builds(lambda text, times: f"{text}\n\n" * times, markdown, st.integers(1, 60))


def extract_covered(message: dict[str, Any], entity: dict[str, Any]) -> str:
    """What an entity covers, counted as Telegram counts."""
    start, end = entity["offset"] * 2, (entity["offset"] + entity["length"]) * 2
    return bytes(message["text"].encode("utf-16-le")[start:end]).decode("utf-16-le")


def list_entities(text: str, *sources: Source) -> list[tuple[str, str]]:
    """What is covered by which entity in a text of one message."""
    (message,) = messages(text, sources, title="Sources")
    entities: Any = message["entities"]
    return [(entity["type"], extract_covered(message, entity)) for entity in entities]


@given(st.one_of(texts, long_texts), st.booleans())
@QUICK
def test_every_message_is_within_the_limits_and_entities_lie_in_its_text(
    text: str, with_source: bool
) -> None:
    for message in messages(text, [SOURCE] * with_source, title="Sources"):
        entities: Any = message["entities"]
        said = str(message["text"])
        assert units(said) <= LONGEST_UNITS
        assert len(entities) <= MOST_ENTITIES
        for entity in entities:
            assert extract_covered(message, entity)  # decodes: no surrogate pair is cut
            assert entity["offset"] + entity["length"] <= units(said)


@given(texts)
@QUICK
def test_entities_are_counted_as_telegram_takes_them(text: str) -> None:
    for message in messages(text, (), title="Sources"):
        entities: Any = message["entities"]
        spans = [
            (entity["offset"], entity["offset"] + entity["length"], entity["type"])
            for entity in entities
        ]
        for number, (start, end, kind) in enumerate(spans):
            for other_start, other_end, other in spans[number + 1 :]:
                apart = other_start >= end or other_end <= start
                within = start <= other_start and other_end <= end
                assert apart or within
                if within and not apart:
                    assert kind not in {"pre", "code", other}
                    assert other not in {"pre", "code"} or kind == "blockquote"


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("😀 **😀b** c", [("bold", "😀b")]),
        ("# Set `x` now", [("bold", "Set "), ("code", "x"), ("bold", " now")]),
        ("[x](ftp://a.org) [y](javascript:z)", [("code", "javascript:z")]),
        (
            "see a.org, rules.md and ab@c.org",
            [("code", "a.org"), ("code", "rules.md"), ("code", "ab@c.org")],
        ),
        ("> a `b`\n>\n> > c", [("blockquote", "a b\n\nc"), ("code", "b")]),
        ("```py\n**a**\n```", [("pre", "**a**")]),
        ("***a***", [("italic", "a"), ("bold", "a")]),
        ("# **a** b", [("bold", "a b")]),
    ],
)
def test_entities_cover_what_was_marked(text: str, entities: list[tuple[str, str]]) -> None:
    assert list_entities(text) == entities


def test_only_pages_of_the_sources_are_linked() -> None:
    page, elsewhere = "https://example.org/a", "https://elsewhere.test/a"

    entities = list_entities(f"[`x`]({page}#c) [y]({elsewhere})", SOURCE)

    assert entities == [("text_link", "x"), ("text_link", "Rules 😀 › Create")]


def test_sources_are_linked_where_they_have_an_address() -> None:
    path = Source(number=2, title="Page", path="a/b.md")

    assert list_entities("a 😀", SOURCE, path) == [("text_link", "Rules 😀 › Create")]
    (message,) = messages("a 😀", [SOURCE, path], title="Sources")
    assert message["text"] == "a 😀\n\nSources\n[1] Rules 😀 › Create\n[2] Page (a/b.md)"


def test_sections_of_a_page_stand_below_it() -> None:
    cited = [
        Source(number=number, title="Rules", path="a.md", anchor=name, heading_path=(name,))
        for number, name in ((1, "Create"), (2, "Test"), (3, "Create"))
    ]

    (message,) = messages("a", cited, title="Sources")

    assert message["text"] == (
        "a\n\nSources\nRules\n  [1][3] Create (a.md#Create)\n  [2] Test (a.md#Test)"
    )


def test_too_many_entities_keep_code_and_links_before_styles() -> None:
    text = " ".join(f"**b{number}** `c{number}`" for number in range(80))

    kinds = [kind for kind, _ in list_entities(text)]

    assert (kinds.count("code"), kinds.count("bold")) == (80, 20)


def test_buttons_stand_in_a_row_each_and_ratings_together() -> None:
    rows: Any = keyboard(
        [
            Button("x" * 90, "t1"),
            Button("page", "", "source", "https://a.org"),
            Button("nowhere", "", "source", "ftp://a.org"),
            Button("", "t2", "up"),
            Button("", "t3", "down"),
        ]
    )

    assert [[button.get("callback_data", button.get("url")) for button in row] for row in rows] == [
        ["t1"],
        ["https://a.org"],
        ["t2", "t3"],
    ]
    assert len(rows[0][0]["text"]) == 60


def test_titles_of_sources_show_no_backticks_around_code() -> None:
    source = Source(number=1, title="The `config` file", url="https://example.org/a")

    assert ("text_link", "The config file") in list_entities("Open it [1].", source)


def test_further_passages_are_folded_in_one_quotation_with_their_own_marks() -> None:
    more = "**Page 2** [2]\n\n> said\n\n```\nrun\n```"

    (message,) = messages("Open **Routing**.", [SOURCE], title="Sources", more=more)
    entities: Any = message["entities"]

    assert [(entity["type"], extract_covered(message, entity)) for entity in entities] == [
        ("bold", "Routing"),
        ("expandable_blockquote", "Page 2 [2]\n\nsaid\n\nrun"),
        ("bold", "Page 2"),
        ("pre", "run"),
        ("text_link", "Rules 😀 › Create"),
    ]


HELD = "https://console.acme.test/settings"


def spans(said: Said, *kinds: str) -> list[str]:
    """What is covered by entities of these kinds."""
    units = said.text.encode("utf-16-le")
    entities: list[dict[str, Any]] = said.fields.get("entities") or []
    return [
        units[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode("utf-16-le")
        for entity in entities
        if entity["type"] in kinds
    ]


def has_answered(desk: TelegramHarness, count: int) -> bool:
    """Whether that many outcomes were shown."""
    return desk.connector.tally.counts.get("answered", 0) >= count


async def test_no_shape_of_a_foreign_link_reaches_telegram(desk: TelegramHarness) -> None:
    for shape in SHAPES:
        desk.harness.script.next(Role.RESPONSE, {"response": shape.text, "sources_used": [CITED]})
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


async def test_text_that_telegram_would_link_is_formatted_as_code(desk: TelegramHarness) -> None:
    source = {**CITED, "url": None, "path": "routing/rules.md", "addresses": [HELD]}
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
