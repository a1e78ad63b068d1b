"""What happens when the process may open no more files."""

import asyncio
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.connections.server import raise_descriptor_limit

ROOT = Path(__file__).parent.parent.parent.parent
GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
PATIENCE_SECONDS = 30


@pytest.mark.slow
async def test_a_process_without_descriptors_logs_it_once_and_recovers(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.gateway.connections.exhausted_server",
            cwd=ROOT, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        taken = await ask_and_wait(port, GET.replace(b"GET /", b"GET /starve"))
        answers = await asyncio.gather(*(ask_and_wait(port, GET) for _ in range(20)))
    finally:
        process.kill()
        await process.wait()

    logged = log.read_bytes()
    assert b" 200 " in taken
    assert all(b" 200 " in answer for answer in answers)
    assert logged.count(b"accept_failed") == 1
    assert b"Traceback" not in logged
    assert len(logged) < 2_000


async def ask_and_wait(port: int, request: bytes) -> bytes:
    """Return the answer, however long it is waited for."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        try:
            return await reader.read()
        finally:
            writer.close()


def test_the_limit_of_descriptors_is_raised_as_far_as_it_may_be() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
    try:
        assert raise_descriptor_limit() == min(before[1], 65_536)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(before[1], 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
