"""The whole desk with a model that writes slowly: what is shown of an answer, and when."""

import asyncio
import json
from dataclasses import replace

import pytest

from broker.values import JournalEntry
from gateway.answer import answer_of
from gateway.events import DraftFollower, Event
from tests.desk.conftest import OpenApp
from tests.desk.test_answers_on_the_wire import (
    FIRST,
    QUESTION,
    VENDOR,
    asks_the_server,
    make_judgement,
)
from tests.support.app_harness import AppHarness
from tests.support.model_server import ModelServer, Response
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow
SECOND = "Set conditions, routes and a priority."
CHARACTERS = 12


def make_stream(answer: str, *, gate: tuple[str, asyncio.Event] | None = None) -> Response:
    """An answer that is written piece by piece; before the words of `gate` it waits."""
    draft = {"status": "answered", "answer": answer, "confidence": 0.9, "missing": ""}
    text = json.dumps(draft)
    pieces = [text[at : at + CHARACTERS] for at in range(0, len(text), CHARACTERS)]
    response = VENDOR.stream(*pieces)
    if gate is None:
        return response
    words, event = gate
    return replace(response, gates={text.index(words) // CHARACTERS + 1: event})


class StreamedQuestion:
    """A question that is being answered, and the events of its drafts so far."""

    def __init__(
        self, harness: AppHarness, text: str = QUESTION, *, shows_drafts: bool = True
    ) -> None:
        driver = harness.driver()
        self.message = replace(driver.message(text), shows_drafts=shows_drafts)
        self.entries: list[JournalEntry] = []
        self.events: list[Event] = []
        self._harness = harness
        question = harness.desk.question(self.message)
        self._follower = DraftFollower(
            question, shows=lambda reply, language: answer_of(reply, words=lambda key, _: key)
        )
        self._question = question

    async def follow(self) -> str:
        """Follow the question to its end; return the text of its answer."""
        await self._harness.desk.submit(self.message)
        async for entry in self._harness.desk.follow(self._question):
            self.entries.append(entry)
            self.events += self._follower.read(entry)
        return str(self.entries[-1].fields["text"])

    @property
    def drafts(self) -> list[str]:
        """The text that was shown after each event of a draft."""
        texts, shown = [], ""
        for event in self.events:
            if event.name == "draft":
                offset = int(str(event.data["offset"]))
                shown = shown[:offset] + str(event.data["text"])
                texts.append(shown)
        return texts

    @property
    def retracted(self) -> list[object]:
        """The sentences that were taken back."""
        return [event.data["sentences"] for event in self.events if event.name == "retracted"]


async def test_the_first_sentence_is_shown_while_the_model_writes_the_last(
    open_app: OpenApp, server: ModelServer
) -> None:
    gate = asyncio.Event()
    server.will_send(
        make_stream(f"{FIRST} [1] {SECOND} [1]", gate=("routes and", gate)), make_judgement()
    )

    async with open_app(**asks_the_server(server)) as harness:
        asked = StreamedQuestion(harness)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(asked.follow())
            await wait_until(lambda: _has(asked.drafts))
            shown_while_it_writes = list(asked.drafts)
            gate.set()
        text = following.result()

    assert shown_while_it_writes == [f"{FIRST} [1]"]
    assert asked.drafts[-1] == text == f"{FIRST} [1] {SECOND} [1]"
    assert asked.retracted == []


async def test_a_sentence_that_the_judge_rejects_is_taken_back(
    open_app: OpenApp, server: ModelServer
) -> None:
    written = make_stream(f"{FIRST} [1]\n\n{SECOND} [1]"), make_judgement(SECOND)
    server.will_send(*written, *written)

    async with open_app(**asks_the_server(server)) as harness:
        asked = StreamedQuestion(harness)
        text = await asked.follow()

    assert asked.drafts[-1] == f"{FIRST} [1]\n\n{SECOND} [1]"
    assert text.startswith(f"{FIRST} [1]\n\nSomething was left out")
    assert asked.retracted[-1] == [SECOND]


async def test_text_that_fails_the_checks_without_a_model_is_never_shown(
    open_app: OpenApp, server: ModelServer
) -> None:
    invented = "Then pay 4711 euros. [1]"
    link = "Read [all of it](https://evil.example/rules). [1]"
    uncited = "Giraffes sleep two hours a day."
    server.will_send(
        make_stream(f"{FIRST} [1]\n\n{invented}\n\n{link}\n\n{uncited}\n\n{SECOND} [1]"),
        make_judgement(),
        make_stream(f"{FIRST} [1]"),
        make_judgement(),
    )

    async with open_app(**asks_the_server(server)) as harness:
        asked = StreamedQuestion(harness)
        await asked.follow()

    assert asked.drafts
    for words in ("4711 euros", "evil.example", "Giraffes"):
        assert not any(words in draft for draft in asked.drafts)


async def test_an_answer_that_is_written_again_begins_its_draft_anew(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(
        make_stream(f"{SECOND} [1]"),
        make_judgement(SECOND, completeness=0.0, decision="regenerate"),
        make_stream(f"{FIRST} [1] {SECOND} [1]"),
        make_judgement(),
    )

    async with open_app(**asks_the_server(server)) as harness:
        asked = StreamedQuestion(harness)
        text = await asked.follow()

    names = [event.data["draft"] for event in asked.events if event.name == "draft"]
    assert len(set(names)) == 2
    assert asked.retracted[0] == [SECOND]
    assert asked.drafts[-1] == text


async def test_a_draft_in_another_language_than_the_users_is_not_shown(
    open_app: OpenApp, server: ModelServer
) -> None:
    german = "Öffnen Sie Routing > Rules und wählen Sie dort New rule, um eine Regel anzulegen."
    server.will_send(
        make_stream(f"{german} [1] {german} [1]"),
        make_judgement(),
        make_stream(f"{FIRST} [1] {SECOND} [1]"),
        make_judgement(),
    )

    async with open_app(**asks_the_server(server)) as harness:
        asked = StreamedQuestion(harness)
        text = await asked.follow()

    # The judge has it written again, in the language of the user.
    assert len(server.received) == 4
    assert not any("Routing > Rules und" in draft for draft in asked.drafts)
    assert asked.drafts[-1] == text == f"{FIRST} [1] {SECOND} [1]"
    assert asked.retracted == []


async def test_a_question_outside_of_the_scope_has_no_draft(
    open_app: OpenApp, server: ModelServer
) -> None:
    async with open_app(**asks_the_server(server)) as harness:
        asked = StreamedQuestion(harness, "Who won the football world cup in 1998?")
        await asked.follow()

    assert asked.entries[-1].fields["outcome"] == "refused"
    assert asked.events == []
    assert server.received == []


@pytest.mark.parametrize(
    ("settings", "shows_drafts"), [({}, False), ({"release": "approved"}, True)]
)
async def test_a_channel_without_drafts_and_an_approved_release_show_and_cost_none(
    open_app: OpenApp, server: ModelServer, settings: dict[str, str], shows_drafts: bool
) -> None:
    server.will_send(make_stream(f"{FIRST} [1] {SECOND} [1]"), make_judgement())

    async with open_app(**asks_the_server(server), **settings) as harness:
        asked = StreamedQuestion(harness, shows_drafts=shows_drafts)
        await asked.follow()

    assert asked.events == []
    assert "draft" not in [entry.kind for entry in asked.entries]
    assert "stream" not in server.received[0].body


async def _has(drafts: list[str]) -> bool:
    return bool(drafts)
