import sys
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeAsyncRedis

from config.settings import Settings
from deploy.assembly.tool_access import open_outside_tools, open_receipts
from deploy.errors import CommandError
from envelope.question import Question
from envelope.run import OUTSIDE, Run
from knowledge.library.attached_documents import AttachmentSource
from memory.receipts import RedisReceipts
from memory.work_store import RedisAttachments
from tests.support.ticket_server import write_document
from tools.calls import ReceiptKey
from tools.catalog import ToolCatalog, make_tool_set
from tools.errors import InvalidToolSet

API = """
[apis.tickets]
document = "tickets.json"
base_url = "https://tickets.test"
headers = { X-Tenant = "acme" }
[apis.tickets.operations.getTicket]
name = "read_ticket"
"""


SERVER = """
[servers.weather]
command = ["no-such-server"]
[servers.weather.tools.get_forecast]
effect = "read"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tickets.json").write_text(write_document())
    return tmp_path


async def test_without_a_file_there_are_no_outside_tools() -> None:
    async with open_outside_tools(Settings(outside_tools=None).outside_tools) as tools:
        assert tools == []


@pytest.mark.slow
async def test_tools_of_servers_and_interfaces_are_in_one_file(folder: Path) -> None:
    (folder / "outside.toml").write_text(API + SERVER)

    async with open_outside_tools(folder / "outside.toml") as tools:
        names = [tool.name for tool in tools]

    assert names == ["read_ticket", "get_forecast"]


async def test_a_tool_set_names_an_outside_tool_with_fixed_arguments(folder: Path) -> None:
    (folder / "outside.toml").write_text(API)
    entry = {"tool": "read_ticket", "description": "Reads ticket 7.", "fixed": {"id": "7"}}

    async with open_outside_tools(folder / "outside.toml") as tools:
        [named] = make_tool_set({"ticket_7": entry}, ToolCatalog(tools), "set.toml")
        with pytest.raises(InvalidToolSet, match="found 'number'"):
            make_tool_set({"t": entry | {"fixed": {"number": 7}}}, ToolCatalog(tools), "set.toml")

    shown = named.describe_inputs()
    assert (shown["properties"], shown["required"]) != ({}, ["id"])
    assert "id" not in str(shown["required"])


async def test_a_wrong_file_stops_the_start_with_its_reason(folder: Path) -> None:
    (folder / "outside.toml").write_text(API.replace("getTicket", "getTickets"))

    with pytest.raises(InvalidToolSet, match="expected one of createTicket"):
        async with open_outside_tools(folder / "outside.toml"):
            raise AssertionError


async def test_without_the_extra_a_server_is_refused_with_the_name_of_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "outside.toml").write_text(SERVER)
    monkeypatch.setitem(sys.modules, "mcp", None)
    for module in [name for name in sys.modules if name.startswith("tools.outside.mcp_")]:
        monkeypatch.delitem(sys.modules, module)

    with pytest.raises(CommandError, match=r"install 'refdesk\[mcp\]'"):
        async with open_outside_tools(folder / "outside.toml"):
            raise AssertionError


QUESTION = Question(tenant="acme", assistant="desk", conversation_id="c1", message_id="m1")


KEY = ReceiptKey(call_id="1", tool="pay", digest="abc")


def open_new(client: Any, branch: str = "") -> RedisReceipts:
    """The receipts of a further run of the question."""
    return open_receipts(client, 1, Run(QUESTION, "tool", branch=branch))


async def test_every_delivery_of_an_envelope_is_another_one() -> None:
    client = FakeAsyncRedis(protocol=2)
    receipts = open_new(client, "w1/t1")

    first, same = await receipts.claim(KEY), await receipts.claim(KEY)
    other_branch = await open_new(client, "w1/t2").claim(KEY)
    redelivered = await open_new(client, "w1/t1").claim(KEY)

    assert [first, same, other_branch] == [("claimed", b"")] * 3
    assert redelivered == ("unknown", b"")


async def test_results_are_found_by_the_next_delivery() -> None:
    client = FakeAsyncRedis(protocol=2)
    receipts = open_new(client)
    doubted = KEY.model_copy(update={"digest": "def"})
    await receipts.claim(KEY)
    await receipts.finish(KEY, b"paid")
    await receipts.claim(doubted)
    await receipts.mark_unknown(doubted)

    next_one = open_new(client)
    result = await next_one.claim(KEY), await next_one.claim(doubted)

    assert result == (("done", b"paid"), ("unknown", b""))


async def test_outside_a_question_nothing_can_be_claimed() -> None:
    with pytest.raises(LookupError, match="this run has no question"):
        open_receipts(FakeAsyncRedis(protocol=2), 1, OUTSIDE)


async def test_a_run_finds_the_documents_of_its_conversation_and_of_no_other() -> None:
    client = FakeAsyncRedis(protocol=2)
    other = QUESTION.model_copy(update={"conversation_id": "c2"})
    await RedisAttachments(client, shards=1, ttl_of=lambda _: 60).put(QUESTION, "a", b"text")
    attachments: AttachmentSource = RedisAttachments(client, shards=1, ttl_of=lambda _question: 60)

    own = await attachments.find(QUESTION, ["a"])
    foreign = await attachments.find(other, ["a"])

    assert (own, foreign) == ({"a": b"text"}, {})
    assert await attachments.all(QUESTION) == own
