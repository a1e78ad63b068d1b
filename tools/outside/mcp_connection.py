"""The connection to an MCP server, which is opened on demand and reopened if it is lost.

One task owns the connection (`serve`), because the tasks of a session must end in the task that
started them. Calls can be made from any task. Reconnection uses exponential backoff.

A server is either a process, with one message per line, or an HTTP URL. The transport in the `mcp`
package passes parts of our environment to a process, and reads lines of any length. This transport
passes only the configured variables, and stops a server that sends too much data. A process and its
children form a process group, which is killed when the connection is closed. Over HTTP, body sizes
are limited, and each address is checked in the same way as in a crawl: private networks are allowed
only if the configured address is in one.
"""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client, MCPError
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ErrorData,
    Implementation,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolListChangedNotification,
    jsonrpc_message_adapter,
)
from pydantic import JsonValue

from outbound.errors import AddressRefusedError, FetchError
from outbound.resolution import GuardedResolver
from tools.errors import ToolFailed
from tools.outside.foreign_schemas import clean_line

MOST_MESSAGE_BYTES = 4_000_000
MOST_UNASKED = 1_000
"""Maximum number of messages that a server may send between two responses."""
GRACE_SECONDS = 1.0
_LAST_WORDS = 2_000
_PIECE = 4_096
_DIES_WITH_PARENT = (
    "import ctypes,os,sys;ctypes.CDLL(None).prctl(1,9);"
    "os.execve(sys.argv[1],sys.argv[1:],os.environ)"
)
"""Makes Linux kill the server process when this process dies."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@dataclass(slots=True)
class ServerEnd:
    """How a server process ended; `reason` is empty while it is running."""

    reason: str = ""
    last_words: str = field(default="", repr=False)
    """The end of its standard error output, for the log."""


MOST_BODY_BYTES = 4_000_000
CONNECT_SECONDS = 10.0
SESSION_HEADER = "mcp-session-id"
SESSION_ENDED = -32_404
"""The error code in the body that replaces a response rejecting a session."""
OpenStreams = Callable[[ServerEnd], AbstractAsyncContextManager[Any]]
Ask = Callable[[ClientSession], Awaitable[Any]]
FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0
LISTING_SECONDS = 60.0
"""After this time, the tools of a server are listed again before the next call."""
MOST_PAGES = 20
_LONGEST_REASON = 200
_SESSION_REFUSALS = frozenset({400, 401, 404})
_LOSSES = (
    anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, httpx2.HTTPError,
    OSError, RuntimeError,
)  # fmt: skip

log = structlog.get_logger("tools")


class BoundedBody(httpx2.AsyncByteStream):
    """A response body that raises an error if it is too long."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BODY_BYTES
        async for piece in self._body:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError(f"the body is larger than {MOST_BODY_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class SessionEnded(ToolFailed):
    """The server rejected a request, probably because the session has ended."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends requests only to checked addresses, and reads uncompressed bodies of limited length.

    A 404 response to a request in a session means that the session has ended (MCP specification,
    "Session Management"). Many servers respond with 400 or 401 instead, without the request id. The
    client in the `mcp` package does not expose the status, so the body is replaced with an error
    with the code `SESSION_ENDED`.
    """

    def __init__(self, resolver: GuardedResolver) -> None:
        self._resolver = resolver
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        host, port = _read_host(request.url)
        try:
            address = await self._resolver.choose(host, port)
        except (AddressRefusedError, FetchError) as error:
            raise httpx2.ConnectError(str(error)) from error
        # The certificate is verified for the host name.
        request.url = request.url.copy_with(host=address)
        request.extensions = {**request.extensions, "sni_hostname": host}
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.ReadError("expected a body without compression")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = BoundedBody(response.stream)
        if response.status_code in _SESSION_REFUSALS and SESSION_HEADER in request.headers:
            return await _read_refusal(request, response)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class McpConnection:
    """The connection to a server; `on_listed` is called with each list of the server's tools."""

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
        self._has_ended_session = False
        self._open_requests = 0
        self._is_idle = asyncio.Event()
        self._redact = redact
        self._was_asked = False
        """Whether a call was sent. Since then, the output of the server may contain arguments."""

    async def serve(self) -> None:
        """Open the connection on demand, until `stop` is called."""
        while not self._is_stopped:
            await self._wanted.wait()
            self._wanted.clear()
            if self._opening is not None and not self._is_stopped:
                await self._serve_once(self._opening)

    def stop(self) -> None:
        """Close the connection and end `serve`.

        Cancelling `serve` is not enough, because a closing session may replace it with an error.
        """
        self._is_stopped = True
        self._lose("it was stopped")
        self._wanted.set()

    async def call(self, tool: str, arguments: dict[str, JsonValue]) -> CallToolResult:
        """Return the result of a tool; call `check` first.

        Raises `ConnectionError` if the connection was lost after the call was sent, `MCPError` for
        an error response, and `pydantic.ValidationError` for an invalid response.
        """
        self._was_asked = True
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
        try:
            result: CallToolResult = await self._request(
                lambda session: session.send_request(request, CallToolResult)
            )
        except asyncio.CancelledError:
            # The server did not respond: list its tools again before the next call.
            self._listed_at = None
            raise
        self._failures = 0
        return result

    async def check(self) -> None:
        """Connect if needed, and list the tools again if the list is outdated; raises
        `ToolFailed`.
        """
        await self._connect()
        async with self._listing:
            now = self._clock()
            if self._listed_at is not None and now - self._listed_at <= LISTING_SECONDS:
                return
            try:
                async with asyncio.timeout(self._start_seconds):
                    await self._list()
            except (TimeoutError, ConnectionError, MCPError, ValueError) as error:
                self._lose("the server does not list its tools")
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
        # The attempt is shared, so a cancelled caller must not cancel it for the others.
        return await asyncio.shield(self._opening)

    async def _serve_once(self, opening: asyncio.Future[ClientSession]) -> None:
        """Open the connection, and keep it open until it is lost."""
        self._end, self._lost, self._fault = ServerEnd(), asyncio.Event(), "it was stopped"
        self._has_ended_session = False
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._start_seconds):
                    session = await self._open(stack)
                self._session, self._opening = session, None
                opening.set_result(session)
                await self._lost.wait()
                if self._has_ended_session:
                    await self._wait_for_requests()
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

    async def _wait_for_requests(self) -> None:
        """Give the other requests of an ended session a moment to be rejected as well.

        If the connection were closed first, it would be unknown whether they were processed.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._is_idle.wait()

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

    async def _list(self, session: ClientSession | None = None) -> None:
        """List the tools in `session`, which is being opened, or in the current session."""
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            ask = partial(_list_page, params=params)
            page = await (self._request(ask) if session is None else self._send(session, ask))
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                break
        self._listed_at = self._clock()
        self._on_listed(tools)

    async def _request(self, ask: Ask) -> Any:
        """Return the response to a request; raises `ConnectionError` if the connection is lost.

        If the server has ended the session, the request was not processed, and is sent again in a
        new session. If only this request was rejected, the session continues.
        """
        session = await self._connect()
        try:
            return await self._send(session, ask)
        except SessionEnded:
            # Another call may have opened a new session by now.
            if session is self._session:
                if not await self._is_ended(session):
                    raise
                self._has_ended_session = True
                self._lose("the server ended the session")
            return await self._send(await self._connect(), ask)

    async def _is_ended(self, session: ClientSession) -> bool:
        try:
            await self._send(session, ClientSession.send_ping)
        except (SessionEnded, ConnectionError):
            return True
        except MCPError:
            return False
        return False

    async def _send(self, session: ClientSession, ask: Ask) -> Any:
        self._open_requests += 1
        self._is_idle.clear()
        try:
            return await ask(session)
        except MCPError as error:
            if error.code == SESSION_ENDED:
                raise SessionEnded(self._report(error.message)) from error
            if error.code != CONNECTION_CLOSED:
                raise
            self._lose(self._end.reason or "the server closed the connection")
            raise ConnectionError(self._report(self._fault)) from error
        except _LOSSES as error:
            self._lose(self._end.reason or _describe(error))
            raise ConnectionError(self._report(self._fault)) from error
        finally:
            self._open_requests -= 1
            if not self._open_requests:
                self._is_idle.set()

    async def _receive(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._listed_at = None

    def _lose(self, reason: str) -> None:
        self._fault = reason
        self._lost.set()

    def _back_off(self) -> None:
        """Reconnect immediately after the first loss, then with exponential backoff."""
        if self._failures:
            wait = FIRST_WAIT_SECONDS * 2 ** min(self._failures - 1, 10)
            self._not_before = self._clock() + min(wait, LONGEST_WAIT_SECONDS)
        self._failures += 1

    def _report(self, reason: str) -> str:
        return f"the server {self.name!r} cannot be used: {reason}"


@asynccontextmanager
async def open_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path | None,
    end: ServerEnd,
) -> AsyncIterator[Streams]:
    """Run a server process inside the context, and yield its streams; raises `ToolFailed`."""
    process = await _start(command, environment, directory)
    inward, received = anyio.create_memory_object_stream[Incoming](0)
    sent, outward = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_read(process, inward, end)),
                group.create_task(_write(process, outward)),
                group.create_task(_listen(process, end)),
            ]
            try:
                yield received, sent
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        for stream in (inward, received, sent, outward):
            stream.close()
        await _stop(process)


@asynccontextmanager
async def open_address(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[Any]:
    """Yield the streams of a server at a URL; each request may take up to `seconds`."""
    resolver = GuardedResolver()
    try:
        await resolver.start_at(*_read_host(httpx2.URL(url)))
    except FetchError as error:
        raise ToolFailed(str(error)) from error
    client = httpx2.AsyncClient(
        transport=BoundedTransport(resolver),
        headers=dict(headers),
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
        trust_env=False,
        follow_redirects=False,
    )
    try:
        async with client, streamable_http_client(url, http_client=client) as streams:
            yield streams
    except httpx2.HTTPError as error:
        raise ToolFailed(f"the address is invalid: {type(error).__name__}") from error


async def _start(
    command: Sequence[str], environment: Mapping[str, str], directory: Path | None
) -> asyncio.subprocess.Process:
    program = shutil.which(command[0], path=environment.get("PATH", os.environ.get("PATH")))
    if program is None:
        raise ToolFailed(f"the program {command[0]!r} does not exist")
    arguments = [program, *command[1:]]
    if sys.platform.startswith("linux"):
        arguments = [sys.executable, "-I", "-S", "-c", _DIES_WITH_PARENT, *arguments]
    try:
        return await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
            limit=MOST_MESSAGE_BYTES,
        )
    except (OSError, ValueError) as error:
        raise ToolFailed(f"the program {command[0]!r} cannot be started: {error}") from error


async def _read(
    process: asyncio.subprocess.Process, inward: MemoryObjectSendStream[Incoming], end: ServerEnd
) -> None:
    """Forward the messages of the server until it ends or exceeds a limit."""
    output, unasked = _pipe(process.stdout), 0
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with inward:
            while not end.reason:
                try:
                    line = await output.readline()
                except ValueError:
                    end.reason = (
                        f"the server sent a message of more than {MOST_MESSAGE_BYTES} bytes"
                    )
                    break
                if not line:
                    end.reason = "it ended"
                    break
                message = _parse(line)
                is_answer = message is not None and not isinstance(
                    message.message, JSONRPCNotification | JSONRPCRequest
                )
                unasked = 0 if is_answer else unasked + 1
                if unasked > MOST_UNASKED:
                    end.reason = f"the server sent more than {MOST_UNASKED} unsolicited messages"
                elif message is not None:
                    await inward.send(message)


def _parse(line: bytes) -> SessionMessage | None:
    """Return the message in a line, or None for other output, which some servers print."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write(
    process: asyncio.subprocess.Process, outward: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    if process.stdin is None:
        raise ToolFailed("the server has no standard input")
    with suppress(ConnectionError, anyio.ClosedResourceError):
        async for item in outward:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _listen(process: asyncio.subprocess.Process, end: ServerEnd) -> None:
    """Read the standard error, so that the server does not block, and store the end of it."""
    errors, kept = _pipe(process.stderr), b""
    while piece := await errors.read(_PIECE):
        kept = (kept + piece)[-_LAST_WORDS:]
        end.last_words = clean_line(kept.decode("utf-8", "replace"), _LAST_WORDS)


def _pipe(stream: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if stream is None:
        raise ToolFailed("the server has no standard output")
    return stream


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Wait briefly for the server to exit, then kill it and its children."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()


async def _list_page(
    session: ClientSession, *, params: PaginatedRequestParams | None
) -> ListToolsResult:
    return await session.list_tools(params=params)


async def _read_refusal(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    """Return the rejection of a request, or replace it with a `SESSION_ENDED` error."""
    status, body = response.status_code, await response.aread()
    await response.aclose()
    if status == 404 or _read_id(body) != _read_id(request.content):
        message = f"the server refused the request with status {status}"
        error = ErrorData(code=SESSION_ENDED, message=message)
        reply = JSONRPCError(jsonrpc="2.0", id=None, error=error)
        body = reply.model_dump_json(by_alias=True).encode()
    return httpx2.Response(status, headers={"content-type": "application/json"}, content=body)


def _read_id(body: bytes) -> str | int | None:
    """Return the request id of a request or response, or None."""
    try:
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValueError:
        return None
    return None if isinstance(message, JSONRPCNotification) else message.id


def _read_host(url: httpx2.URL) -> tuple[str, int]:
    return url.host, url.port or (443 if url.scheme == "https" else 80)


def _describe(error: BaseException) -> str:
    """Return the reason for a failure; for an exception group, the reason for its first exception.

    Errors from the server or a library are described only by type and code, because their messages
    may contain parts of a request.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "the server did not start in time"
    if isinstance(error, ToolFailed):
        return clean_line(str(error), _LONGEST_REASON)
    code = f" {error.code}" if isinstance(error, MCPError) else ""
    return f"{type(error).__name__}{code}"
