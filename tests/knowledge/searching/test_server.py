import asyncio
import socket

import pytest
from qdrant_client import AsyncQdrantClient

from knowledge.errors import IndexUnavailable
from knowledge.index.server.server_engine import open_client, open_server
from tests.knowledge.searching.conftest import document, identity, put


async def test_a_server_that_is_away_is_one_clear_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    with pytest.raises(IndexUnavailable, match=f"Qdrant server at {url} does not answer") as raised:
        await open_server(url, identity())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "answer",
    [
        b"200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"500 X\r\nContent-Type: application/json\r\nContent-Length: 64\r\n\r\n"
        b'{"status":{"error":"Expected at least one response"},"time":0.1}',
        b"408 X\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"502 X\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>",
    ],
    ids=["text", "internal error", "timeout", "page of a proxy"],
)
async def test_a_server_that_speaks_something_else_is_one_clear_line(answer: bytes) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 " + answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(IndexUnavailable, match="does not answer") as raised:
            await open_server(url, identity())
    assert "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
async def test_a_server_that_goes_away_in_the_middle_is_one_clear_line() -> None:
    client = AsyncQdrantClient(":memory:")
    index = await open_client(client, identity(), location="memory")
    await put(index, document("page", "text"))
    await client.close()

    with pytest.raises(IndexUnavailable, match="memory does not answer"):
        await index.versions()
    with pytest.raises(IndexUnavailable, match="memory does not answer"):
        await put(index, document("other", "text"))
