"""Settings of answers that change how often a model is asked, and with how much."""

import json

import pytest

from tests.desk.conftest import OpenApp
from tests.desk.test_answers_on_the_wire import (
    FIRST,
    QUESTION,
    asks_the_server,
    make_draft,
    make_judgement,
)
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow

GOOD = make_draft(f"{FIRST} [1]")
HALF = make_judgement(completeness=0.6)


@pytest.mark.parametrize(("threshold", "calls"), [(0.1, 2), (1.0, 4)])
async def test_an_answer_with_a_lower_score_than_the_threshold_is_written_again(
    open_app: OpenApp, server: ModelServer, threshold: float, calls: int
) -> None:
    server.will_send(*[GOOD, HALF] * 4)

    async with open_app(
        **asks_the_server(server), quality_score_threshold=threshold, max_research=0
    ) as harness:
        reply = await harness.driver().say(QUESTION)

    assert reply["outcome"] == "answered"
    assert len(server.received) == calls


async def test_the_length_of_the_context_bounds_what_the_writer_reads(
    open_app: OpenApp, server: ModelServer
) -> None:
    sizes = []
    for tokens in (300, 8000):
        server.will_send(GOOD, make_judgement())
        async with open_app(**asks_the_server(server), max_context_length=tokens) as harness:
            await harness.driver().say(QUESTION)
        sizes.append(len(json.dumps(server.received[-2].body)))

    assert sizes[0] + 4_000 < sizes[1]


async def test_a_refusal_ends_with_the_contact_of_the_owner(open_app: OpenApp) -> None:
    async with open_app(contact="help@acme.com") as harness:
        reply = await harness.driver().say("What will the weather be like tomorrow?")

    assert reply["outcome"] == "refused"
    assert str(reply["text"]).endswith("\n\nYou can reach a person here: help@acme.com")
