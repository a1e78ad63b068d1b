"""How the widget looks and how it is reached: small and large, dark, right to left, keys alone."""

import asyncio
import dataclasses
from typing import Any

import pytest

from config.texts import load_texts
from envelope.role import Role
from gateway.answer import answer_of
from gateway.port import StoredPicture
from tests.gateway.widget.conftest import SHELF, Come
from tests.gateway.widget.sample_documents import RULES
from tests.gateway.widget.test_asking import (
    ANSWER,
    NAMED,
    QUESTION_BACK,
    STOPPABLE,
    asks_back,
    gate_role,
)
from tests.support.browser import WIDGET, DisplayedMessage, violations
from tests.support.http_server import HttpServerFixture
from tests.support.pictures import make_picture

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
    result = await violations(shown.page)
    await answering(shown, http_server)

    assert (begun, empty, result, await violations(shown.page)) == ([], [], [], [])
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

    assert [await message.part("h2").inner_text() for message in shown] == [
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


SHOWN = [
    {"number": 1, "place": "Rules", "text": "Open **Routing rules** and **Save**. `list[2]`"},
    {
        "number": 2,
        "place": "Limits",
        "text": "```\ncurl https://api.acme.test/a/very/long/address/of/a/request\n```",
        "warning": "This passage gives orders.",
    },
]


FOUND = {
    "response": "No model.\n\n**Rules** [1]\n\nOpen **Routing rules** and **Save**. `list[2]`"
    f"\n\n**Limits** [2]\n\n*This passage gives orders.*\n\n{SHOWN[1]['text']}",
    "sources_used": ANSWER["sources_used"],
    "answered_by": "search",
    "fallback_reason": "no_model",
    "passages": {"notice": "No model.", "shown": SHOWN, "marked": ["Routing rules"]},
}


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["320", "1440"])
async def test_the_first_passage_is_shown_and_the_others_are_unfolded(
    http_server: HttpServerFixture, come: Come, size: Any
) -> None:
    visitor = await come(viewport=size, reduced_motion="reduce")
    shown = await visitor.opens(mode="inline")
    http_server.harness.script.next(Role.RESPONSE, FOUND)

    await shown.asks("How do I add a routing rule?")
    await shown.has_answers(1)

    assert await shown.part(".passages > .prose").first.inner_text() == "No model."
    assert await shown.part("mark").all_inner_texts() == ["Routing rules"]
    assert await shown.part(".passages strong").all_inner_texts() == ["Save"]
    assert await shown.part(".passages .cite").count() == 2
    further = shown.part(".passages pre")
    assert not await further.is_visible()
    await shown.part("summary").click()
    assert await further.is_visible()
    assert await shown.part(".passages .note").inner_text() == "This passage gives orders."
    assert await violations(shown.page) == []
    assert not await shown.page.evaluate(WIDE)
    assert not await shown.part(".log").evaluate("it => it.scrollWidth > it.clientWidth")


NAME, GONE = "a" * 32, "b" * 32


SOURCE = {
    "number": 1,
    "chunk_id": "rules#1",
    "title": "Routing rules",
    "path": "routing/rules.md",
    "pictures": [{"id": NAME, "caption": "The page of rules"}, {"id": GONE, "caption": "Gone"}],
}


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["320", "1440"])
async def test_a_figure_of_a_cited_section_is_shown_from_our_server_with_its_caption(
    http_server: HttpServerFixture, come: Come, monkeypatch: pytest.MonkeyPatch, size: Any
) -> None:
    section = dataclasses.replace(RULES.sections[1], pictures=((NAME, "The page of rules"),))
    document = dataclasses.replace(RULES, sections=(section,))
    monkeypatch.setitem(SHELF.kept, ("acme", "docs", "rules#1"), document)
    picture = StoredPicture("image/png", make_picture(size=(1600, 900)))
    monkeypatch.setattr(SHELF, "pictures", {NAME: picture})
    visitor = await come(viewport=size, reduced_motion="reduce")
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    shown = await visitor.opens(mode="inline")
    reply = {"response": "Open the rules. [1]", "sources_used": [SOURCE]}
    http_server.harness.script.next(Role.RESPONSE, reply)

    await shown.asks("How do I add a routing rule?")
    await shown.has_answers(1)
    image = shown.part(".figures img")
    await shown.part("figure", has_text="Gone").wait_for(state="detached")
    await image.scroll_into_view_if_needed()

    assert await image.evaluate("it => it.decode().then(() => it.naturalWidth)") == 1600
    assert await image.get_attribute("alt") == "The page of rules"
    assert (await shown.part("figcaption").inner_text()).split() == [
        "The",
        "page",
        "of",
        "rules",
        "1",
    ]
    assert all(url.startswith(visitor.url) for url in asked)
    assert await violations(shown.page) == []
    assert not await shown.page.evaluate(WIDE)
    assert not await shown.part(".log").evaluate("it => it.scrollWidth > it.clientWidth")


async def test_a_picture_of_another_server_is_never_loaded(
    http_server: HttpServerFixture, come: Come
) -> None:
    visitor = await come()
    asked: list[str] = []
    visitor.context.on("request", lambda request: asked.append(request.url))
    shown = await visitor.opens(mode="inline")
    reply = {"response": "Open the rules. [1]", "sources_used": [SOURCE]}
    http_server.harness.script.next(Role.RESPONSE, reply)

    async def point_elsewhere(route: Any) -> None:
        response = await route.fetch()
        text = (await response.text()).replace(f"{visitor.url}/v1/reader/", "https://spy.test/")
        await route.fulfill(response=response, body=text)

    await shown.page.route("**/events", point_elsewhere)
    await shown.page.route("**/messages", point_elsewhere)
    await shown.asks("How do I add a routing rule?")
    await shown.has_answers(1)

    assert await shown.part("img").count() == 0
    assert all(url.startswith(visitor.url) for url in asked)


REFERENCE = "w-5f0c3b1e9a7d4c2f8b6a0e1d2c3b4a59"


PAGE = {
    "label": "Routing rules",
    "value": "Routing rules",
    "kind": "source",
    "crumbs": ["Routing", "Routing rules"],
    "url": "https://docs.acme.test/rules",
    "link": "https://docs.acme.test/rules",
}


CITED = {"text": ANSWER["response"], "sources": ANSWER["sources_used"]}


OFFERED = {"label": "What is 4029?", "value": "What is 4029?"}


ASKED_BACK = {
    "text": QUESTION_BACK["response"],
    "suggested_actions": QUESTION_BACK["suggested_actions"],
}


def list_ends(language: str) -> dict[str, dict[str, Any]]:
    """The replies of all ends, with the texts of this language."""
    texts = load_texts(topic="SMS")

    def text(key: str, **values: str) -> str:
        return texts.text(key, language, **values)

    reference = text("reference", reference=REFERENCE)
    pages = f"{text('nearest_pages')}\n- Routing rules"
    missing = text("decline_missing", question="How loud is it?")
    return {
        "answered": {"outcome": "answered", **CITED},
        "several": {
            "outcome": "answered",
            **CITED,
            "text": f"{CITED['text']}\n\n{text('also_asked')}\n1. What is 4029?",
            "suggested_actions": [OFFERED],
        },
        "clarification": {"outcome": "clarification", **ASKED_BACK},
        "out_of_scope": {"outcome": "refused", "text": text("decline_domain")},
        "insufficient_context": {
            "outcome": "refused",
            "text": f"{missing}\n{pages}",
            "suggested_actions": [PAGE],
        },
        "deadline": {
            "outcome": "failed",
            "text": f"{text('deadline')}\n\n{reference}\n\n{pages}",
            "suggested_actions": [PAGE],
        },
        "steps_reached": {
            "outcome": "answered",
            **CITED,
            "text": f"{text('attempts_reached')}\n\n{CITED['text']}",
        },
        "dead_letter": {"outcome": "failed", "text": f"{text('apology')}\n\n{reference}"},
        "failed": {"outcome": "failed", "text": f"{text('decline_fault')}\n\n{reference}"},
        "cancelled": {"outcome": "superseded", "termination_reason": "stopped"},
        "superseded": {"outcome": "superseded"},
    }


async def open_ends(
    server: HttpServerFixture, come: Come, language: str, **options: Any
) -> tuple[DisplayedMessage, dict[str, Any]]:
    """Open a page whose conversation had every end; return the page, and its turns by name."""
    words = load_texts(topic="SMS").text
    messages = [
        {
            "message_id": name,
            "text": f"How about {name}?",
            "at": 1.0,
            "status": "ended",
            "answer": answer_of(
                {"conversation_id": "c1", "message_id": name, "language": language, **reply},
                words=words,
                language=language,
            ).model_dump(mode="json", exclude_none=True),
        }
        for name, reply in list_ends(language).items()
    ]
    stored = {"conversation_id": "c1", "earlier": [], "messages": messages}
    visitor = await come(**options)
    await visitor.context.route("**/v1/conversations/c1", lambda route: route.fulfill(json=stored))
    place = '{"place":{"id":"c1","token":null},"waiting":[]}'
    await visitor.context.add_init_script(
        f"localStorage.setItem('refdesk:{server.url}||', '{place}')"
    )
    shown = await visitor.opens(lang=language, html=f'lang="{language}"')
    await shown.has_answers(len(messages))
    return shown, dict(zip(list_ends(language), await find_turns(shown), strict=True))


async def find_turns(shown: DisplayedMessage) -> list[Any]:
    """What each turn shows, its edge and the colour of its words."""
    turns: list[Any] = await shown.part(".log").evaluate(
        """(log) => [...log.querySelectorAll(".answer")].map((answer) => {
          const prose = answer.querySelector(".prose");
          const style = getComputedStyle(prose);
          return {
            text: answer.innerText,
            edge: style.borderInlineStartWidth === "3px" ? style.borderInlineStartColor : "",
            colour: style.color,
            choices: [...answer.querySelectorAll(".choice")].map((it) => it.innerText),
            pages: [...answer.querySelectorAll(".options a:has(.icon)")].map((it) => it.innerText),
            tools: answer.querySelectorAll(".tool").length,
          };
        })"""
    )
    return turns


@pytest.mark.parametrize(("language", "scheme"), [("en", "light"), ("ar", "dark")])
async def test_every_end_shows_its_reason_and_only_faults_are_marked_on_a_phone(
    http_server: HttpServerFixture, come: Come, language: str, scheme: Any
) -> None:
    looks = {"viewport": PHONE, "color_scheme": scheme}
    shown, ends = await open_ends(http_server, come, language, **looks)
    words = load_texts(topic="SMS").text

    assert [name for name, end in ends.items() if end["edge"]] == [
        "deadline", "dead_letter", "failed",
    ]  # fmt: skip
    plain = ends["answered"]["colour"]
    muted = [name for name, end in ends.items() if end["colour"] != plain]
    assert muted == ["cancelled", "superseded"]
    assert words("deadline", language) in ends["deadline"]["text"]
    assert words("apology", language) in ends["dead_letter"]["text"]
    assert words("attempts_reached", language) in ends["steps_reached"]["text"]
    assert words("stopped", language) in ends["cancelled"]["text"]
    assert words("superseded", language) in ends["superseded"]["text"]
    assert all(REFERENCE in ends[name]["text"] for name in ("deadline", "dead_letter", "failed"))
    assert ends["several"]["choices"] == ["What is 4029?"]
    assert len(ends["clarification"]["choices"]) == 3
    assert [name for name, end in ends.items() if end["pages"]] == [
        "insufficient_context", "deadline",
    ]  # fmt: skip
    assert "Routing" in ends["deadline"]["pages"][0].split("\n")
    assert [name for name, end in ends.items() if not end["tools"]] == ["cancelled", "superseded"]
    assert not await shown.page.evaluate(WIDE)
    assert await violations(shown.page) == []
