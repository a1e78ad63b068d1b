"""Serves `/healthz`, `/readyz` and `/metrics` of a worker process on a separate port."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import structlog
from prometheus_client import CollectorRegistry, make_wsgi_app

from worker.errors import HealthPortError
from worker.process import WorkerProcess

StartResponse = Callable[..., Any]
Environ = dict[str, Any]
STOP_SECONDS = 0.1
"""How often the server thread checks whether it should stop, in seconds."""
SILENT_SECONDS = 5.0
"""An idle connection is closed after this time, in seconds."""

log = structlog.get_logger("worker")
LONGEST_SILENCE_SECONDS = 12.0
"""A worker without a successful read for this long is not ready; a read blocks for 8 seconds."""
TURN_SECONDS = 1.0
RENEWAL_ENDED = "the renewal of leases has ended"


class WorkerHealth:
    """Checks whether a worker process is alive and ready, for `/healthz` and `/readyz`.

    A process whose event loop is blocked for `stuck_seconds` counts as dead. The default is longer
    than the deadline of a question, so its entries would be lost anyway.
    """

    def __init__(
        self,
        process: WorkerProcess,
        renewal_alive: Callable[[], bool],
        *,
        stuck_seconds: float = 240.0,
    ) -> None:
        self._process = process
        self._renewal_alive = renewal_alive
        self._stuck_seconds = stuck_seconds
        self._lived = False
        self.last_turn = time.monotonic()

    async def record_turns(self) -> None:
        """Regularly record that the event loop is running, until cancelled."""
        while True:
            self.last_turn = time.monotonic()
            await asyncio.sleep(TURN_SECONDS)

    def dead(self) -> str:
        """Return why the process should be restarted, or an empty string."""
        if self._renewal_alive():
            self._lived = True
        elif self._lived:
            # The renewal ran before; it does not restart by itself.
            return RENEWAL_ENDED
        still = time.monotonic() - self.last_turn
        if still <= self._stuck_seconds:
            return ""
        return f"the event loop has been blocked for {still:.0f} s"

    def unready(self) -> str:
        """Return why the process cannot process entries, or an empty string."""
        if not self._renewal_alive():
            return RENEWAL_ENDED
        now = time.monotonic()
        silent = [
            worker.role
            for worker in self._process.workers
            if worker.runs.free_slots
            and not worker.is_paused
            and now - worker.last_read > LONGEST_SILENCE_SECONDS
        ]
        return f"no response from Redis for {', '.join(dict.fromkeys(silent))}" if silent else ""


class _ProbeHandler(WSGIRequestHandler):
    """Handles a request without logging it, because probes are frequent."""

    timeout = SILENT_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing."""


class _ProbeServer(ThreadingMixIn, WSGIServer):
    """Handles each connection in a separate thread, so that a slow scrape does not delay probes."""

    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        """Bind without resolving the host name, because the DNS server may be unreachable."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "worker", self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log at debug level only: the client has disconnected, or has sent nothing."""
        log.debug("request_failed", exc_info=True)


@contextmanager
def serving(
    port: int,
    registry: CollectorRegistry,
    *,
    dead: Callable[[], str],
    unready: Callable[[], str],
    host: str = "",
) -> Iterator[int]:
    """Serve inside the context; yield the port (chosen by the system if `port` is 0).

    `dead` and `unready` return why the process is not alive or not ready, or an empty string. The
    server runs in threads, so that it responds even while a handler blocks the event loop. Raises
    `HealthPortError` if the port is not available.
    """
    metrics = make_wsgi_app(registry)

    def app(environ: Environ, start: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/healthz":
                return _answer(start, dead(), "alive")
            case "/readyz":
                return _answer(start, dead() or unready(), "ready")
            case "/metrics":
                page: Iterable[bytes] = metrics(environ, start)
                return page
            case _:
                return _answer(start, "no such page", "", status="404 Not Found")

    try:
        server = make_server(
            host, port, app, server_class=_ProbeServer, handler_class=_ProbeHandler
        )
    except OSError as error:
        raise HealthPortError(
            f"cannot listen on port {port} for /healthz, /readyz and /metrics: {error.strerror}"
        ) from error
    thread = threading.Thread(
        target=server.serve_forever, args=(STOP_SECONDS,), name="health", daemon=True
    )
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(
    start: StartResponse, reason: str, good: str, *, status: str = "503 Service Unavailable"
) -> Iterable[bytes]:
    start(status if reason else "200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"status": reason or good}).encode()]
