"""Sends 20,000 hostile requests to a running HTTP server and judges every answer.

`python -m tests.gateway.hostile` starts the server in a separate process, with another tenant's
conversation behind it, and prints the statuses. It fails on any status from 500 on that is not
documented, on a traceback, a path, a key or the other tenant's text in an answer or in the log, on
an error that repeats what was sent, and when the process dies.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.gateway.hostile.wire import CANARY, send_all
from tests.gateway.http.server_process import WORD, serve_http

REQUESTS = 20_000
SEED = 2026


def main() -> int:
    """Send, judge and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.hostile")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--seed", type=int, default=SEED)
    chosen = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, serve_http(Path(folder)) as server:
        port = urlsplit(server.url).port
        sending = send_all(
            port or 0, chosen.requests, seed=chosen.seed, token=server.token, secrets=(WORD,)
        )
        verdict = asyncio.run(sending)
        lives = server.process.poll() is None
        log = server.log.read_text(errors="replace")
    forbidden = ("Traceback", "request_failed", WORD, server.token, CANARY)
    in_log = [word for word in forbidden if word in log]
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(verdict.statuses.items()))
    lines = [
        f"{verdict.sent} requests in {time.monotonic() - began:.0f} s; statuses {statuses}",
        f"wrong answers: {len(verdict.wrong)}; in the log: {len(in_log)}; it lives: {lives}",
        *verdict.wrong[:10],
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if lives and not verdict.wrong and not in_log else 1


if __name__ == "__main__":
    sys.exit(main())
