"""Connects to an MCP server over streamable HTTP: bounded bodies, no proxy of the environment."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from tools.errors import ToolFailed

MOST_BODY_BYTES = 4_000_000
CONNECT_SECONDS = 10.0


class BoundedBody(httpx2.AsyncByteStream):
    """A body that ends with an error when it becomes too long."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BODY_BYTES
        async for piece in self._body:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError(f"a body may have {MOST_BODY_BYTES} bytes, this has more")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends requests, and reads bodies of a bounded length that are not compressed."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.ReadError("expected a body without compression")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = BoundedBody(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def open_address(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[Any]:
    """Yield the streams of a server at an address; `seconds` limit one request."""
    client = httpx2.AsyncClient(
        transport=BoundedTransport(),
        headers=dict(headers),
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
        trust_env=False,
        follow_redirects=False,
    )
    try:
        async with client, streamable_http_client(url, http_client=client) as streams:
            yield streams
    except httpx2.HTTPError as error:
        raise ToolFailed(f"its address cannot be used: {type(error).__name__}") from error
