"""A real PostgreSQL of a test's own, on a socket."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


def find_postgres() -> Path:
    """Return the folder of PostgreSQL's programs, as Debian installs them.

    Missing: the test is skipped at home, and fails in CI.
    """
    results = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if results:
        return results[-1].parent
    missing = "PostgreSQL is not installed: apt-get install postgresql"
    if os.environ.get("CI"):
        pytest.fail(f"{missing}, and CI must not skip what needs it")
    pytest.skip(missing)


class PostgresServer:
    """A server with its data in a folder; it does not run as root."""

    def __init__(self, folder: Path) -> None:
        programs = find_postgres()
        user: dict[str, Any] = {"user": "postgres"} if os.geteuid() == 0 else {}
        if user:
            subprocess.run(["chown", "postgres", folder], check=True)
        self.url = f"postgresql://refdesk@/postgres?host={folder}"
        self._folder = folder
        self._quiet: dict[str, Any] = {
            "check": True, "stdout": subprocess.DEVNULL, "cwd": folder, **user
        }  # fmt: skip
        self._control = [f"{programs}/pg_ctl", "-D", f"{folder}/data", "-w"]
        initdb = [f"{programs}/initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "refdesk"]
        subprocess.run([*initdb, "--no-sync"], **self._quiet)

    def start(self) -> None:
        """Start it; returns once it answers."""
        options = f"-c listen_addresses='' -c fsync=off -k {self._folder}"
        start = ["-l", f"{self._folder}/log", "-o", options, "start"]
        subprocess.run([*self._control, *start], **self._quiet)

    def kill(self) -> None:
        """Stop it at once, as a crash does."""
        subprocess.run([*self._control, "-m", "immediate", "stop"], **self._quiet)
