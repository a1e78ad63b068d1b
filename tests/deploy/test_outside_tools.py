import sys
from pathlib import Path

import pytest

from config.settings import Settings
from deploy.assembly.tool_access import open_outside_tools
from deploy.errors import CommandError
from tests.support.ticket_server import write_document
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
