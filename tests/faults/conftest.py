import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.cluster import Cluster
from tests.faults.proxy import Proxy

SEED = 2026


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path is short enough for a socket in it."""
    return tmp_path_factory.mktemp("f")


@pytest.fixture
def seed() -> int:
    """Seeds what is random; a failure shows it, and `REFDESK_FAULT_SEED` takes another."""
    chosen = int(os.environ.get("REFDESK_FAULT_SEED", SEED))
    os.write(1, f"REFDESK_FAULT_SEED={chosen}\n".encode())
    return chosen


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(Path(redis_url.removeprefix("unix://"))) as made:
        yield made
