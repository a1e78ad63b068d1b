"""A private Redis for one measurement, as the embedded broker starts it."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.embedded import answers, find_server


@contextmanager
def private_redis() -> Iterator[str]:
    """Yield the URL of an empty server with an append-only file, synced every second."""
    program = find_server()
    if program is None:
        raise SystemExit("expected a redis-server of 6.2 or newer, found none")
    with tempfile.TemporaryDirectory(prefix="refdesk-bench-") as folder:
        socket = Path(folder) / "redis.sock"
        arguments = [
            "--port", "0", "--unixsocket", str(socket), "--dir", folder, "--save", "",
            "--appendonly", "yes", "--appendfsync", "everysec",
        ]  # fmt: skip
        server = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
        try:
            while not answers(socket):
                time.sleep(0.01)
            yield f"unix://{socket}"
        finally:
            server.terminate()
            server.wait(10)
