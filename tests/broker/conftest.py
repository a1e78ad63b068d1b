import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import pytest

from broker.transport.connect import connect
from tests.conftest import start_redis
from tests.support.broker_harness import BrokerHarness, prepare_harness
from tests.support.empty_redis import EMPTY_REDIS, play_redis


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of one node, which refuses keys of several slots in one command."""
    path = tmp_path_factory.mktemp("cluster") / "r.sock"
    # A cluster needs a port, and by default the one 10000 above for its nodes.
    port = str(_free_port())
    server = start_redis(
        path, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes"
    )  # fmt: skip
    yield f"unix://{path}"
    server.terminate()
    server.wait()


def _free_port() -> int:
    """Return a free port below 50000 whose bus port is free as well."""
    for port in range(20_000 + 7 * (os.getpid() % 900), 50_000, 7):
        with closing(socket.socket()) as first, closing(socket.socket()) as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


@pytest.fixture(params=EMPTY_REDIS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """An empty Redis: played in the process, and a real one."""
    if request.param == "played":
        played = play_redis().client()
        yield played
        await played.aclose()
        return
    real = connect(request.getfixturevalue("redis_url"))
    await real.flushall()
    yield real
    await real.aclose()


@pytest.fixture
async def harness(client: Any) -> BrokerHarness:
    return await prepare_harness(client)
