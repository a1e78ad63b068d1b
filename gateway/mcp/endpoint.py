"""Serves MCP over streamable HTTP at `/mcp`, with one response per request and no sessions.

A web page that somebody visits must not be able to reach the server under the page's own host name
(DNS rebinding). The guard checks the host, and requests from foreign websites are rejected here.
Because there are no sessions, any process can answer any request.

With a key, its scopes, groups, and limits apply, and the key is looked up for every call. Without a
key, the caller is the person who started the process and who can read the data folder anyway.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from gateway.api_keys import Scope
from gateway.http.access import Guard, Principal, choose_language
from gateway.http.admission_queue import QuestionSender
from gateway.http.app import MountedEndpoint
from gateway.http.context import HttpChannel
from gateway.http.errors import ForbiddenError
from gateway.http.library import CallersLibrary, refuse_public
from gateway.mcp.server import Context, DeskTools, FindCaller, McpCaller
from gateway.port import SearchableLibrary

PATH = "/mcp"


class McpEndpoint:
    """The ASGI application for the MCP route. It accepts requests only inside the `running`
    context.
    """

    path = PATH
    """The name of the route in the log and in metrics."""

    def __init__(self, channel: HttpChannel, server: Server[Any]) -> None:
        self._channel = channel
        # The body was read within the limits of all routes before.
        self._manager = StreamableHTTPSessionManager(server, stateless=True)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve requests within the context. The context may be exited in a different task from the
        one that entered it.
        """
        is_ready, has_ended = asyncio.Event(), asyncio.Event()

        async def run() -> None:
            async with self._manager.run():
                is_ready.set()
                await has_ended.wait()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run())
            await is_ready.wait()
            try:
                yield
            finally:
                has_ended.set()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        request = Request(scope, receive)
        _check_origin(request)
        caller = await self._channel.guard.caller(request)
        structlog.contextvars.bind_contextvars(tenant=caller.tenant, key=caller.key_id or None)
        refuse_public(caller)
        await self._channel.guard.admit(caller)
        await self._manager.handle_request(scope, receive, send)


async def serve_lines(tools: DeskTools, version: str) -> None:
    """Answer requests until the input ends."""
    server = tools.make_server(version)
    async with stdio_server() as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


def find_local_caller(
    guard: Guard, *, key: str, tenant: str, assistant: str | None, groups: Sequence[str]
) -> FindCaller:
    """Return a function that identifies the caller of every request; without a `key`, this is a
    person in `groups`.
    """
    person = Principal(tenant, frozenset(Scope), person_groups=tuple(groups))

    async def find(_context: Context) -> McpCaller:
        if not key:
            return McpCaller(person, assistant)
        caller = await guard.caller(_make_request(key))
        if caller.public:
            raise ForbiddenError("this request requires a secret key", code="secret_key_required")
        await guard.admit(caller)
        return McpCaller(caller, assistant)

    return find


def make_endpoint(
    channel: HttpChannel,
    library: SearchableLibrary,
    stopping: asyncio.Event,
    version: str,
    unavailable: Sequence[type[Exception]],
    sender: QuestionSender,
) -> MountedEndpoint:
    """Return the application for `/mcp`."""
    callers = CallersLibrary(channel, library)
    tools = DeskTools(channel, sender, callers, find_http_caller, stopping, unavailable=unavailable)
    endpoint = McpEndpoint(channel, tools.make_server(version))
    return MountedEndpoint(PATH, endpoint, endpoint.running)


async def find_http_caller(context: Context) -> McpCaller:
    """Return the caller that the endpoint has admitted."""
    request: Request = context.request  # type: ignore[assignment] # over HTTP there is one
    return McpCaller(
        request.state.caller,
        request.query_params.get("assistant"),
        choose_language(request),
        str(request.state.request_id),
    )


def _make_request(key: str) -> Request:
    """Return a request, as expected by the guard, from this machine with the key."""
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


def _check_origin(request: Request) -> None:
    """Raise `ForbiddenError` for a request from a website other than this server's own."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host", ""):
        raise ForbiddenError(
            "this address is for MCP clients: requests from web pages of other origins are refused",
            code="origin_not_allowed",
        )
