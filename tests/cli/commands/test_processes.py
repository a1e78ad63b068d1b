"""The `refdesk` command as several processes at once."""

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from config.settings import load_settings
from deploy.assembly.runtime import connect_runtime
from memory.key_names import workers_key
from memory.presence import ALIVE_SECONDS
from tests.support.command_line import CLEAR, Run, environment_of, one_line

pytestmark = pytest.mark.slow


@pytest.fixture
def started(elsewhere: Path, library: Path, served: Run) -> Iterator[Callable[..., Any]]:
    """Starts the command as a separate process; ended with the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*words: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", *words],
            cwd=elsewhere,
            env=environment_of(library),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_others_hand_their_work_to_a_running_desk(
    started: Callable[..., Any], served: Run, elsewhere: Path, library: Path
) -> None:
    (elsewhere / "pages").mkdir()
    (elsewhere / "pages" / "fax.md").write_text("# Fax bridge\n\nThe fax bridge listens on 77.\n")
    desk = started("up")
    assert desk.stdout.readline() == "working as every role; stop with Ctrl-C\n"

    read, asked = served("ingest", "pages", "--json"), served("ask", CLEAR, "--json")
    second = served("up")
    desk.send_signal(signal.SIGTERM)
    rest, errors = desk.communicate()

    assert (read.json["added"], asked.json["outcome"]) == (1, "answered")
    assert f"is in use by process {desk.pid}" in one_line(second)
    assert (desk.returncode, rest, errors) == (0, "stopping: finishing running work\n", "")


def test_the_status_shows_an_idle_worker_while_it_lives(
    started: Callable[..., Any], served: Run
) -> None:
    worker = started("worker", "--role", "lang", "command")
    assert worker.stdout.readline() == "working as lang, command; stop with Ctrl-C\n"

    [shown_worker] = list_shown_workers(served, 1)
    again = list_shown_workers(served, 1)
    section = served("status").out.partition("\nWorkers\n")[2].partition("\n\n")[0].splitlines()
    worker.send_signal(signal.SIGTERM)
    worker.communicate()
    left = served("status", "--json").json["workers"]

    assert (shown_worker["host"], shown_worker["pid"]) == (socket.gethostname(), worker.pid)
    assert (shown_worker["roles"], again[0]["roles"]) == (["lang", "command"],) * 2
    assert again[0]["started_at"] == shown_worker["started_at"] <= shown_worker["seen_at"]
    assert section[0] == f"  {socket.gethostname()}, pid {worker.pid}"
    assert section[-1] == "    roles: lang, command"
    assert left == []


def test_a_killed_worker_is_not_shown_after_half_a_minute(
    started: Callable[..., Any], served: Run
) -> None:
    worker = started("worker", "--role", "lang")
    worker.stdout.readline()
    list_shown_workers(served, 1)

    worker.kill()
    worker.wait()
    asyncio.run(let_pass(ALIVE_SECONDS))

    assert served("status", "--json").json["workers"] == []


async def let_pass(seconds: float) -> None:
    """Make every sign of life so much older."""
    async with connect_runtime(load_settings()) as post:
        client: Any = post.endpoint.client()
        [member] = await client.zrange(workers_key(), 0, -1)
        await client.zincrby(workers_key(), -seconds * 1000, member)
        await client.aclose()


def list_shown_workers(served: Run, count: int) -> list[dict[str, Any]]:
    """The workers that the status shows, as soon as they are that many."""
    workers: list[dict[str, Any]] = served("status", "--json").json["workers"]
    while len(workers) != count:
        workers = served("status", "--json").json["workers"]
    return workers


def test_a_chat_remembers_chooses_and_obeys(started: Callable[..., Any]) -> None:
    chat = started("chat", "--conversation", "c-chat")

    out, err = chat.communicate("How do I change it?\n\n1\n/set_language de\n/quit\n")

    assert (chat.returncode, err) == (0, "")
    assert out.startswith("Ask a question.")
    outcomes = re.findall(r"^\((\w+), (?:language|Sprache)", out, re.MULTILINE)
    assert outcomes == ["clarification", "answered", "beantwortet"]
    assert "Deutsch" in out


def test_a_reader_that_leaves_early_is_no_trouble(started: Callable[..., Any]) -> None:
    status = started("status")
    status.stdout.close()

    assert status.stderr.read() == ""
    assert status.wait() == 1


LIGHT = """
import asyncio, sys
from config.settings import load_settings
from deploy.assembly.runtime import working

async def work():
    async with working(load_settings(), {roles!r}):
        print("loaded:", *sorted(name for name in {heavy!r} if name in sys.modules))

asyncio.run(work())
"""
HEAVY = (
    "numpy", "onnxruntime", "tokenizers", "qdrant_edge", "qdrant_client", "openai", "google.genai",
    "fakeredis", "fastembed", "markdown_it", "pypdfium2",
)  # fmt: skip


@pytest.mark.parametrize(
    "roles", [("manager", "command", "augmentation"), ("lang",), ("essence", "clarification")]
)
def test_a_light_worker_loads_no_heavy_library(
    roles: tuple[str, ...], elsewhere: Path, served: Run
) -> None:
    program = LIGHT.format(roles=roles, heavy=HEAVY)

    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=elsewhere,
        env=environment_of(elsewhere / "light"),
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stdout.splitlines()[-1] == "loaded:"
