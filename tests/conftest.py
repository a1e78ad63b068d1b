"""What every test may use: a private redis-server of the suite's own."""

import gc
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import structlog

from broker.embedded_redis import answers, find_server
from llm.vendors.wire import forbid_real_requests
from tests import produced

pytest_plugins = ["tests.time_limits"]

START_SECONDS = 30
NO_AUTHORITY = Path(__file__).parent / "support" / "no_authority.pem"

# Each client reads the authorities that it trusts, a hundred times longer than this one, which has
# certified nobody. A test that meets a real server, such as an index of packages, removes it.
os.environ["SSL_CERT_FILE"] = str(NO_AUTHORITY)

if produced.VARIABLE in os.environ:
    os.environ["PYTHONPATH"] = str(produced.PATH)
    produced.record(Path(os.environ[produced.VARIABLE]))


def pytest_collection_finish() -> None:
    """Keep what was collected out of the way of the garbage collector."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of slow tests: none of them runs alone at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)


def start_redis(path: Path, *options: str) -> "subprocess.Popen[bytes]":
    """Start a redis-server on a socket; missing: skip at home, fail in CI."""
    program = find_server()
    if program is None:
        missing = "no redis-server of 6.2 or newer was found"
        if os.environ.get("CI"):
            pytest.fail(f"{missing}, and CI must not skip what needs it")
        pytest.skip(missing)
    arguments = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(path.parent)]
    server = subprocess.Popen([program, *arguments, *options], stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_SECONDS
        while not answers(path):
            assert time.monotonic() < until, "redis-server did not start"
            assert server.poll() is None, "redis-server ended"
    except BaseException:
        server.kill()
        server.wait()
        raise
    return server


forbid_real_requests()
# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("refdesk", deadline=None)
hypothesis.settings.load_profile("refdesk")
# What fails in a helper is shown with its values, as in a test.
pytest.register_assert_rewrite("tests.recordings", "tests.support")


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    """Log after a test as before it, whatever a command or a test has set up."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A private redis-server."""
    path = tmp_path_factory.mktemp("redis") / "r.sock"
    server = start_redis(path)
    yield f"unix://{path}"
    server.terminate()
    server.wait()
