from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from broker.transport.connect import connect
from tests.conftest import start_redis
from tests.support.broker_harness import BrokerHarness, prepare_harness
from tests.support.empty_redis import EMPTY_REDIS, play_redis
from tests.support.ports import free_port


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of one node, which refuses keys of several slots in one command."""
    path = tmp_path_factory.mktemp("cluster") / "r.sock"
    # A cluster needs a port, and by default the one 10000 above for its nodes.
    port = str(free_port(10_000))
    server = start_redis(
        path, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes"
    )  # fmt: skip
    yield f"unix://{path}"
    server.terminate()
    server.wait()


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
