"""A message in Slack is within its limits, and leads nowhere but to the sources."""

import json
from functools import partial
from typing import Any

import pytest

from citations.verbatim import as_markdown
from envelope.role import Role
from gateway.answer import Source
from gateway.chat.marked_text import plain_title
from gateway.chat.ports import Button
from gateway.slack.channel import INDENT, messages
from tests.citations.shapes import PAGE, SHAPES, SOURCE, leads_elsewhere
from tests.support.chat_harness import TEXTS, WITH_DRAFTS
from tests.support.drafting import DraftedAnswer
from tests.support.fake_slack import (
    ALL_CHARACTERS,
    BOT,
    UPDATE_BYTES,
    RefusedError,
    SlackApi,
    allows,
)
from tests.support.slack_harness import SlackHarness, slack_desk, wait_until_settled
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

PLAIN = "Open Routing [1]."


def source(number: int, **fields: Any) -> Source:
    return Source(number=number, title=f"Page {number}", path=f"p/{number}.md", **fields)


def contexts(made: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [element["text"] for element in block["elements"]]
        for item in made
        for block in item["blocks"]
        if block["type"] == "context"
    ]


def render_blocks(
    markdown: str, sources: list[Source], buttons: list[Button]
) -> list[dict[str, Any]]:
    return [dict(message) for message in messages(markdown, sources, buttons, title="Sources:")]


@pytest.mark.parametrize("markdown", [PLAIN, 'word & "word" ' * 3_000, '\n\n"<&>"' * 2_000])
@pytest.mark.parametrize("count", [0, 1, 9, 10, 60])
def test_every_message_is_within_the_limits_of_slack(markdown: str, count: int) -> None:
    sources = [
        source(number, heading_path=("x" * 300, "<&>" * 90), url=f"https://x.test/{'&y' * 450}")
        for number in range(1, count + 1)
    ]
    buttons = [
        Button('"<&>' * 40, f"{number:030}", "source" if number % 2 else "option",
               f"https://x.test/{'z' * 900}" if number % 2 else None)
        for number in range(count)
    ]  # fmt: skip

    made = render_blocks(markdown, sources, buttons)

    for item in made:
        assert allows(item["text"], item["blocks"]), json.dumps(item)[:300]
        assert len(json.dumps(item["blocks"], ensure_ascii=False)) <= ALL_CHARACTERS
        assert len(item["text"].encode()) <= UPDATE_BYTES


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2*3*4 and a_b_c, ~5 or 5*", "2*3*4 and a_b_c, ~5 or 5*"),
        ("Set _private_ and ~old~, (*x*).", "Set `_private_` and `~old~,` `(*x*).`"),
        ("Set _one two_ now", "Set `_one` two_ now"),
        ("> 3 kW\n\n1 > 0", "`&gt;` 3 kW\n\n1 &gt; 0"),
        ("At 12:30:45 use :ref: or `:key:`", "At 12:30:45 use `:ref:` or `:key:`"),
    ],
)
def test_values_that_slack_would_read_as_formatting_are_code(text: str, written: str) -> None:
    [message] = render_blocks(as_markdown(text), [], [])

    assert message["blocks"][0]["text"]["text"] == written


def test_bold_letters_inside_words_get_no_signs_of_slack() -> None:
    [message] = render_blocks("\u6dfb**\u8def**\u7531, **Rout**ing and **rules**", [], [])

    assert message["blocks"][0]["text"]["text"] == "\u6dfb\u8def\u7531, Routing and *rules*"


def test_sources_stand_below_the_answer_ten_in_a_block() -> None:
    (one,) = made = render_blocks(PLAIN, [source(number) for number in range(1, 31)], [])

    blocks = contexts(made)
    assert one["blocks"][0]["text"]["text"] == PLAIN
    assert [len(block) for block in blocks] == [10, 10, 2]
    assert blocks[0][0] == "*Sources:*"
    assert blocks[2] == ["[20] Page 20 (p/20.md)", "… (+10)"]


def test_a_place_that_several_numbers_cite_is_listed_once() -> None:
    twice = [source(1), source(2), Source(number=3, title="Page 1", path="p/1.md")]

    ((_, *lines),) = contexts(render_blocks(PLAIN, twice, []))

    assert lines == ["[1][3] Page 1 (p/1.md)", "[2] Page 2 (p/2.md)"]


def test_sections_of_a_page_stand_below_it() -> None:
    cited = [
        Source(number=number, title="Rules", url="https://x.test/a#" + name, heading_path=(name,))
        for number, name in ((1, "Create"), (2, "Test"), (3, "Create"))
    ]

    ((_, *lines),) = contexts(render_blocks(PLAIN, cited, []))

    assert lines == [
        "Rules",
        f"{INDENT}[1][3] <https://x.test/a#Create|Create>",
        f"{INDENT}[2] <https://x.test/a#Test|Test>",
    ]


def test_a_source_leads_to_its_place_and_can_say_nothing_to_slack() -> None:
    linked = source(1, url="https://x.test/a?b=1&c=2>|", anchor="d", heading_path=("<!channel>|",))
    risky = Source(number=2, title="T", url="javascript:alert(1)")

    ((_, first, second),) = contexts(render_blocks(PLAIN, [linked, risky], []))

    assert first == ("[1] <https://x.test/a?b=1&amp;c=2%3E%7C#d|Page 1 › &lt;!channel&gt;¦>")
    assert second == "[2] T (javascript:alert(1))"


def test_an_address_that_is_too_long_is_left_out_not_cut() -> None:
    far = f"https://x.test/{'a' * 3_000}"

    made = render_blocks(
        PLAIN, [Source(number=1, title="T", url=far)], [Button("T", "", "source", far)]
    )

    assert far[:200] not in json.dumps([block for item in made for block in item["blocks"][2:]])
    assert "<http" not in json.dumps(contexts(made))


@pytest.mark.parametrize(
    ("title", "message"),
    [
        ("The `config` file", "The config file"),
        ("``a`` and `b`", "a and b"),
        ("A lone ` stays", "A lone ` stays"),
        ("`" * 100_001, "`"),
    ],
)
def test_titles_show_no_backticks_around_code(title: str, message: str) -> None:
    assert plain_title(title) == message
    one = Source(number=1, title=title[:200], url="https://x.test/a")

    ((_, line),) = contexts(render_blocks(PLAIN, [one], []))

    assert line == f"[1] <https://x.test/a|{plain_title(title[:200])}>"


def test_further_passages_are_sections_that_slack_may_fold_and_the_first_is_never_folded() -> None:
    (one,) = messages(PLAIN, [source(1)], [], title="Sources:", more="**Page 2** [2]\n\nMore.")
    blocks: Any = one["blocks"]

    assert blocks[0]["text"]["text"] == PLAIN
    assert blocks[0]["expand"] is True
    assert blocks[1]["text"]["text"] == "*Page 2* [2]\n\nMore."
    assert "expand" not in blocks[1]


def texts(part: Any) -> list[dict[str, Any]]:
    """Every text object in blocks."""
    if isinstance(part, list):
        return [text for item in part for text in texts(item)]
    if not isinstance(part, dict):
        return []
    own = [part] if part.get("type") == "mrkdwn" else []
    return own + [text for item in part.values() for text in texts(item)]


def has_answered(desk: SlackHarness, count: int) -> bool:
    """Whether that many outcomes were shown."""
    return desk.connector.tally.counts.get("answered", 0) >= count


async def test_no_shape_of_a_foreign_link_reaches_slack(desk: SlackHarness) -> None:
    for shape in SHAPES:
        desk.harness.script.next(Role.RESPONSE, {"response": shape.text, "sources_used": [SOURCE]})
    for number in range(len(SHAPES)):
        await desk.say(f"<@{BOT}> How?")
        await wait_until(partial(has_answered, desk, number + 1))
    await wait_until_settled(desk.harness, desk.api)

    shown = desk.api.shown()
    assert len(shown) == len(SHAPES)
    for shape in SHAPES:
        assert any(shape.kept in text for text in shown), shape.name
    calls = [call for name, call in desk.api.calls if name.startswith("chat.")]
    assert not leads_elsewhere(json.dumps(calls))
    assert {call["parse"] for call in calls if "text" in call} == {"none"}
    written = [text for said in desk.api.posts.values() for text in texts(said.blocks)]
    assert written
    assert all(text["verbatim"] for text in written)
    assert f"<{PAGE}|" in json.dumps(written)


async def test_a_question_back_in_slack_leads_nowhere(desk: SlackHarness) -> None:
    text = SHAPES[12].text
    actions = [
        {"label": text, "value": "One", "kind": "option"},
        {"label": "Page", "value": "-", "kind": "source", "url": "https://a@evil.test/"},
    ]
    desk.harness.script.ask_back(response=text, suggested_actions=actions)

    await desk.say(f"<@{BOT}> How?")

    await wait_until(lambda: any(said.buttons for said in desk.api.posts.values()))
    await wait_until_settled(desk.harness, desk.api)
    assert not leads_elsewhere(json.dumps([call for _, call in desk.api.calls]))


QUESTION = f"<@{BOT}> How?"


NOTICE = TEXTS.text("push_draft", "en")


FIRST_SHOWN = "Open *Routing* and choose _New rule_."


async def test_a_thread_shows_the_draft_with_its_sources_and_then_the_answer(
    harness: WorkerHarness, api: SlackApi
) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script()

    async with harness.open(), slack_desk(harness, api, policy=WITH_DRAFTS) as desk:
        await desk.say(QUESTION)
        await wait_until(lambda: any(NOTICE in shown for shown in api.shown()))
        (said,) = api.posts.values()
        draft, blocks = said.shown, said.blocks
        drafted.first.set()
        drafted.whole.set()
        await wait_until(lambda: desk.connector.tally.counts)
        await wait_until_settled(harness, api)

    assert FIRST_SHOWN in draft
    assert "https://docs.acme.test/rules" in str(blocks)
    assert said.buttons != []
    assert NOTICE not in said.shown
    assert "Rules are tried by priority." in said.shown
    assert len(api.posts) == 1


@pytest.mark.parametrize("word", ["маршрут", "経路表示", "मार्गदर्शन", "<&>"])
@pytest.mark.parametrize("refuses_blocks", [False, True])
async def test_a_long_answer_in_any_script_is_shown_in_order(
    harness: WorkerHarness, api: SlackApi, word: str, refuses_blocks: bool
) -> None:
    words = [f"{word}{number}" for number in range(700)]
    harness.script.next(Role.RESPONSE, {"response": f"{' '.join(words)} [1]"})
    api.refusals["chat.update"] = [RefusedError("invalid_blocks")] * refuses_blocks

    async with harness.open(), slack_desk(harness, api) as desk:
        await desk.say(QUESTION)
        await wait_until(lambda: desk.connector.tally.counts)
        await wait_until_settled(harness, api)

    shown = " ".join(api.shown())
    shown = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    assert [item for item in shown.split() if item.startswith(word)] == words
    assert desk.connector.tally.counts == {"answered": 1}
    assert len(api.posts) > 1


async def test_a_person_is_told_that_slack_refused_the_answer(
    harness: WorkerHarness, api: SlackApi
) -> None:
    harness.script.next(Role.RESPONSE, {"response": f"{'word ' * 3_000} [1]"})

    async with harness.open(), slack_desk(harness, api) as desk:
        api.refusals["chat.update"] = [RefusedError("restricted_action")]
        await desk.say(QUESTION)
        await wait_until(lambda: "delivery_abandoned" in desk.connector.tally.counts)
        await wait_until_settled(harness, api)

    assert api.shown() == [TEXTS.text("push_refused", "en")]
