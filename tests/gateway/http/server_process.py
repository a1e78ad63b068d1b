"""A server in a separate process, with another tenant's conversation behind it."""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any

import structlog
from fakeredis import FakeAsyncRedis, FakeServer

from broker.transport.connect import connect
from gateway.api_keys import Scope
from tests.support.http_server import FakeDocuments, open_http_server
from tests.support.waiting import within
from tests.support.worker_harness import WorkerHarness

ROOT = Path(__file__).parent.parent.parent.parent
WORD = "xylophone"
"""What the other tenant's conversation is about: no answer may ever name it."""


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """Where the server is, a key of the tenant `acme`, and what the process logs."""

    url: str
    token: str
    log: Path
    process: "Popen[bytes]"


@contextmanager
def serve_http(folder: Path, redis_url: str = "") -> Iterator[ServerProcess]:
    """Serve while inside; without a URL Redis is played in that process."""
    log = folder / "server.log"
    with log.open("wb") as errors:
        process = Popen(
            [sys.executable, "-m", __name__, redis_url],
            cwd=ROOT,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=errors,
        )
        try:
            assert process.stdout is not None
            started = json.loads(process.stdout.readline())
            yield ServerProcess(started["url"], started["token"], log, process)
        finally:
            process.terminate()
            process.communicate()


async def serve(redis_url: str) -> None:
    """Serve until killed."""
    server = FakeServer()

    def client() -> Any:
        return connect(redis_url) if redis_url else FakeAsyncRedis(server=server, protocol=2)

    harness = WorkerHarness(client, played=not redis_url)
    async with harness.open(), open_http_server(harness, documents=FakeDocuments()) as http_server:
        other = await http_server.secret("other")
        sent = {"text": f"What is a {WORD}?", "message_id": "m1"}
        async with within():
            answer = await other.post("/v1/conversations/c1/messages", json=sent)
        assert answer.status_code == 200
        started = {"url": http_server.url, "token": await http_server.key(scopes=frozenset(Scope))}
        sys.stdout.write(f"{json.dumps(started)}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(serve(sys.argv[1]))
