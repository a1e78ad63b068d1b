"""Answers `/healthz`, `/readyz` and `/metrics` of a worker process on a separate port."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import structlog
from prometheus_client import CollectorRegistry, make_wsgi_app

from worker.errors import HealthPortError

StartResponse = Callable[..., Any]
Environ = dict[str, Any]
STOP_SECONDS = 0.1
"""How long stopping may take; the thread checks this often whether to stop."""
SILENT_SECONDS = 5.0
"""A connection without a request is closed after this time."""

log = structlog.get_logger("worker")


class _ProbeHandler(WSGIRequestHandler):
    """Logs no request: probes come every few seconds."""

    timeout = SILENT_SECONDS

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing."""


class _ProbeServer(ThreadingMixIn, WSGIServer):
    """Answers each connection in a separate thread: a slow scrape delays no probe."""

    daemon_threads = True
    block_on_close = False

    def server_bind(self) -> None:
        """Bind without resolving the host name: the name server may be unreachable."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "worker", self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log at debug level only: the client has left, or sent nothing."""
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
    """Serve inside the context; yield the port (chosen by the system when `port` is 0).

    `dead` and `unready` return the reason why the process is not alive or not ready, or an empty
    text. The server uses separate threads, so that it answers while a handler blocks the event
    loop. Raises `HealthPortError`.
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
            f"expected a free port for /healthz, /readyz and /metrics, found {port}: "
            f"{error.strerror}"
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
