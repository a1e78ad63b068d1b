import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.speed.redis_server import counting_proxy, private_server
from broker.transport.connect import connect


@contextmanager
def _echo(path: Path) -> Iterator[None]:
    """A server that sends every line back."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb", buffering=0) as lines:
            for line in lines:
                lines.write(line)

    serving = threading.Thread(target=serve)
    serving.start()
    with listening:
        yield
        serving.join()


def test_a_request_and_its_answer_are_one_round_trip_whatever_they_hold(tmp_path: Path) -> None:
    target, listen = tmp_path / "echo", tmp_path / "proxy"

    with (
        _echo(target),
        counting_proxy(str(listen), str(target)) as count,
        socket.socket(socket.AF_UNIX) as client,
    ):
        client.connect(str(listen))
        with client.makefile("rwb", buffering=0) as lines:
            for sent in (b"one\n", b"two\n", b"x" * 200_000 + b"\n"):
                lines.write(sent)
                assert lines.readline() == sent
        client.shutdown(socket.SHUT_RDWR)

        assert count.turns == 3


@pytest.mark.redis
@pytest.mark.slow
def test_a_pipeline_is_one_round_trip(tmp_path: Path) -> None:
    async def turns() -> tuple[int, int]:
        client = connect(f"unix://{listen}")
        await client.ping()
        connected = count.turns
        pipeline = client.pipeline(transaction=False)
        for number in range(100):
            pipeline.set(f"key-{number}", number)
        await pipeline.execute()
        piped = count.turns
        await client.get("key-1")
        await client.get("key-2")
        await client.aclose()
        return piped - connected, count.turns - piped

    listen = tmp_path / "proxy"
    with (
        private_server() as server,
        counting_proxy(str(listen), str(server.socket)) as count,
    ):
        assert asyncio.run(turns()) == (1, 2)
