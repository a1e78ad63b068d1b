"""A private Redis for one measurement, as the embedded broker starts it."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis import Redis

from broker.embedded_redis import answers, find_server


@dataclass(frozen=True, slots=True)
class Server:
    """A running Redis on a Unix socket, with a folder that goes when it goes."""

    folder: Path
    socket: Path

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"unix://{self.socket}"

    def processor_seconds(self) -> float:
        """Return the processor time that Redis has used."""
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
    """Have an empty server while inside; yield its URL."""
    with private_server() as server:
        yield server.url


@contextmanager
def private_server() -> Iterator[Server]:
    """Have an empty server with an append-only file, synced every second."""
    program = find_server()
    if program is None:
        raise SystemExit("expected a redis-server of 6.2 or newer, found none")
    with tempfile.TemporaryDirectory(prefix="refdesk-bench-") as folder:
        found = Server(Path(folder), Path(folder) / "redis.sock")
        arguments = [
            "--port", "0", "--unixsocket", str(found.socket), "--dir", folder, "--save", "",
            "--appendonly", "yes", "--appendfsync", "everysec",
        ]  # fmt: skip
        server = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
        try:
            while not answers(found.socket):
                time.sleep(0.01)
            yield found
        finally:
            server.kill()
            server.wait(10)
