"""A dangerous call of a real HTTP interface waits for its approval, and is made once."""

from pathlib import Path
from typing import Any

import pytest

from tests.deploy.conftest import OpenApp
from tests.deploy.test_tool_way import FOUND, RETRIES, SEARCH, list_tools, plan, score, use
from tests.support.app_harness import Fields, PartlyScriptedModel
from tests.support.ticket_server import TicketServer, run_ticket_server, write_document

pytestmark = pytest.mark.slow

CLOSE = use("deleteTicket", id="7")


def write_tools(folder: Path, server: TicketServer) -> Path:
    (folder / "tickets.json").write_text(write_document())
    file = folder / "outside.toml"
    file.write_text(
        f"""
[apis.tickets]
document = "tickets.json"
base_url = "{server.url}"
headers = {{ X-Tenant = "acme" }}

[apis.tickets.operations.deleteTicket]
effect = "dangerous"
"""
    )
    return file


def make_model(rounds: int = 1) -> PartlyScriptedModel:
    calls = plan(SEARCH, CLOSE)
    return PartlyScriptedModel(
        reason=[calls] * rounds, respond=[FOUND] * rounds, assess=[score(9.0)] * rounds
    )


def list_requests(server: TicketServer) -> list[str]:
    return [first for first, _, _ in server.requests]


async def ask_and_reply(open_app: OpenApp, folder: Path, *replies: str) -> tuple[Any, ...]:
    """Return the model, the server's requests before and after, and what the desk said."""
    model = make_model()
    async with run_ticket_server() as server:
        outside = write_tools(folder, server)
        async with open_app(model, way="tools", outside_tools=outside) as harness:
            driver = harness.driver()
            said: list[Fields] = [await driver.say(RETRIES)]
            before = list_requests(server)
            said += [await driver.say(reply) for reply in replies]
        return model, before, list_requests(server), said


async def test_a_dangerous_call_is_made_after_its_approval_and_no_other_call_is_repeated(
    open_app: OpenApp, tmp_path: Path
) -> None:
    model, before, after, (asked, answered, late) = await ask_and_reply(
        open_app, tmp_path, "Approve", "Approve"
    )

    assert asked["outcome"] == "clarification"
    assert 'Shall I run “deleteTicket”? With: `{"id": "7"}`' in asked["text"]
    assert before == []
    assert after == ["DELETE /v2/tickets/7 HTTP/1.1"], "also after a second approval"
    assert answered["outcome"] == "answered"
    assert sorted(list_tools(answered)) == ["deleteTicket", "search"]
    assert late["outcome"] == "refused", "nothing is left to approve"
    assert len(model.find_asked("reason")) == 1, "the plan is not paid twice"


async def test_after_a_denial_the_answer_is_written_without_the_call(
    open_app: OpenApp, tmp_path: Path
) -> None:
    _, _, after, (_, answered) = await ask_and_reply(open_app, tmp_path, "Deny")

    assert after == []
    assert answered["outcome"] == "answered"
    assert list_tools(answered) == ["search"]
