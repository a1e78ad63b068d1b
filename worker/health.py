"""Answers `/healthz`, `/readyz` and `/metrics` of a worker process on a port of its own."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from worker.errors import HealthPortError

StartResponse = Callable[..., Any]
Environ = dict[str, Any]
STOP_SECONDS = 0.1
"""How long ending may take; the thread looks that often whether it shall."""


class _QuietHandler(WSGIRequestHandler):
    """Logs no request: probes come every few seconds."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Log nothing."""


@contextmanager
def serving(
    port: int, registry: CollectorRegistry, unready: Callable[[], str], *, host: str = ""
) -> Iterator[int]:
    """Serve while inside; yields the port (chosen by the system when `port` is 0).

    `unready` returns why the process is not ready, or an empty text. The server has a thread of
    its own, so that a handler that blocks the event loop cannot silence it.
    """
    metrics = make_wsgi_app(registry)

    def app(environ: Environ, start: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/healthz":
                return _answer(start, "200 OK", {"status": "alive"})
            case "/readyz":
                reason = unready()
                status = "503 Service Unavailable" if reason else "200 OK"
                return _answer(start, status, {"status": reason or "ready"})
            case "/metrics":
                page: Iterable[bytes] = metrics(environ, start)
                return page
            case _:
                return _answer(start, "404 Not Found", {"status": "no such page"})

    try:
        server: WSGIServer = make_server(host, port, app, handler_class=_QuietHandler)
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


def _answer(start: StartResponse, status: str, body: dict[str, str]) -> Iterable[bytes]:
    start(status, [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]
