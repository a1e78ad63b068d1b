"""Keeps one MCP server connected: opened for a call, checked, and opened again after a loss.

One task owns the connection (`serve`), because the tasks of a session must end where they began;
calls of any task use it. A server that fails again and again is left alone for a growing time.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import anyio
import httpx2
import structlog
from mcp import Client, MCPError
from mcp.client.session import ClientSession
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    Tool,
    ToolListChangedNotification,
)
from pydantic import JsonValue

from tools.errors import ToolFailed
from tools.outside.foreign_text import clean_line
from tools.outside.mcp_stdio_transport import ServerEnd

OpenStreams = Callable[[ServerEnd], AbstractAsyncContextManager[Any]]
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
LISTING_SECONDS = 60.0
"""After this time the tools of a server are read again before a call."""
MOST_PAGES = 20
_LONGEST_REASON = 200
_LOSSES = (
    anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, httpx2.HTTPError,
    OSError, RuntimeError,
)  # fmt: skip

log = structlog.get_logger("tools")


class McpConnection:
    """The connection to one server; `on_listed` receives every list of its tools."""

    def __init__(
        self,
        name: str,
        open_streams: OpenStreams,
        on_listed: Callable[[list[Tool]], None],
        *,
        start_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.name = name
        self._open_streams = open_streams
        self._on_listed = on_listed
        self._start_seconds = start_seconds
        self._clock = clock
        self._session: ClientSession | None = None
        self._opening: asyncio.Future[ClientSession] | None = None
        self._wanted = asyncio.Event()
        self._lost = asyncio.Event()
        self._listing = asyncio.Lock()
        self._listed_at: float | None = None
        self._end = ServerEnd()
        self._failures = 0
        self._not_before = 0.0
        self._fault = ""
        self._is_stopped = False
        self._redact = redact
        self._was_asked = False
        """Whether a call was sent: from then on the server may write its arguments anywhere."""

    async def serve(self) -> None:
        """Open the connection whenever it is wanted, until `stop`."""
        while not self._is_stopped:
            await self._wanted.wait()
            self._wanted.clear()
            if self._opening is not None and not self._is_stopped:
                await self._serve_once(self._opening)

    def stop(self) -> None:
        """Close the connection and end `serve`.

        A cancellation alone may be lost: a session that closes reports an error in its place.
        """
        self._is_stopped = True
        self._lose("it was stopped")
        self._wanted.set()

    async def call(self, tool: str, arguments: dict[str, JsonValue]) -> CallToolResult:
        """Return the result of a tool; `check` comes first.

        Raises `ConnectionError` if the server was lost after the call was sent, `MCPError` for an
        error that it answered, and `pydantic.ValidationError` for an answer of another form.
        """
        session = await self._connect()
        self._was_asked = True
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        try:
            asked = session.send_request(request, CallToolResult)
            result: CallToolResult = await self._request(asked)
        except asyncio.CancelledError:
            # A server that does not answer is asked for its tools before it gets another call.
            self._listed_at = None
            raise
        self._failures = 0
        return result

    async def check(self) -> None:
        """Connect where that is needed and read the tools again; raises `ToolFailed`."""
        session = await self._connect()
        async with self._listing:
            now = self._clock()
            if self._listed_at is not None and now - self._listed_at <= LISTING_SECONDS:
                return
            try:
                async with asyncio.timeout(self._start_seconds):
                    await self._list(session)
            except (TimeoutError, ConnectionError, MCPError, ValueError) as error:
                self._lose("it does not list its tools")
                raise ToolFailed(self._report(self._fault)) from error

    async def _connect(self) -> ClientSession:
        if self._is_stopped:
            raise ToolFailed(self._report("it was stopped"))
        if self._session is not None and not self._lost.is_set():
            if not self._end.reason:
                return self._session
            self._lose(self._end.reason)
        if self._opening is None:
            wait = self._not_before - self._clock()
            if wait > 0:
                raise ToolFailed(f"{self._report(self._fault)}; tried again in {wait:.1f} s")
            self._opening = asyncio.get_running_loop().create_future()
            self._wanted.set()
        # The attempt is shared: a caller that gives up does not end it for the others.
        return await asyncio.shield(self._opening)

    async def _serve_once(self, opening: asyncio.Future[ClientSession]) -> None:
        """Open the connection, and keep it until it is lost."""
        self._end, self._lost, self._fault = ServerEnd(), asyncio.Event(), "it was stopped"
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._start_seconds):
                    session = await self._open(stack)
                self._session, self._opening = session, None
                opening.set_result(session)
                await self._lost.wait()
        except Exception as error:  # noqa: BLE001 - becomes the reason of failed calls, and is logged
            self._fault = self._end.reason or _describe(error)
        finally:
            self._session = None
            self._back_off()
            if not opening.done():
                self._opening = None
                opening.set_exception(ToolFailed(self._report(self._fault)))
                opening.exception()
        if self._is_stopped:
            return
        log.warning(
            "mcp_server_lost",
            server=self.name,
            reason=self._fault,
            last_words=None if self._was_asked else self._redact(self._end.last_words) or None,
        )

    async def _open(self, stack: AsyncExitStack) -> ClientSession:
        client = Client(
            self._open_streams(self._end),
            cache=None,
            client_info=Implementation(name="refdesk", version="1"),
            message_handler=self._receive,
        )
        session = (await stack.enter_async_context(client)).session
        await self._list(session)
        return session

    async def _list(self, session: ClientSession) -> None:
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            page = await self._request(session.list_tools(params=params))
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        self._listed_at = self._clock()
        self._on_listed(tools)

    async def _request(self, asked: Any) -> Any:
        """Return an answer; raises `ConnectionError` if the server is lost."""
        try:
            return await asked
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise
            self._lose(self._end.reason or "it closed the connection")
            raise ConnectionError(self._report(self._fault)) from error
        except _LOSSES as error:
            self._lose(self._end.reason or _describe(error))
            raise ConnectionError(self._report(self._fault)) from error

    async def _receive(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._listed_at = None

    def _lose(self, reason: str) -> None:
        self._fault = reason
        self._lost.set()

    def _back_off(self) -> None:
        """The first loss is answered at once, each further one after twice the time."""
        if self._failures:
            wait = FIRST_WAIT_SECONDS * 2 ** min(self._failures - 1, 10)
            self._not_before = self._clock() + min(wait, LONGEST_WAIT_SECONDS)
        self._failures += 1

    def _report(self, reason: str) -> str:
        return f"the server {self.name!r} cannot be used: {reason}"


def _describe(error: BaseException) -> str:
    """Return the reason of a failure; groups of errors have one that says most.

    Of errors of the server or of a library only the type is named, and the code: their texts may
    quote a request.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not start in time"
    if isinstance(error, ToolFailed):
        return clean_line(str(error), _LONGEST_REASON)
    code = f" {error.code}" if isinstance(error, MCPError) else ""
    return f"{type(error).__name__}{code}"
