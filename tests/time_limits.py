"""The time limit of a test: a multiple of the machine's speed. Whoever exceeds it leaves no trace.

An interruption may come at any point: in the test, in a task beside it, in a fixture. All fixtures
are torn down afterwards, so that the next test starts as if the interrupted one had not run.
"""

import asyncio
import hashlib
import inspect
import signal
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import _pytest.fixtures
import _pytest.runner
import pytest
import pytest_asyncio.plugin
from _pytest.outcomes import TEST_OUTCOME, Failed

WORK_SECONDS = 0.16
"""The duration of the work of `measure_slowness` on a quiet machine."""
POSTPONE_SECONDS = 0.01
BOOKKEEPING = ("_pytest.fixtures", "_pytest.runner", "pluggy", "pytest_asyncio.plugin", __name__)
"""Modules that record which fixtures are set up; an interruption would leave the record wrong."""
PYTEST_ASYNCIO = pytest_asyncio.plugin.__file__
"""The file of the tasks that set up and tear down the fixtures."""

# A task group raises a BaseExceptionGroup when one of its tasks is interrupted, and a cancelled
# task a CancelledError. pytest does not expect them: when one finalizer raises them, it leaves out
# the others, and the next test gets the fixtures of the one before.
for _module in (_pytest.fixtures, _pytest.runner):
    pytest.MonkeyPatch().setattr(
        _module, "TEST_OUTCOME", (*TEST_OUTCOME, BaseExceptionGroup, asyncio.CancelledError)
    )


class InterruptedTestError(Failed):
    """A test took longer than its limit."""


def measure_slowness() -> float:
    """Return how many times longer than on a quiet machine a fixed work takes, at least 1."""
    started = time.perf_counter()
    for _ in range(3):
        hashlib.pbkdf2_hmac("sha256", b"work", b"work", 200_000)
    return max(1.0, (time.perf_counter() - started) / WORK_SECONDS)


@dataclass
class TimeLimit:
    """Interrupts a test that takes longer than `seconds` on a quiet machine."""

    item: pytest.Item
    seconds: float
    fail: Callable[[int, FrameType | None], Any]
    """The handler of pytest-timeout: prints the stacks of all threads, then fails."""
    slowness: Callable[[], float] = measure_slowness
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)
    interruption: str = ""
    """The message of the last interruption, if there was one."""

    def __post_init__(self) -> None:
        self.started = self.clock()

    def expire(self, number: int, frame: FrameType | None) -> None:
        """Handle the alarm: interrupt what is running, or set the alarm again."""
        if (more_seconds := self.find_more_seconds(frame)) > 0:
            signal.setitimer(signal.ITIMER_REAL, more_seconds)
            return
        # The rest of the test, such as the teardown of a fixture, gets the same limit.
        self.started = self.clock()
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        try:
            self.fail(number, frame)
        except Failed as failure:
            self.interruption = str(failure.msg)
            cancel_waiting_tasks(self.item)
            raise InterruptedTestError(self.interruption) from None

    def find_more_seconds(self, frame: FrameType | None) -> float:
        """Return the time that is left on a machine as slow as this one is now."""
        module = "" if frame is None else str(frame.f_globals.get("__name__"))
        if module.startswith(BOOKKEEPING):
            return POSTPONE_SECONDS
        elapsed = self.clock() - self.started
        # An alarm before the time is up was raised by hand.
        return 0.0 if elapsed < self.seconds else self.seconds * self.slowness() - elapsed


def cancel_waiting_tasks(item: pytest.Item) -> None:
    """Cancel the test, or the fixture, that waits for the task that was interrupted."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # no loop is running: nothing waits
        return
    test = inspect.unwrap(item.function) if isinstance(item, pytest.Function) else None
    for task in tasks - {asyncio.current_task()}:
        code = getattr(task.get_coro(), "cr_code", None)
        is_test = code is not None and code is getattr(test, "__code__", None)
        if is_test or (code is not None and code.co_filename == PYTEST_ASYNCIO):
            task.cancel()


LIMIT = pytest.StashKey[TimeLimit]()
SETTINGS = pytest.StashKey[Any]()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> Generator[None, Any, Any]:
    """Let the alarm of pytest-timeout call a limit that follows the machine's speed."""
    result = yield
    fail = signal.getsignal(signal.SIGALRM)
    if callable(fail):
        limit = TimeLimit(item, settings.timeout, fail)
        item.stash[LIMIT], item.stash[SETTINGS] = limit, settings
        signal.signal(signal.SIGALRM, limit.expire)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Let an interrupted set-up fail."""
    yield from _fail_if_interrupted(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Let an interrupted test fail, also when it did not notice the interruption."""
    yield from _fail_if_interrupted(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Limit the teardown of a test that failed, for which pytest-timeout sets no alarm."""
    if (settings := item.stash.get(SETTINGS, None)) is not None:
        item.ihook.pytest_timeout_set_timer(item=item, settings=settings)
    yield from _fail_if_interrupted(item)


def _fail_if_interrupted(item: pytest.Item) -> Generator[None]:
    cause: BaseException | None = None
    try:
        yield
    except InterruptedTestError:
        raise
    except BaseException as error:
        if not _interruption(item):
            raise
        cause = error
    if message := _interruption(item):
        raise InterruptedTestError(message) from cause


def _interruption(item: pytest.Item) -> str:
    limit = item.stash.get(LIMIT, None)
    return "" if limit is None else limit.interruption


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: _pytest.fixtures.SubRequest
) -> Generator[None, Any, Any]:
    """Forget an interrupted set-up: pytest would give its failure to all tests that share it."""
    try:
        return (yield)
    except InterruptedTestError:
        fixturedef.finish(request)
        raise
