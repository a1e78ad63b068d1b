"""A review goes on when its workers and its server are killed: one result, nothing paid twice."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from broker.transport.connect import connect
from tests.support.app_harness import command, environment
from tests.support.http_server import RecordedRequests, events, read_events
from tests.support.review_server import FAULTY

pytestmark = [pytest.mark.slow, pytest.mark.redis]

REVIEWS = "/v1/reviews"
UNITS = 300
BINARY = {"Content-Type": "application/octet-stream", "Idempotency-Key": "once"}


def write_law() -> bytes:
    """Return a law of many units, each with one requirement."""
    return "\n\n".join(
        ["# Long Act"]
        + [
            f"## Article {number}\n\nThe processor shall keep register number {number} for at "
            f"least {number + 1} months."
            for number in range(1, UNITS + 1)
        ]
    ).encode()


@contextmanager
def run(data: Path, redis_url: str, *words: str, until: bytes) -> Iterator[str]:
    """A command while inside, from the line with `until` on; it is killed at the end."""
    settings = {"redis_url": redis_url, "pythonunbuffered": "1", "lease_seconds": "4"}
    with subprocess.Popen(
        command(*words), cwd=data, env=environment(data, **settings), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        try:
            yield next(line for line in process.stdout if until in line).decode()
        finally:
            process.kill()


def serve(data: Path, redis_url: str) -> Any:
    words = ("serve", "--gateway-only", "--port", "0")
    return run(data, redis_url, *words, until=b"http://")


def read_address(line: str) -> str:
    return next(word.rstrip(".,;/") for word in line.split() if word.startswith("http://"))


@pytest.mark.timeout(300)
async def test_a_review_of_a_long_law_has_one_result_whoever_is_killed_on_the_way(
    tmp_path: Path, redis_url: str
) -> None:
    client: Any = connect(redis_url)
    await client.flushall()
    await client.aclose()
    up = ("up",)
    seen: list[RecordedRequests] = []
    with run(tmp_path, redis_url, *up, until=b"working as"), serve(tmp_path, redis_url) as line:
        async with httpx.AsyncClient(base_url=read_address(line), timeout=None) as http:
            base = "/v1/conversations/c-1/documents"
            await http.post(base, params={"name": "law.md"}, content=write_law())
            params = {"name": "contract.md", "against": "law.md", "conversation_id": "c-1"}
            started = await http.post(REVIEWS, params=params, content=FAULTY, headers=BINARY)
            assert started.status_code == 202, started.text
            path = f"{REVIEWS}/{started.json()['id']}"
            async with http.stream("GET", f"{path}/events") as answer:
                async for event in read_events(answer):
                    seen.append(event)
                    if len([requests for requests in seen if requests.name == "branch"]) == 4:
                        break
    assert "done" not in {requests.name for requests in seen}

    with run(tmp_path, redis_url, *up, until=b"working as"), serve(tmp_path, redis_url) as line:
        async with httpx.AsyncClient(base_url=read_address(line), timeout=None) as http:
            rest = await events(
                http, "GET", f"{path}/events", headers={"Last-Event-ID": seen[-1].id}
            )
            again = await http.post(REVIEWS, params=params, content=FAULTY, headers=BINARY)
            report = (await http.get(f"{path}/report")).text

    ids = [requests.id for requests in (*seen, *rest)]
    assert len(set(ids)) == len(ids)
    assert rest[-1].name == "done"
    assert rest[-1].data["outcome"] == "answered"
    assert again.json()["id"] == started.json()["id"]
    assert again.json()["answer"]["text"] == rest[-1].data["text"]
    matrix = report.partition("## 3.")[2].partition("## 4.")[0]
    rows = [line.split(" | ")[0] for line in matrix.splitlines() if line[:3].strip("| ").isdigit()]
    assert len(set(rows)) == UNITS, json.dumps(rows[:5])
