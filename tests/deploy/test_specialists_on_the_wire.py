"""Specialists whose models are behind a real connection: tools, hangs, and the cost of each."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from deploy.cli.commands.trace import trace_lines
from tests.deploy.conftest import OpenReviews
from tests.deploy.test_specialists_way import count
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Received, Response, running_server

pytestmark = pytest.mark.slow
VENDOR = OpenAI()
MODEL = "gpt-4o-mini@openai"
ASKED = (
    "Does the Brandt contract comply with the Register Data Protection Act, and with which risk?"
)
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


class SpecialistServer(ModelServer):
    """Answers as two models: the first calls a tool, the second does as `risk` says."""

    risk = Response(ends="never")

    def choose_response(self, received: Received) -> Response:
        said = [str(message["content"]) for message in received.body["messages"]]
        if "You compare a document with requirements" not in said[0]:
            return self.risk
        if "Go through the passages" in said[0]:
            return VENDOR.answer(json.dumps({"readings": [], "verdicts": [], "notes": []}))
        if any(message.get("role") == "tool" for message in received.body["messages"]):
            return VENDOR.answer(json.dumps({"verdicts": list_verdicts(said)}))
        return call_tool("graph_search", {"query": "subcontractor"})


def list_verdicts(said: list[str]) -> list[dict[str, Any]]:
    """Every requirement is broken by the first passage."""
    ids = sorted(set(re.findall(r"REQ-\d+", " ".join(said))))
    return [
        {"requirement_id": one, "status": "VIOLATION", "confidence": 0.8,
         "evidence": [{"passage": "p1"}], "reason": "as the model says"}
        for one in ids
    ]  # fmt: skip


def call_tool(name: str, arguments: dict[str, Any]) -> Response:
    """A message with one call of a tool."""
    call = {
        "id": "call-1",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    fields = {"id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini"}
    return Response(body=json.dumps({**fields, "choices": [choice], "usage": USAGE}).encode())


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with running_server(SpecialistServer("")) as server:
        yield server


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Files of two specialists with a model; all others are rules."""
    folder = tmp_path / "team"
    folder.mkdir()
    for name, tools in (("compliance", '["graph_search"]'), ("risk_verifier", "[]")):
        text = f'name = "{name}"\nmodel = "{MODEL}"\ntools = {tools}\n'
        (folder / f"{name}.toml").write_text(text, "utf-8")
    return folder


def use_models(server: ModelServer, team: Path) -> dict[str, Any]:
    """Settings by which these specialists ask the server."""
    return {
        "specialists_folder": team,
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
        "model_cache_seconds": 0,
        "model_timeout_seconds": 1.0,
    }


async def test_a_specialist_whose_model_hangs_is_named_and_the_others_go_on(
    open_reviews: OpenReviews, server: ModelServer, team: Path
) -> None:
    async with open_reviews(**use_models(server, team)) as harness:
        driver = harness.driver()
        reply = await driver.say(ASKED)
        question = driver.desk.question(driver.message("-", reply["message_id"]))
        lines = trace_lines(question, await driver.journal(reply))

    assert (reply["outcome"], reply["way"]) == ("answered", "specialists")
    assert count(reply)["violations"] == 10, "the verdicts are those of the model"
    [error] = reply["errors"]
    assert error["specialist"] == "risk_verifier"
    assert (error["severity"], error["phase"]) == ("high", "verification")
    assert error["error_id"] in reply["text"]
    calls = {one["tool_name"]: one["success"] for one in reply["tool_calls"] if "agent_name" in one}
    assert calls["graph_search"] is True
    usage = reply["model_usage"]["by_agent"]
    assert usage["compliance"]["calls"] == 3
    assert set(usage) == {"compliance", "risk_verifier"}
    assert any(line.split()[:1] == ["compliance"] and "3 calls" in line for line in lines)
