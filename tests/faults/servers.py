"""A redis-server of a test's own, that can be killed, started again, and made to forget."""

import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType

from tests.conftest import start_redis

AOF = ("--appendonly", "yes", "--appendfsync", "everysec", "--aof-load-truncated", "yes")


class Server:
    """One redis-server; `url` stays the same over restarts, and so does what a durable one has."""

    def __init__(self, folder: Path, *options: str, durable: bool = True) -> None:
        self.path = folder / "r.sock"
        self._folder = folder
        self._options = (*(AOF if durable else ()), *options)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"unix://{self.path}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.path.unlink(missing_ok=True)
        self._process = start_redis(self.path, *self._options)

    def kill(self) -> None:
        """Kill it at once, as a machine would that fails."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Let it stand still: it takes connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def written(self) -> int:
        """Return how much it has written down, in bytes."""
        return self._log().stat().st_size

    def forget_after(self, size: int) -> None:
        """Lose what was written after that many bytes, as with a machine that loses its power."""
        assert self._process is None, "expected a server that was killed"
        os.truncate(self._log(), size)

    def _log(self) -> Path:
        single = self._folder / "appendonly.aof"
        if single.is_file():
            return single  # up to Redis 6.2
        return max((self._folder / "appendonlydir").glob("*.incr.aof"))

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "expected a server that runs"
        self._process.send_signal(number)
