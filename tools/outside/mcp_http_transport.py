"""Connects to an MCP server over streamable HTTP: bounded bodies, no proxy of the environment.

Each connection goes to an address that was checked, as that of a crawl is; the private network is
open only where the configured address is in it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from knowledge.crawling.crawl_values import AddressRefusedError, FetchError
from knowledge.crawling.resolution import GuardedResolver
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
    """Sends requests to checked addresses, and reads bodies of a bounded length as they are."""

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
        # The certificate is checked for the name.
        request.url = request.url.copy_with(host=address)
        request.extensions = {**request.extensions, "sni_hostname": host}
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
        raise ToolFailed(f"its address cannot be used: {type(error).__name__}") from error


def _read_host(url: httpx2.URL) -> tuple[str, int]:
    return url.host, url.port or (443 if url.scheme == "https" else 80)
