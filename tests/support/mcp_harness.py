"""The tools of the played MCP server, behind an executor."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from tests.support.local_tools import LocalReceipts
from tools.calls import ToolCall, ToolCaller, ToolResult
from tools.catalog import ToolCatalog
from tools.executor import ToolExecutor
from tools.outside.mcp_tools import McpTool

PROGRAM = Path(__file__).parent / "mcp_server.py"


@dataclass
class OutsideHarness:
    """The tools of the played server, behind an executor."""

    folder: Path
    tools: Sequence[McpTool]
    receipts: LocalReceipts

    async def call(self, tool: str, arguments: JsonValue = None, call_id: str = "1") -> ToolResult:
        executor = ToolExecutor(ToolCatalog(self.tools), receipts=self.receipts)
        call = ToolCall(call_id=call_id, tool=tool, arguments=arguments or {})
        return await executor.execute(call, ToolCaller(agent="t"))

    @property
    def starts(self) -> list[int]:
        """The processes of the server, in order."""
        file = self.folder / "starts"
        return list(map(int, file.read_text().split())) if file.exists() else []

    def mark(self, name: str) -> None:
        (self.folder / name).touch()


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False
