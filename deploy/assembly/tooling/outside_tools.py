"""Opens the tools that run elsewhere: MCP servers and HTTP interfaces of one file."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.errors import CommandError

if TYPE_CHECKING:
    from tools.outside.outside_tool import OutsideTool


@asynccontextmanager
async def open_outside_tools(path: Path | None) -> "AsyncIterator[list[OutsideTool]]":
    """Yield the tools of a file, connected inside the block; without a file there are none.

    Raises `InvalidToolSet` for a file that is wrong, and `CommandError` without the extra `mcp`. A
    server that is away is logged: its tools are there and fail until it is back.
    """
    if path is None:
        yield []
        return
    # Imported here: most installations have none, and the client of MCP takes a second to import.
    from tools.openapi.operation_tool import open_apis
    from tools.outside.configuration import load_outside_tools

    found = load_outside_tools(path)
    async with AsyncExitStack() as stack:
        tools: list[OutsideTool] = [
            *await stack.enter_async_context(open_apis(found.apis, path.parent))
        ]
        if found.servers:
            try:
                from tools.mcp.server_tools import open_servers
            except ModuleNotFoundError as error:
                raise CommandError(
                    f"{path.name}: expected the package {error.name!r} for MCP servers, "
                    "found none: install refdesk[mcp]"
                ) from error
            tools += await stack.enter_async_context(open_servers(found.servers))
        yield tools
