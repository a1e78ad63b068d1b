"""The same server over streamable HTTP, and servers that answer something else."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import JsonValue

from outbound.resolution import GuardedResolver
from tests.support.local_tools import LocalReceipts
from tests.support.waiting import wait_until
from tools.calls import ToolCall, ToolCaller, ToolErrorType, ToolResult
from tools.catalog import ToolCatalog
from tools.executor import ToolExecutor
from tools.outside.mcp_connection import BoundedTransport
from tools.outside.mcp_tools import McpTool, open_servers
from tools.outside.outside_tool import McpServerEntry

PROGRAM = Path(__file__).parents[2] / "support" / "mcp_server.py"
pytestmark = pytest.mark.slow


@asynccontextmanager
async def run_server(
    folder: Path, port: int, *options: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), str(folder), "--port", str(port), *options
    )
    try:
        await wait_until(lambda: is_open(port))
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def make_entry(port: int, *names: str, **facts: Any) -> McpServerEntry:
    limits = {"effect": "read", "timeout_seconds": 20, **facts}
    return McpServerEntry.model_validate(
        {
            "url": f"http://127.0.0.1:{port}/mcp",
            "headers": {"Authorization": "Bearer secret"},
            "start_seconds": 5,
            "tools": dict.fromkeys(names or ("get_forecast",), limits),
        }
    )


async def call(tools: list[McpTool], name: str, arguments: JsonValue = None) -> ToolResult:
    executor = ToolExecutor(ToolCatalog(tools), receipts=LocalReceipts())
    return await executor.execute(
        ToolCall(call_id="1", tool=name, arguments=arguments or {}), ToolCaller(agent="t")
    )


async def test_a_server_at_an_address_is_called_and_found_again_after_its_restart(
    tmp_path: Path,
) -> None:
    port = find_port()
    async with (
        run_server(tmp_path, port) as first,
        open_servers({"weather": make_entry(port)}) as tools,
    ):
        before = await call(tools, "get_forecast", {"city": "Mantua"})
        os.kill(first.pid, 9)
        await first.wait()
        away = await call(tools, "get_forecast", {"city": "Mantua"})
        async with run_server(tmp_path, port):
            after = await wait_until(lambda: _try(tools))

    assert (before.text, after.text) == ("Rain in Mantua.", "Rain in Mantua.")
    assert away.error_type is ToolErrorType.EXECUTION
    assert "cannot be used" in (away.error or "")


@pytest.mark.parametrize("status", ["404", "400", "401"])
async def test_a_call_in_an_expired_session_is_sent_again_in_a_new_one(
    tmp_path: Path, status: str
) -> None:
    port = find_port()
    run = partial(run_server, tmp_path, port, "--sessions", "--lost", status)
    entry = make_entry(port, effect="effect")
    async with run() as first, open_servers({"weather": entry}) as tools:
        await call(tools, "get_forecast", {"city": "Mantua"})
        os.kill(first.pid, 9)
        await first.wait()
        async with run():
            after = await asyncio.gather(
                call(tools, "get_forecast", {"city": "Cremona"}),
                call(tools, "get_forecast", {"city": "Brescia"}),
            )

    assert [tool_result.text for tool_result in after] == ["Rain in Cremona.", "Rain in Brescia."]
    called = (tmp_path / "called").read_text().split()
    assert sorted(called) == ["Brescia", "Cremona", "Mantua"]


async def test_a_request_that_a_server_refuses_in_every_session_costs_the_other_tools_nothing(
    tmp_path: Path,
) -> None:
    port = find_port()
    entry = make_entry(port, "refuse", "get_forecast")
    async with run_server(tmp_path, port, "--sessions"), open_servers({"weather": entry}) as tools:
        refused = [await call(tools, "refuse") for _ in range(3)]
        after = await call(tools, "get_forecast", {"city": "Mantua"})

    assert all(
        "refused the request with status 400" in (tool_result.error or "")
        for tool_result in refused
    )
    assert after.text == "Rain in Mantua."


async def test_a_name_that_leads_into_the_private_network_later_is_not_connected_to() -> None:
    addresses = [["93.184.216.34"], ["127.0.0.1"]]

    async def resolve(_host: str, _port: int) -> list[str]:
        return addresses.pop(0)

    resolver = GuardedResolver(resolve)
    await resolver.start_at("weather.test", 443)
    async with httpx2.AsyncClient(transport=BoundedTransport(resolver)) as client:
        with pytest.raises(httpx2.ConnectError, match=r"has the private address"):
            await client.post("https://weather.test/mcp")


async def _try(tools: list[McpTool]) -> ToolResult | None:
    result = await call(tools, "get_forecast", {"city": "Mantua"})
    return result if result.success else None


@pytest.mark.parametrize(
    ("effect", "kind"),
    [("read", ToolErrorType.EXECUTION), ("effect", ToolErrorType.UNKNOWN)],
)
async def test_a_server_that_dies_in_the_middle_of_a_call_is_an_error(
    tmp_path: Path, effect: str, kind: ToolErrorType
) -> None:
    port = find_port()
    entry = make_entry(port, "die", effect=effect)
    async with run_server(tmp_path, port), open_servers({"weather": entry}) as tools:
        result = await call(tools, "die")

    assert result.error_type is kind


async def test_a_body_that_is_too_large_ends_the_call(tmp_path: Path) -> None:
    port = find_port()
    entry = make_entry(port, "shout", "get_forecast")
    async with run_server(tmp_path, port), open_servers({"weather": entry}) as tools:
        result = await call(tools, "shout")
        after = await wait_until(lambda: _try(tools))

    assert result.error_type is ToolErrorType.EXECUTION
    assert after.success


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 X\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\nhtml",
        b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: 6\r\n\r\nno jwt",
        b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: 73\r\n\r\n"
        b'{"jsonrpc":"2.0","id":"xxx","error":{"code":-32603,"message":"internal"}}',
        b"HTTP/1.1 202 X\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 302 X\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 401 X\r\ncontent-length: 0\r\n\r\n",
        b"nonsense",
        b"",
    ],
)
async def test_an_address_without_a_server_is_an_error_result(answer: bytes) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_servers({"weather": make_entry(port)}) as tools:
            result = await call(tools, "get_forecast", {"city": "Mantua"})

    assert result.error_type is ToolErrorType.EXECUTION
    assert "cannot be used" in (result.error or "")
