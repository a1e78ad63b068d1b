"""Runs the `refdesk` command in this process."""

import os
from pathlib import Path

import pytest

from broker.embedded_redis import find_server
from cli.main import main
from tests.support.app_harness import DOMAIN
from tests.support.command_line import CommandResult, Run


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory: neither settings nor data of the machine are there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFDESK_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DOMAIN_NAME", DOMAIN)
    return tmp_path


@pytest.fixture
def run(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command in this process."""

    def run_command(*words: str) -> CommandResult:
        capsys.readouterr()
        try:
            status = main(words)
        except SystemExit as left:
            status = int(str(left.code))
        captured = capsys.readouterr()
        return CommandResult(status, captured.out, captured.err)

    return run_command


@pytest.fixture
def served(library: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Run:
    """Runs the command over the example documents; what it remembers stays for the next."""
    if find_server() is None:
        missing = "no redis-server of 6.2 or newer was found"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    monkeypatch.setenv("REFDESK_DATA", str(library))
    return run
