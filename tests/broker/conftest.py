import os
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeServer

from broker.connecting import connect
from broker.embedded import Endpoint, answers
from broker.redis_broker import RedisBroker
from tests.broker.rig import ROLES, SHORT_LEASE, Rig


def _started(path: Path, *options: str) -> "subprocess.Popen[bytes]":
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is not on PATH, and CI must not skip what needs it")
        pytest.skip("redis-server is not on PATH")
    server = subprocess.Popen(
        [
            program,
            "--port",
            "0",
            "--unixsocket",
            path,
            "--save",
            "",
            "--dir",
            path.parent,
            *options,
        ],
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + 10
    while not answers(path):
        assert time.monotonic() < until, "redis-server did not start"
        assert server.poll() is None, "redis-server ended"
    return server


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A private redis-server."""
    path = tmp_path_factory.mktemp("redis") / "r.sock"
    server = _started(path)
    yield f"unix://{path}"
    server.terminate()
    server.wait(10)


@pytest.fixture(scope="session")
def cluster_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of one node, which refuses keys of several slots in one command."""
    path = tmp_path_factory.mktemp("cluster") / "r.sock"
    # A cluster needs a port, and by default the one 10000 above for its nodes.
    port = str(_free_port())
    server = _started(
        path, "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes"
    )  # fmt: skip
    yield f"unix://{path}"
    server.terminate()
    server.wait(10)


def _free_port() -> int:
    """Return a free port below 50000 whose bus port is free as well."""
    for port in range(20_000, 50_000, 7):
        with closing(socket.socket()) as first, closing(socket.socket()) as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


@pytest.fixture(params=["played", pytest.param("real", marks=pytest.mark.redis)])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    """An empty Redis: played in the process, and a real one."""
    if request.param == "played":
        played = Endpoint(url="", durable=False, played=FakeServer()).client()
        yield played
        await played.aclose()
        return
    real = connect(request.getfixturevalue("redis_url"))
    await real.flushall()
    yield real
    await real.aclose()


@pytest.fixture
async def rig(client: Any) -> Rig:
    """A prepared broker with a short lease."""

    def make(**options: Any) -> RedisBroker:
        return RedisBroker(client, **{"lease_seconds": SHORT_LEASE, **options})

    broker = make()
    await broker.prepare(ROLES)
    return Rig(broker, client, make)
