"""What people do with the widget: ask, choose, rate, come back."""

import asyncio
from typing import Any

import pytest

from envelope.role import Role
from gateway.http.routes.conversations import LONGEST_REASON
from gateway.text import LONGEST_CHARACTERS
from gateway.widget.routes import widget_router
from manager.flows.tool_loop import TOOLS_FLOW
from tests.gateway.widget.conftest import Come
from tests.support.browser import WIDGET
from tests.support.http_server import HttpServerFixture, open_http_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]


ANSWER = {
    "response": "Open **Routing** and choose *New rule*. [1][2]",
    "sources_used": [
        {
            "number": number,
            "chunk_id": f"c{number}",
            "title": "Routing rules",
            "heading_path": ["Routing rules", "Create a rule"],
            "crumbs": ["Routing"],
            "anchor": "create-a-rule",
            "url": url,
            "path": "routing/rules.md",
        }
        for number, url in ((1, "https://docs.acme.test/rules"), (2, None))
    ],
}


NAMED = {
    "number": 1, "chunk_id": "", "title": "Rules", "path": "rules.md", "anchor": "create-a-rule",
}  # fmt: skip
"""A source without an address."""
REFERENCE = {"number": 1, "chunk_id": "rules#1", "title": "Rules", "span": [0, 0]}


QUESTION_BACK: dict[str, Any] = {
    "response": "It can mean several things.\nWhich one?\n1. Set up a webhook\n"
    "2. Set up an account",
    "suggested_actions": [
        {"label": "Set up a webhook", "value": "Set up a webhook"},
        {"label": "Set up an account", "value": "Set up an account"},
        {"label": "Answer anyway", "value": "Answer anyway", "kind": "skip"},
    ],
}


STOPPABLE = f"""() => document.querySelector("{WIDGET}").shadowRoot
    .querySelector(".progress button:not([hidden])")"""


NEAR = ["local-network-access"]
"""Without it a website may not read what is served on this machine."""


MARKS_ON_ANOTHER_LINE = """it => [...it.querySelectorAll(".cite")].filter((chip) => {
  const mark = document.createRange();
  mark.setStart(chip.nextSibling, 0);
  mark.setEnd(chip.nextSibling, 1);
  return mark.getBoundingClientRect().top > chip.getBoundingClientRect().bottom;
}).length"""
"""Counts citations whose next sign is on a later line than they are."""


def asks_back(http_server: HttpServerFixture) -> None:
    """Let the next question be answered with a question."""
    http_server.harness.script.ask_back(**QUESTION_BACK)


def gate_role(http_server: HttpServerFixture, role: Role, writes: dict[str, Any]) -> asyncio.Event:
    """Let a role write only after the event."""
    return http_server.harness.script.hold(role, **writes).goes_on


async def test_an_answer_comes_with_sources_that_open_at_the_heading(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, ANSWER)
    shown = await (await come()).opens(source_url="https://handbook.acme.test/{page}#{anchor}")

    await shown.asks("How do I add a rule?")

    [answer] = await shown.has_answers(1)
    assert "Open Routing and choose New rule." in answer
    assert await shown.part(".prose strong").inner_text() == "Routing"
    places = [
        "https://docs.acme.test/rules#create-a-rule",
        "https://handbook.acme.test/routing/rules#create-a-rule",
    ]
    for links in (shown.part("a.cite"), shown.part("a.place")):
        assert [await link.get_attribute("href") for link in await links.all()] == places
        assert await links.first.get_attribute("rel") == "noopener noreferrer"
    assert await shown.part("a.place b").first.inner_text() == "Create a rule"
    assert await shown.part("a.place small").first.inner_text() == "Routing › Routing rules"


async def test_sections_of_one_page_are_one_entry_in_which_each_has_its_numbers_and_opens(
    http_server: HttpServerFixture, come: Come
) -> None:
    section = {"heading_path": ["Test a rule"], "anchor": "test-a-rule", "chunk_id": "rules#2"}
    cited = [
        {**NAMED, "heading_path": ["Create a rule"], "number": 1},
        {**NAMED, **section, "number": 2},
        {**NAMED, "number": 3, "path": "limits.md", "title": "Limits", "heading_path": ["Limits"]},
        {**NAMED, "heading_path": ["Create a rule"], "number": 4},
    ]
    text = "Open Routing and choose New rule [1][4]. Test it [2]. A page has limits [3]."
    http_server.harness.script.next(Role.RESPONSE, {"response": text, "sources_used": cited})
    shown = await (await come()).opens(source_url="https://handbook.acme.test/{page}#{anchor}")

    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)

    entries = await shown.part(".sources > ol > li").all_inner_texts()
    assert [entry.replace("(opens in a new tab)", "").split() for entry in entries] == [
        ["Rules", "1", "4", "Create", "a", "rule", "2", "Test", "a", "rule"],
        ["3", "Limits", "limits.md"],
    ]
    assert await shown.part(".sources ul a").nth(1).get_attribute("href") == (
        "https://handbook.acme.test/rules#test-a-rule"
    )


@pytest.mark.parametrize("width", [320, 354, 371])
async def test_no_line_of_an_answer_begins_with_the_mark_behind_a_citation(
    http_server: HttpServerFixture, come: Come, width: int
) -> None:
    words = " ".join(f"{'ab' * (n % 5 + 1)} cd [1]." for n in range(60))
    http_server.harness.script.next(
        Role.RESPONSE, {"response": words, "sources_used": [{**NAMED, "number": 1}]}
    )
    shown = await (await come(viewport={"width": width, "height": 800})).opens()

    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)

    broken = await shown.part(".prose").evaluate(MARKS_ON_ANOTHER_LINE)
    assert (await shown.part(".prose .cite").count(), broken) == (60, 0)


async def test_a_sentence_that_ended_before_its_citation_ends_once(
    http_server: HttpServerFixture, come: Come
) -> None:
    text = "It is open. [1]. It is *free.* [1][1]. Not yet [1]. Is it? [1]!"
    http_server.harness.script.next(
        Role.RESPONSE, {"response": text, "sources_used": [{**NAMED, "number": 1}]}
    )
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    (answer,) = await shown.has_answers(1)

    assert " ".join(answer.split()) == "It is open. 1 It is free. 11 Not yet 1. Is it? 1!"


async def test_of_many_sources_the_first_are_shown_and_the_others_unfold(
    http_server: HttpServerFixture, come: Come
) -> None:
    many = [
        {**NAMED, "number": n, "chunk_id": f"rules-{n}#1", "path": f"routing/rules-{n}.md"}
        for n in range(1, 11)
    ]
    http_server.harness.script.next(Role.RESPONSE, {"sources_used": many})
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)

    places = shown.part(".sources li")
    assert [await place.is_visible() for place in await places.all()] == [True] * 8 + [False] * 2
    await shown.part(".sources summary").click()
    assert await shown.part(".sources summary").inner_text() == "More passages (2)"
    assert all([await place.is_visible() for place in await places.all()])


async def test_a_source_without_an_address_opens_in_the_desks_own_reader(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(
        Role.RESPONSE, {"sources_used": [{**NAMED, "chunk_id": "rules#1"}]}
    )
    visitor = await come()
    shown = await visitor.opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)

    async with visitor.context.expect_page() as opening:
        await shown.part("a.place").click()
    reader = await opening.value

    await reader.locator(".cited", has_text="Create a rule").wait_for()
    assert reader.url.endswith("#create-a-rule")
    assert await reader.evaluate("window.opener") is None


async def test_stages_are_shown_as_they_happen(http_server: HttpServerFixture, come: Come) -> None:
    search, check = (
        gate_role(http_server, Role.SEARCH, {}),
        gate_role(http_server, Role.QUALITY, {}),
    )
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    await shown.part(".progress", has_text="Searching the documents").wait_for()
    search.set()
    await shown.part(".progress", has_text="Checking the answer").wait_for()
    check.set()

    assert await shown.has_answers(1) == ["Open Routing [1]."]


async def test_an_answer_that_is_being_made_can_be_stopped(
    http_server: HttpServerFixture, come: Come
) -> None:
    gate = gate_role(http_server, Role.RESPONSE, ANSWER)
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.until(STOPPABLE)

    await shown.field.press("Shift+Tab")
    await shown.page.keyboard.press("Enter")

    assert await shown.has_answers(1) == ["stopped/en"]
    gate.set()
    assert await shown.focused() == "textarea"
    assert await shown.part(".progress button").count() == 0
    await shown.asks("How do I add a rule?")
    assert (await shown.has_answers(2))[0] == "stopped/en"
    assert (await shown.said()).count("stopped/en") == 1


async def test_a_question_back_is_answered_with_a_button(
    http_server: HttpServerFixture, come: Come
) -> None:
    asks_back(http_server)
    shown = await (await come()).opens()

    await shown.asks("How do I set it up?")
    [asked] = await shown.has_answers(1)
    choices = shown.part(".choices button")
    labels = await choices.all_inner_texts()
    await choices.first.click()

    assert asked == "It can mean several things.\nWhich one?"
    assert labels == ["Set up a webhook", "Set up an account", "Answer anyway"]
    assert (await shown.has_answers(2))[1] == "Open Routing [1]."
    questions = await shown.part(".question").all_text_contents()
    assert questions[1].endswith("Set up a webhook")
    assert [await choice.is_disabled() for choice in await choices.all()] == [True] * 3
    assert await shown.focused() == "textarea"


async def test_a_reload_changes_nothing(http_server: HttpServerFixture, come: Come) -> None:
    asks_back(http_server)
    shown = await (await come()).opens()
    await shown.asks("How do I set it up?")
    await shown.has_answers(1)

    await shown.page.reload()

    assert await shown.has_answers(1) == ["It can mean several things.\nWhich one?"]
    await shown.part(".choices button").nth(1).click()
    assert (await shown.has_answers(2))[1] == "Open Routing [1]."
    assert (await shown.said())[0].startswith("Open Routing")


async def test_a_reload_while_it_is_answered_goes_on(
    http_server: HttpServerFixture, come: Come
) -> None:
    gate = gate_role(http_server, Role.RESPONSE, {})
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.part(".progress", has_text="Writing the answer").wait_for()

    await shown.page.reload()
    await shown.part(".progress", has_text="Writing the answer").wait_for()
    gate.set()

    assert await shown.has_answers(1) == ["Open Routing [1]."]
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 1


async def test_a_second_tab_shows_the_same_conversation_as_it_goes_on(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    first, second = await visitor.opens(), await visitor.opens()
    gate = gate_role(http_server, Role.RESPONSE, {})

    await first.asks("How do I add a rule?")
    await second.part(".progress").wait_for()
    gate.set()
    answers = [await first.has_answers(1), await second.has_answers(1)]
    await second.asks("And delete it?")

    assert answers[0] == answers[1] == ["Open Routing [1]."]
    assert len(await first.has_answers(2)) == len(await second.has_answers(2)) == 2
    assert len(http_server.harness.script.seen[Role.RESPONSE]) == 2


async def test_a_negative_rating_can_say_why(http_server: HttpServerFixture, come: Come) -> None:
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    down = shown.part("[data-rating=down]")

    await down.click()
    await shown.part(".reason textarea").fill("It misses a step.")
    await shown.part(".reason .main").click()
    await shown.part(".confirmation", has_text="Thank you").wait_for()
    await shown.page.reload()
    await shown.has_answers(1)

    assert await down.get_attribute("aria-pressed") == "true"
    stored = await _read(shown, http_server)
    [message] = stored["messages"]
    assert message["feedback"]["rating"] == "down"
    assert message["feedback"]["reason"] == "It misses a step."


async def test_an_answer_is_copied_with_its_sources(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, ANSWER)
    visitor = await come(permissions=["clipboard-read", "clipboard-write"])
    shown = await visitor.opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)

    await shown.part("[aria-label='Copy the answer']").click()
    await shown.part(".confirmation", has_text="Copied").wait_for()

    copied = await shown.page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(ANSWER["response"])
    assert "[1] Routing rules https://docs.acme.test/rules#create-a-rule" in copied


async def test_a_new_conversation_forgets_the_old_one_everywhere(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    second, first = await visitor.opens(), await visitor.opens()
    await first.asks("How do I add a rule?")
    await second.has_answers(1)
    kept = await _read_stored(first)
    http_server.harness.script.next(Role.COMMAND, {"forget": "all"})

    await first.part("[aria-label='New conversation']").click()
    await first.part(".notice .main", has_text="Forget it").click()

    await first.part(".hello").wait_for()
    await second.part(".hello").wait_for()
    assert await _read_stored(first) is None
    answer = await http_server.client().get(f"/v1/conversations/{kept['place']['id']}")
    assert answer.status_code == 404
    assert await first.focused() == "textarea"


async def test_visitors_of_a_website_come_with_its_public_key(
    http_server: HttpServerFixture, come: Come
) -> None:
    site = "http://shop.localhost"
    key = await http_server.public(origins=(site,))
    ann, ben = await come(permissions=NEAR), await come(permissions=NEAR)
    pages = [await visitor.opens(site=site, key=key) for visitor in (ann, ben)]

    for number, shown in enumerate(pages):
        await shown.asks(f"Question {number}?")
        await shown.has_answers(1)
        await shown.page.reload()
        await shown.has_answers(1)

    kept = [await _read_stored(shown) for shown in pages]
    assert kept[0]["place"]["token"]
    assert kept[0]["place"] != kept[1]["place"]
    assert key not in str(await pages[0].page.evaluate("Object.keys(localStorage)"))


async def test_a_website_that_has_no_key_is_notified(
    http_server: HttpServerFixture, come: Come
) -> None:
    await http_server.key()
    visitor = await come()
    shown = await visitor.opens()

    await shown.asks("How do I add a rule?")

    await shown.part(".problem", has_text="cannot be sent from this page").wait_for()
    assert [line for line in visitor.take_console_errors() if "the desk needs a key" in line]


async def test_a_conversation_that_is_over_goes_on_as_a_new_one(
    http_server: HttpServerFixture, come: Come
) -> None:
    site = "http://shop.localhost"
    key = await http_server.public(origins=(site,))
    shown = await (await come(permissions=NEAR)).opens(site=site, key=key)
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    before = await _read_stored(shown)
    await http_server.harness.client.delete(
        *[name async for name in http_server.harness.client.scan_iter("*visit*")]
    )

    await shown.asks("And delete it?")

    await wait_until(lambda: has_moved(shown, before))
    await shown.part(".answer[aria-busy=false] .prose").last.wait_for()
    assert (await _read_stored(shown))["place"]["id"] != before["place"]["id"]


async def has_moved(shown: Any, before: Any) -> bool:
    kept = await _read_stored(shown)
    return kept is not None and kept["place"] != before["place"]


async def _read_stored(shown: Any) -> Any:
    return await shown.page.evaluate(
        """() => {
          const name = Object.keys(localStorage).find((key) => key.startsWith("refdesk:"));
          return name ? JSON.parse(localStorage.getItem(name)) : null;
        }"""
    )


async def _read(shown: Any, http_server: HttpServerFixture) -> Any:
    kept = await _read_stored(shown)
    answer = await http_server.client().get(f"/v1/conversations/{kept['place']['id']}")
    return answer.json()


async def test_a_visitor_waiting_for_a_full_desk_is_notified_in_their_language(
    http_server: HttpServerFixture, come: Come
) -> None:
    gate = gate_role(http_server, Role.ESSENCE, {"canonical_question": "How?"})
    small = open_http_server(http_server.harness, quota=1, others=(widget_router(),))
    async with small as full, asyncio.TaskGroup() as tasks:
        path = "/v1/conversations/c1/messages"
        first = tasks.create_task(full.client().post(path, json={"text": "How?"}))
        await wait_until(lambda: is_open(http_server))
        shown = await (await come(full.url)).opens(html='lang="de"')
        await shown.asks("Wie lege ich eine Regel an?")

        notice = "Gerade kommen viele Fragen: Ihre ist in der Reihe…"
        await shown.part(".progress", has_text=notice).wait_for()
        gate.set()
        assert await shown.has_answers(1) == ["Open Routing [1]."]
    assert first.result().json()["outcome"] == "answered"


async def is_open(http_server: HttpServerFixture) -> bool:
    return (await http_server.harness.broker.admin.read_status([Role.ESSENCE.value]))[
        0
    ].in_flight > 0


# A character of two halves in a script is one for the desk.
TOO_LONG = "How? " + "😀" * (LONGEST_CHARACTERS - 4)


NOTE = f"Too long: {LONGEST_CHARACTERS + 1} characters of at most {LONGEST_CHARACTERS}."


async def test_a_question_that_is_too_long_is_said_to_be_and_stays_whole(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens()

    await shown.asks(TOO_LONG)

    note = shown.part(".composer .problem")
    assert await note.inner_text() == NOTE
    assert await shown.field.input_value() == TOO_LONG
    assert await shown.field.get_attribute("aria-invalid") == "true"
    assert await shown.part(".send").is_disabled()
    assert await shown.part(".turn").count() == 0
    assert NOTE in await shown.said()
    await shown.field.press("End")
    await shown.field.press("Backspace")
    await note.wait_for(state="hidden")
    await shown.field.press("Enter")
    await shown.has_answers(1)
    assert await shown.field.input_value() == ""


async def test_a_page_that_asks_something_too_long_leaves_it_to_the_person(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens(lang="de")

    await shown.page.evaluate(f"text => document.querySelector('{WIDGET}').ask(text)", TOO_LONG)

    problem = f"Zu lang: {LONGEST_CHARACTERS + 1} Zeichen von höchstens {LONGEST_CHARACTERS}."
    assert await shown.part(".composer .problem").inner_text() == problem
    assert await shown.field.input_value() == TOO_LONG
    assert await shown.part(".turn").count() == 0


async def test_a_reason_that_is_too_long_is_said_to_be(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come()).opens()
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    await shown.part("[data-rating=down]").click()
    field = shown.part(".reason textarea")

    await field.fill("x" * (LONGEST_REASON + 1))
    await shown.part(".reason .main").click()

    problem = f"Too long: {LONGEST_REASON + 1} characters of at most {LONGEST_REASON}."
    assert await shown.part(".reason .problem").inner_text() == problem
    await field.fill("It misses a step.")
    await shown.part(".reason .main").click()
    await shown.part(".confirmation", has_text="Thank you").wait_for()


HOSTILE = "see <b>x</b> [here](https://evil.example)"


def call(number: int, query: str) -> dict[str, Any]:
    arguments = {"query": query}
    return {"call_id": f"r1-{number}", "tool": "search", "arguments": arguments, "depends_on": []}


async def test_the_searches_of_a_plan_tick_off(http_server: HttpServerFixture, come: Come) -> None:
    harness = http_server.harness
    flows: Any = harness.flows
    flows.update(dict.fromkeys(flows, TOOLS_FLOW))
    calls = [call(1, "fees of carriers"), call(2, HOSTILE)]
    harness.script.next(Role.REASON, {"intent": "search", "tool_calls": calls})
    first = gate_role(http_server, Role.TOOL, {"multi_tool_results": {"r1-1": {}}})
    second = gate_role(http_server, Role.TOOL, {"multi_tool_results": {"r1-2": {}}})
    harness.script.next(Role.REFLECT, {"source_references": [REFERENCE]})
    harness.script.next(Role.RESPONSE, {"response": "Open Routing [1]."})
    shown = await (await come()).opens()

    await shown.asks("What are the fees?")
    await shown.part(".progress", has_text="0/2").wait_for()
    await shown.part(".plan li", has_text="search: fees of carriers").wait_for()
    await shown.part(".plan li", has_text="search: see").wait_for()
    assert await shown.part(".plan li *").count() == 0, "labels are text alone"
    first.set()
    await shown.part(".progress", has_text="1/2").wait_for()
    await shown.part(".plan li.completed").wait_for()
    second.set()

    assert await shown.has_answers(1) == ["Open Routing [1]."]
