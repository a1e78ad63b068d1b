"""A private Redis for one measurement, and a proxy in front of it that counts round trips.

A round trip is one turn of a connection: data is sent to the server after its last reply. A
pipeline is one turn, and so is a blocking read, however long it waits.
"""

import asyncio
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis

from broker.embedded_redis import answers, find_server


@dataclass(slots=True)
class Count:
    """Round trips so far, over all connections."""

    turns: int = 0


class _Side(asyncio.Protocol):
    """One end of a connection; forwards the data that it receives."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self.waiting = bytearray()
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.Transport):
            raise TypeError(f"expected a stream, found {transport!r}")
        self.transport = transport
        transport.write(bytes(self.waiting))

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            self.other.send(data)

    def send(self, data: bytes) -> None:
        if self.transport is None:
            self.waiting += data
        else:
            self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class _Client(_Side):
    """The client's end: counts the turns."""

    def __init__(self, target: str, count: Count, tasks: asyncio.TaskGroup) -> None:
        super().__init__()
        self._target = target
        self._count = count
        self._tasks = tasks
        self._asked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.other = _Side()
        self.other.other = self
        self._tasks.create_task(self._connect(self.other))

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self._asked = True
            self._count.turns += 1
        super().data_received(data)

    def send(self, data: bytes) -> None:
        self._asked = False
        super().send(data)

    async def _connect(self, server: _Side) -> None:
        await asyncio.get_running_loop().create_unix_connection(lambda: server, self._target)


@contextmanager
def counting_proxy(listen: str, target: str) -> Iterator[Count]:
    """Forward data between two Unix sockets in a separate thread, and count round trips."""
    count = Count()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    ready = threading.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(_serve(listen, target, count, ready, stop))
    )
    thread.start()
    ready.wait()
    try:
        yield count
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def _serve(
    listen: str, target: str, count: Count, ready: threading.Event, stop: asyncio.Event
) -> None:
    loop = asyncio.get_running_loop()
    clients: list[_Client] = []

    async with asyncio.TaskGroup() as tasks:

        def client() -> _Client:
            clients.append(_Client(target, count, tasks))
            return clients[-1]

        server = await loop.create_unix_server(client, listen, backlog=1024)
        ready.set()
        await stop.wait()
        server.close()
    # Now that nobody connects any more; what is not at its end would be left open with the loop.
    for side in (side for client in clients for side in (client, client.other)):
        if side is not None and side.transport is not None:
            side.transport.abort()
            await side.ended.wait()


@dataclass(frozen=True, slots=True)
class Server:
    """A Redis on a Unix socket, whose folder is deleted when it stops."""

    folder: Path
    socket: Path

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"unix://{self.socket}"

    def processor_seconds(self) -> float:
        """Return the processor time that Redis has used, in seconds."""
        used = self._info("cpu")
        return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])

    def version(self) -> str:
        """Return the server's version."""
        return str(self._info("server")["redis_version"])

    def _info(self, section: str) -> Any:
        with Redis(unix_socket_path=str(self.socket)) as client:
            return client.info(section)


@contextmanager
def private_redis() -> Iterator[str]:
    """Run an empty server within the context; yield its URL."""
    with private_server() as server:
        yield server.url


@contextmanager
def private_server() -> Iterator[Server]:
    """Run an empty server with an append-only file that is synced every second."""
    program = find_server()
    if program is None:
        raise SystemExit("expected a redis-server of 6.2 or newer, found none")
    with tempfile.TemporaryDirectory(prefix="refdesk-bench-") as folder:
        redis = Server(Path(folder), Path(folder) / "redis.sock")
        arguments = [
            "--port", "0", "--unixsocket", str(redis.socket), "--dir", folder, "--save", "",
            "--appendonly", "yes", "--appendfsync", "everysec",
        ]  # fmt: skip
        # A child that rewrites the file outlives its server, and would go on writing to the folder.
        server = subprocess.Popen(
            [program, *arguments], stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            while not answers(redis.socket):
                time.sleep(0.01)
            yield redis
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(10)
