import socket

import pytest

from knowledge.errors import IndexUnavailable
from knowledge.index.server import open_server
from tests.knowledge.searching.conftest import identity


async def test_a_server_that_is_away_is_one_clear_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"

    with pytest.raises(IndexUnavailable, match=f"Qdrant server at {url} does not answer") as raised:
        await open_server(url, identity())
    assert "\n" not in str(raised.value)
