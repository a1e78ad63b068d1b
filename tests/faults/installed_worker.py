"""A real worker process, as it is started in production, with its log and its probes."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.app_harness import ROOT, environment
from tests.support.ports import free_port
from tests.support.waiting import block_until

ROLES = ("manager", "command")
"""Enough for a question that is a command; neither needs the index nor a model."""
START_SECONDS = 40.0
SHOWN = ("warning", "error", "critical")


class InstalledWorker:
    """`refdesk worker` for some roles, while inside; `code`: a checkout of another version."""

    def __init__(
        self,
        folder: Path,
        redis_url: str,
        *,
        roles: Sequence[str] = ROLES,
        code: Path = ROOT,
        **settings: str,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._log = folder / "log.jsonl"
        self._output = folder / "output.txt"
        self._port = free_port()
        # This module has its name in every version.
        words = ("-m", "refdesk", "worker", "--role", *roles, "--port", str(self._port))
        self._words = (sys.executable, *words)
        self._environment = environment(
            folder, redis_url=redis_url, log_level="info", lease_seconds="4", **settings
        )
        self._environment["PYTHONPATH"] = str(code)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "InstalledWorker":
        with self._log.open("wb") as errors, self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._words,
                # Python looks for modules there first.
                cwd=self._log.parent,
                env=self._environment,
                stdout=output,
                stderr=errors,
            )
        block_until(self._has_started, patience_seconds=START_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _has_started(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        return b"serving" in self._output.read_bytes()

    @property
    def lives(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def dismiss(self) -> int:
        """Ask it to stop, and return what it exits with."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait()

    def unready(self) -> str:
        """Return why `/readyz` is red, or an empty text when it is green."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self._port}/readyz", timeout=60
            ) as answer:
                assert answer.status == 200
                return ""
        except urllib.error.HTTPError as error:
            with error:
                return str(json.loads(error.read())["status"])

    def lines(self) -> list[dict[str, Any]]:
        """Return what it logged; every line has to be one JSON object."""
        return [json.loads(line) for line in self._log.read_text("utf-8").splitlines()]

    def complaints(self) -> list[dict[str, Any]]:
        """Return the lines that would wake somebody up."""
        return [line for line in self.lines() if line["level"] in SHOWN]

    def most_complaints_in_a_second(self) -> int:
        """Return how many such lines came within any second."""
        times = sorted(
            datetime.fromisoformat(line["timestamp"]).timestamp() for line in self.complaints()
        )
        within = (sum(1 for at in times if first <= at < first + 1.0) for first in times)
        return max(within, default=0)
