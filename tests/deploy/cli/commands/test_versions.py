"""The command prints what runs: its own version, and that of Redis."""

import re
import tomllib

import pytest

from broker.embedded_redis import find_server, server_version
from tests.support.command_line import ROOT, Run

pytestmark = pytest.mark.slow


def test_the_command_prints_its_version(run: Run) -> None:
    result = run("--version")

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (result.status, result.out) == (0, f"refdesk {project['version']}\n")


def test_names_keep_their_capitals_in_the_help(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    result = run("serve", "--help")

    assert "Serve the HTTP API, the chat completions API" in result.out


@pytest.mark.redis
def test_status_says_which_redis_runs(run: Run) -> None:
    program = find_server()
    assert program is not None, "a test of a real redis-server needs one"
    major, minor = server_version(program).numbers

    result = run("status")

    first, head, *_ = result.out.splitlines()
    assert re.fullmatch(
        rf"(Redis|Valkey) {major}\.{minor}\.\d+ of the data folder; its data is stored on "
        f"disk",
        first,
    )
    assert head.startswith("role ")
