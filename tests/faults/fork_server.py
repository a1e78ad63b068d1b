"""A process that has imported everything, and forks a worker in milliseconds.

It reads one worker's `WorkerSettings` from each line of its standard input and answers with lines:
`["born", pid]`, `["died", pid, signal or -exit code]`, `["stopped", pid]`. When its input ends, it
and all its workers end. What workers print goes to the standard error output.
"""

import ctypes
import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType

from pydantic import TypeAdapter
from pydantic_core import to_json

from tests.faults import worker_main
from tests.faults.worker_main import WorkerSettings

PARENT_DEATH_SIGNAL = 1
SETTINGS = TypeAdapter(WorkerSettings)


def main() -> None:
    """Fork until the input ends."""
    born: set[int] = set()
    answers = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def report(*words: object) -> None:
        os.write(answers, to_json(words) + b"\n")

    def look_after(_number: int, _frame: FrameType | None) -> None:
        _report_ends(born, report)

    signal.signal(signal.SIGCHLD, look_after)
    _stay_warm()
    for line in sys.stdin:
        asked = SETTINGS.validate_json(line)
        # Else a child could have died, and be reported, before it is reported as born.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        pid = os.fork()
        if pid == 0:
            _live(asked)
        born.add(pid)
        report("born", pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for pid in born:
        os.kill(pid, signal.SIGKILL)


def _stay_warm() -> None:
    """Keep what is imported out of the collector's way, so that forks share its memory."""
    gc.collect()
    gc.freeze()


def _live(asked: WorkerSettings) -> None:
    """Be the worker, and end with it whatever happens."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, worker_main.UNTIL_IT_WORKS)
        if sys.platform.startswith("linux"):
            ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
        worker_main.main(asked)
        code = 0
    except BaseException:  # noqa: BLE001 - nothing of a worker may run on in the tasks
        traceback.print_exc()
    finally:
        os._exit(code)


def _report_ends(born: set[int], report: Callable[..., None]) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if os.WIFSTOPPED(status):
            report("stopped", pid)
        else:
            born.discard(pid)
            report("died", pid, -os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
