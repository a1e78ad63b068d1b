"""Serves MCP to the one program that started this process, over standard input and output.

With a key, its scopes, groups and limits hold, and it is looked up for every call. Without one, the
caller is the person who started the process and who may read the data folder anyway.
"""

from collections.abc import Sequence

from mcp.server.stdio import stdio_server
from starlette.requests import Request

from gateway.api_keys import Scope
from gateway.http.access import Guard, Principal
from gateway.http.errors import ForbiddenError
from gateway.mcp.server import Context, DeskTools, FindCaller, McpCaller


async def serve_lines(tools: DeskTools, version: str) -> None:
    """Answer until the input ends."""
    server = tools.make_server(version)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def find_local_caller(
    guard: Guard, *, key: str, tenant: str, assistant: str | None, groups: Sequence[str]
) -> FindCaller:
    """Return what names the caller of every request; without a `key`, a person of `groups`."""
    person = Principal(tenant, frozenset(Scope), person_groups=tuple(groups))

    async def find(_context: Context) -> McpCaller:
        if not key:
            return McpCaller(person, assistant)
        caller = await guard.caller(_make_request(key))
        if caller.public:
            raise ForbiddenError("expected a secret key", code="secret_key_required")
        await guard.admit(caller)
        return McpCaller(caller, assistant)

    return find


def _make_request(key: str) -> Request:
    """Return a request as the guard reads one: of this machine, with the key."""
    return Request(
        {
            "type": "http",
            "method": "POST",
            "scheme": "http",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {key}".encode())],
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 80),
        }
    )
