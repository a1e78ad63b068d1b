"""A Redis with a separate file, and a desk that rewrites it soon."""

import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.maintenance.erasure import Rewriting
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from deploy.logging_setup import configure_logging
from tests.conftest import start_redis
from tests.support.worker_harness import WorkerHarness

SOON = Rewriting(after_seconds=0.2, every_seconds=0.0)


class RewritingHarness(WorkerHarness):
    """A desk on a server whose file is rewritten a moment after an erasure."""

    def make_broker(self, **options: Any) -> RedisBroker:
        return super().make_broker(**{"rewriting": SOON, **options})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the server keeps its files."""
    made = tmp_path / "redis"
    made.mkdir()
    return made


@contextmanager
def run_restarted(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server that writes everything down, and compresses nothing."""
    process = start_redis(
        folder / "r.sock", "--appendonly", "yes", "--rdbcompression", "no",
        "--auto-aof-rewrite-percentage", "0", "--slowlog-log-slower-than", "-1",
    )  # fmt: skip
    yield process
    process.terminate()
    process.wait()


@pytest.fixture
def server(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The server of a folder."""
    with run_restarted(folder) as process:
        yield process


@pytest.fixture
async def harness(server: object, folder: Path) -> AsyncIterator[RewritingHarness]:
    """A desk on this server, whose log has every level."""
    configure_logging("debug")
    url = f"unix://{folder / 'r.sock'}"
    made = RewritingHarness(lambda: connect(url), played=False, lease_seconds=1.0)
    yield made
    await made.close()
