"""How the widget looks and how it is reached: small and large, dark, right to left, keys alone."""

import asyncio
from typing import Any

import pytest

from envelope.role import Role
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_asking import ANSWER, NAMED, STOPPABLE, asks_back, gate_role
from tests.support.browser import WIDGET, DisplayedMessage, violations
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

PHONE = {"width": 320, "height": 640}
DESKTOP = {"width": 1440, "height": 900}
RICH = {
    # One opens at its own address, one in the desk's reader, one is only named.
    "sources_used": [*ANSWER["sources_used"], {**NAMED, "number": 3}],
    "response": (
        "## Rules\n\nOpen **Routing** [1], see <https://docs.acme.test>.\n\n1. One\n2. Two\n\n"
        "| Code | Meaning |\n|---|---|\n| 4029 | too many |\n\n```\ncurl --a-very-long-option "
        "https://api.acme.test/v1/messages/and/further/and/further\n```\n\n> quoted `code` [2] [3]"
    ),
}
WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


async def answering(shown: DisplayedMessage, http_server: HttpServerFixture) -> asyncio.Event:
    """Ask, and have the answer made until the event: it can be stopped."""
    gate = gate_role(http_server, Role.RESPONSE, {})
    await shown.asks("And then?")
    await shown.until(STOPPABLE)
    return gate


async def fill_conversation(shown: DisplayedMessage, http_server: HttpServerFixture) -> None:
    """Have an answer with everything in it, a question back, and a reason being written."""
    http_server.harness.script.next(Role.RESPONSE, RICH)
    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    asks_back(http_server)
    await shown.asks("How do I set it up?")
    await shown.has_answers(2)
    await shown.part("[data-rating=down]").first.click()


@pytest.mark.parametrize(
    ("size", "scheme", "mode"),
    [
        (PHONE, "dark", "launcher"),
        (DESKTOP, "light", "inline"),
        pytest.param(PHONE, "light", "inline", marks=pytest.mark.long),
        pytest.param(DESKTOP, "dark", "inline", marks=pytest.mark.long),
        pytest.param(DESKTOP, "light", "launcher", marks=pytest.mark.long),
    ],
    ids=lambda it: it if isinstance(it, str) else str(it["width"]),
)
async def test_axe_finds_nothing(
    http_server: HttpServerFixture, come: Come, size: Any, scheme: Any, mode: str
) -> None:
    visitor = await come(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    shown = await visitor.opens(mode=mode, questions="How? | Why?", disclaimer="Made by rules.")
    begun = await violations(shown.page)
    if mode == "launcher":
        await shown.part(".launcher").click()

    empty = await violations(shown.page)
    await fill_conversation(shown, http_server)
    found = await violations(shown.page)
    await answering(shown, http_server)

    assert (begun, empty, found, await violations(shown.page)) == ([], [], [], [])
    assert await shown.part("a.place").count() == 2
    assert await shown.part("button.cite").count() == 1
    assert not await shown.page.evaluate(WIDE)
    assert not await shown.part(".log").evaluate("it => it.scrollWidth > it.clientWidth")


async def test_axe_finds_nothing_right_to_left(http_server: HttpServerFixture, come: Come) -> None:
    shown = await (await come(viewport=DESKTOP)).opens(lang="ar", mode="launcher")
    await shown.part(".launcher").click()
    await fill_conversation(shown, http_server)
    await answering(shown, http_server)

    assert await violations(shown.page) == []


async def test_lists_tables_and_places_stay_at_the_right_in_arabic(
    http_server: HttpServerFixture, come: Come
) -> None:
    text = "1. افتح\n2. API\n\n| الرمز | API |\n|---|---|\n| 4029 | no route |\n\n- Open\n\nA [1]"
    http_server.harness.script.next(Role.LANG, {"language": "ar"})
    http_server.harness.script.next(Role.RESPONSE, {"response": text, "sources_used": [NAMED]})
    shown = await (await come()).opens(lang="ar")
    side = "all => all.map((it) => getComputedStyle(it).textAlign)"

    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)

    assert await shown.part(".prose ol > li").evaluate_all(side) == ["right"] * 2
    assert await shown.part("td, th, .what").evaluate_all(side) == ["right"] * 5
    assert await shown.part(".prose ul > li").evaluate_all(side) == ["left"]
    marked = await shown.part(".prose ol").evaluate("it => getComputedStyle(it).direction")
    assert marked == "rtl"


async def test_a_phone_is_filled_and_a_desktop_is_not(come: Come) -> None:
    phone, desktop = [
        await (await come(viewport=size, reduced_motion="reduce")).opens(mode="launcher")
        for size in (PHONE, DESKTOP)
    ]
    for shown in (phone, desktop):
        await shown.part(".launcher").click()

    whole = await phone.part(".panel").bounding_box()
    beside = await desktop.part(".panel").bounding_box()

    assert whole == {"x": 0, "y": 0, **PHONE}
    assert beside is not None
    assert beside["width"] == 432
    assert beside["x"] + beside["width"] <= DESKTOP["width"] - 24
    assert await phone.part("dialog:modal").count() == 1
    assert await desktop.part("dialog:modal").count() == 0


async def test_everything_is_reached_by_keys_alone(
    http_server: HttpServerFixture, come: Come
) -> None:
    asks_back(http_server)
    shown = await (await come(viewport=DESKTOP)).opens(mode="launcher")
    keys = shown.page.keyboard

    await keys.press("Tab")
    await keys.press("Tab")
    assert await shown.focused() == "launcher"
    await keys.press("Enter")
    assert await shown.focused() == "textarea"
    await keys.type("How do I set it up?")
    await keys.press("Shift+Enter")
    await keys.type("Please.")
    await keys.press("Enter")
    await shown.has_answers(1)
    reached = await _back_to(shown, "choice quiet")
    await keys.press("Shift+Tab")
    await keys.press("Space")
    await shown.has_answers(2)
    await _back_to(shown, "tool")
    await keys.press("Escape")

    assert reached < 12
    assert await shown.focused() == "launcher"
    assert not await shown.part(".panel").is_visible()
    questions = await shown.part(".question").all_text_contents()
    assert questions[0].endswith("How do I set it up?\nPlease.")
    assert questions[1].endswith("Set up an account")


async def test_a_finished_answer_is_announced_once(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.RESPONSE, {"response": " ".join(["A word."] * 100)})
    shown = await (await come()).opens()

    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)
    await shown.page.reload()
    await shown.has_answers(1)
    before = await shown.said()
    await shown.asks("And delete it?")
    await shown.has_answers(2)

    assert before == []
    assert await shown.said() == ["Open Routing [1]."]


async def test_options_are_announced_with_the_question_back(
    http_server: HttpServerFixture, come: Come
) -> None:
    asks_back(http_server)
    shown = await (await come()).opens()

    await shown.asks("How do I set it up?")
    await shown.has_answers(1)

    [said] = await shown.said()
    assert "Which one?" in said
    assert "Set up a webhook; Set up an account; Answer anyway" in said


async def test_it_is_as_dark_as_its_page_unless_set_otherwise(come: Come) -> None:
    visitor = await come(color_scheme="dark")
    shades = [
        await _shade(await visitor.opens(scheme=scheme, theme=theme))
        for scheme, theme in (
            ("light", ""),
            ("light dark", ""),
            ("light", "dark"),
            ("light dark", "light"),
            ("light", "system"),
        )
    ]

    light, dark = shades[:2]
    assert light != dark
    assert shades == [light, dark, dark, light, dark]


async def test_a_page_chooses_colours_and_sizes(come: Come) -> None:
    shown = await (await come()).opens()
    await shown.page.locator(WIDGET).evaluate(
        """it => {
          it.style.setProperty("--refdesk-surface", "rgb(1, 2, 3)");
          it.style.setProperty("--refdesk-height", "500px");
        }"""
    )

    assert await _shade(shown) == "rgb(1, 2, 3)"
    box = await shown.part(".panel").bounding_box()
    assert box is not None
    assert box["height"] == 500


async def test_arabic_goes_from_right_to_left_and_quotations_go_their_own_way(
    http_server: HttpServerFixture, come: Come
) -> None:
    http_server.harness.script.next(Role.LANG, {"language": "ar"})
    http_server.harness.script.next(Role.RESPONSE, {"response": "افتح التوجيه.\n\nOpen Routing."})
    shown = await (await come()).opens(lang="ar")
    direction = "it => getComputedStyle(it).direction"

    await shown.asks("How do I add a rule?")
    await shown.has_answers(1)

    assert await shown.part(".panel").evaluate(direction) == "rtl"
    assert await shown.part("h2").inner_text() == "اسأل المستندات"
    assert await shown.part(".question").evaluate(direction) == "ltr"
    ways = [await part.evaluate(direction) for part in await shown.part(".prose p").all()]
    assert ways == ["rtl", "ltr"]
    assert await shown.part(".prose").get_attribute("lang") == "ar"


async def test_the_language_is_the_elements_then_the_pages_then_the_browsers(come: Come) -> None:
    visitor = await come(locale="fr-CA")
    shown = [
        await visitor.opens(lang="de"),
        await visitor.opens(html='lang="es-MX"'),
        await visitor.opens(html='lang="zh-TW"'),
        await visitor.opens(html='lang="tlh"'),
    ]

    assert [await one.part("h2").inner_text() for one in shown] == [
        "Fragen Sie die Dokumentation",
        "Pregunte a la documentación",
        "向文件提問",
        "Interrogez la documentation",
    ]


async def test_nothing_moves_for_who_wants_no_motion(
    http_server: HttpServerFixture, come: Come
) -> None:
    shown = await (await come(reduced_motion="reduce")).opens(mode="launcher")

    await shown.part(".launcher").click()

    assert await shown.page.evaluate("document.getAnimations().length") == 0


async def test_one_script_tag_makes_a_launcher(http_server: HttpServerFixture, come: Come) -> None:
    shown = await (await come()).opens(script={"heading": "Ask us", "label": "Help"})

    await shown.part(".launcher", has_text="Help").click()
    await shown.asks("How do I add a rule?")

    assert await shown.has_answers(1) == ["Open Routing [1]."]
    assert await shown.part("h2").inner_text() == "Ask us"


async def test_the_demo_page_shows_it_under_its_own_strict_policy(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come(viewport=DESKTOP)
    shown = await visitor.goes(f"{visitor.url}/")

    await shown.part(".hello .choice").first.click()
    await shown.has_answers(1)
    await shown.page.select_option("[name=lang]", "ja")
    await shown.part("h2", has_text="ドキュメントに質問").wait_for()
    await shown.page.select_option("[name=mode]", "launcher")
    await shown.part(".launcher").click()

    assert await shown.has_answers(1) == ["Open Routing [1]."]
    assert 'integrity="sha256-' in await shown.page.inner_text("#tag")
    assert await violations(shown.page) == []


async def _back_to(shown: DisplayedMessage, wanted: str) -> int:
    for presses in range(40):
        if await shown.focused() == wanted:
            return presses
        await shown.page.keyboard.press("Shift+Tab")
    raise AssertionError(f"{wanted} was not reached")


async def _shade(shown: DisplayedMessage) -> str:
    colour: str = await shown.part(".panel").evaluate("it => getComputedStyle(it).backgroundColor")
    return colour
