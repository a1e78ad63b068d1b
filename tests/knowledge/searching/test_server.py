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


async def test_a_server_that_speaks_something_else_is_one_clear_line() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(IndexUnavailable, match="does not answer"):
            await open_server(url, identity())


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
