"""A worker process announces that it lives, and a Redis that is away does not harm it."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from broker.background_jobs import BackgroundJobs
from deploy.assembly.assistant_prompts import PromptFolders
from deploy.logging_setup import configure_logging
from llm.tasks.question import ScopeInputs
from memory.errors import MemoryUnavailableError
from memory.presence import ProcessPresence, WorkerControls
from tests.support.waiting import wait_until
from worker.controls import ProcessControls


class Board(ProcessPresence):
    """Where a process is announced, which refuses while it is `away`."""

    def __init__(self) -> None:
        self.announcements: list[str] = []
        self.refused = 0
        self.away = False

    async def announce(self, paused: Sequence[str] = ()) -> WorkerControls:
        self._take("lives")
        return WorkerControls()

    async def leave(self) -> None:
        self._take("left")

    def _take(self, what: str) -> None:
        if self.away:
            self.refused += 1
            raise MemoryUnavailableError("Redis does not answer")
        self.announcements.append(what)

    async def announced(self) -> bool:
        return len(self.announcements) >= 2

    async def was_refused(self) -> bool:
        return self.refused >= 2


def list_nothing() -> Sequence[str]:
    return ()


def ignore(controls: WorkerControls) -> None:
    assert controls == WorkerControls()


@asynccontextmanager
async def announcing(board: Board) -> AsyncIterator[None]:
    """Announce as a worker process does."""
    announce = partial(board.keep_announcing, list_nothing, ignore, every_seconds=0.001)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(board.leave_quietly, lambda: 2.0)
        await stack.enter_async_context(BackgroundJobs().running("worker_presence", announce))
        yield


class PausedProcess:
    """The part of a worker process that is paused."""

    def __init__(self) -> None:
        self.paused_roles: Sequence[str] = ()

    def pause(self, roles: Collection[str]) -> None:
        self.paused_roles = sorted(roles)


async def test_it_is_announced_again_and_again_and_ends_with_its_leave() -> None:
    board = Board()

    async with announcing(board):
        await wait_until(board.announced)

    assert (set(board.announcements[:-1]), board.announcements[-1]) == ({"lives"}, "left")


async def test_redis_away_ends_nothing_and_the_next_announcement_comes() -> None:
    board = Board()
    board.away = True

    async with announcing(board):
        await wait_until(board.was_refused)
        board.away = False
        await wait_until(board.announced)
        board.away = True


async def test_a_cancelled_or_failed_worker_also_leaves() -> None:
    failed, cancelled = Board(), Board()

    async def wait() -> None:
        async with announcing(cancelled):
            await asyncio.Event().wait()

    async def fail() -> None:
        async with announcing(failed):
            await wait_until(failed.announced)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await fail()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(wait())
        await wait_until(cancelled.announced)
        task.cancel()

    assert (failed.announcements[-1], cancelled.announcements[-1]) == ("left", "left")


OWN = "You greet like a {who}.\n---\n{{{{ question | data('question') }}}}\n"
ASKED = ScopeInputs(question="How?", domain_name="Ships", coverage=0.5)


def test_prompts_that_changed_are_used_when_operators_want_it_and_wrong_ones_never(
    tmp_path: Path,
) -> None:
    file = tmp_path / "scope.txt"
    file.write_text(OWN.format(who="pirate"))
    folders = PromptFolders()
    prompts = folders.of(tmp_path)
    controls = ProcessControls(
        PausedProcess().pause, configure_logging, folders.reload, level="warning"
    )
    controls.follow(WorkerControls(reloads=3))

    file.write_text(OWN.format(who="captain"))
    controls.follow(WorkerControls(reloads=3))
    before = prompts.render("scope", ASKED).system
    controls.follow(WorkerControls(reloads=4))
    after = prompts.render("scope", ASKED).system
    file.write_text("no prompt")
    with capture_logs() as logs:
        controls.follow(WorkerControls(reloads=5))

    assert (before, after) == ("You greet like a pirate.", "You greet like a captain.")
    assert prompts.render("scope", ASKED).system == after
    assert [line["event"] for line in logs] == ["prompts_not_reloaded"]


def test_operators_pause_roles_and_set_the_level_of_a_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = PausedProcess()
    controls = ProcessControls(
        process.pause, configure_logging, PromptFolders().reload, level="warning"
    )

    controls.follow(WorkerControls(paused=frozenset({"search"}), level="debug"))
    structlog.get_logger("worker").debug("shown")
    paused = process.paused_roles
    controls.follow(WorkerControls())
    structlog.get_logger("worker").debug("hidden")

    assert (paused, process.paused_roles) == (["search"], [])
    shown = capsys.readouterr().err
    assert ("shown" in shown, "hidden" in shown) == (True, False)
