"""Every end of a question as people see it: its text, its colour, and what can be done next."""

from typing import Any

import pytest

from config.texts import load_texts
from gateway.answer import answer_of
from tests.gateway.widget.conftest import Come
from tests.gateway.widget.test_asking import ANSWER, QUESTION_BACK
from tests.gateway.widget.test_looks import PHONE, WIDE
from tests.support.browser import DisplayedMessage, violations
from tests.support.http_server import HttpServerFixture

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.slow]

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
