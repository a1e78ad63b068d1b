"""`refdesk workers`: the controls of running workers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from tests.support.app_harness import command, environment
from tests.support.command_line import Run, one_line

pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.usefixtures("redis_url")]

MOST_LOOKS = 100
"""How often the status is read until the worker has announced itself."""


@contextmanager
def working(folder: Path, run: Run) -> Iterator["Popen[str]"]:
    """A worker process of two roles while inside; its log is JSON on standard error."""
    with Popen(
        command("worker", "--role", "lang", "command"),
        cwd=folder,
        env=environment(folder / "data", pythonunbuffered="1"),
        stdout=PIPE,
        stderr=PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("working as lang, command")
        try:
            assert any(run("status", "--json").json["workers"] for _ in range(MOST_LOOKS))
            yield process
        finally:
            process.kill()


def test_a_drained_desk_runs_nothing_until_it_is_resumed(elsewhere: Path, run: Run) -> None:
    with working(elsewhere, run):
        drained = run("workers", "drain")
        stopped, shown = run("status", "--json").json, run("status").out
        resumed = run("workers", "resume")
        after = run("status").out

    assert (drained.status, resumed.status) == (0, 0)
    assert drained.out.endswith("no entry is running; resume with: refdesk workers resume\n")
    assert [worker["paused"] for worker in stopped["workers"]] == [["lang", "command"]]
    assert "note: paused: every role; resume with: refdesk workers resume" in shown
    assert "note: paused" not in after


def test_running_workers_log_from_another_level(elsewhere: Path, run: Run) -> None:
    with working(elsewhere, run) as worker:
        changed = run("workers", "level", "info")
        run("workers", "reload-prompts")
        assert worker.stderr is not None
        first = json.loads(worker.stderr.readline())

    assert (changed.status, first["event"]) == (0, "prompts_reloaded")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("resume",), "expected paused roles (no role is paused), found none"),
        (("resume", "lang"), "expected paused roles (no role is paused), found lang"),
    ],
)
def test_a_role_that_is_not_paused_cannot_be_resumed(
    run: Run, words: tuple[str, ...], message: str
) -> None:
    assert one_line(run("workers", *words)) == message


def test_an_unknown_role_or_level_is_a_wrong_use(run: Run) -> None:
    assert run("workers", "pause", "cook").status == 2
    assert run("workers", "level", "shout").status == 2
