"""Runs the private redis-server of a data folder for as long as a process uses it.

This is a separate program that uses only the standard library. Its arguments are the folder, the
server program and the server's arguments. Every process that uses the server holds a shared lock on
`<folder>/users`, which the operating system releases however the process ends. The keeper waits for
the exclusive lock. Once it gets the lock, no process uses the server any longer, and it stops the
server. If the keeper itself is killed, the operating system stops the server (Linux). In both
cases, no process remains.

A second lock, on `<folder>/keeper.pid`, distinguishes a folder with a server from a copy of it.
"""

import ctypes
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

PARENT_DEATH_SIGNAL = 1
STOP_SECONDS = 10.0
QUICK_SECONDS = 1.0
"""If a server exits sooner than this, in seconds, it failed to start."""
TRIES = 3


def main(folder: Path, command: list[str]) -> int:
    """Run the server until no process uses it; return the exit status.

    The keeper is detached from its starter, which may leave before other users do. Until the server
    answers, the starter watches the keeper's standard output to notice that the keeper exited.
    """
    if os.fork():
        return 0
    os.setsid()
    # The server's files contain users' questions and the secrets of keys: only the owner may read.
    os.umask(0o077)
    unused = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: unused.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    kept = _hold(folder)
    threading.Thread(target=_wait_for_users, args=(folder / "users", unused), daemon=True).start()
    failures = 0
    die_with_parent = _die_with_parent()
    while failures < TRIES:
        started = time.monotonic()
        server = subprocess.Popen(  # noqa: S603 - our own server, with our own arguments
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # The server inherits the lock, which is held while either process lives.
            pass_fds=(kept,),
            preexec_fn=die_with_parent,
        )
        if _keep(server, unused):
            return 0
        failures = failures + 1 if time.monotonic() - started < QUICK_SECONDS else 0
    return 1


def _hold(folder: Path) -> int:
    """Return the descriptor of a lock that marks this folder as one with a server."""
    descriptor = os.open(folder / "keeper.pid", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))
    return descriptor


def _keep(server: "subprocess.Popen[bytes]", unused: threading.Event) -> bool:
    """Return True once the server is unused and has been stopped, or False if it died."""
    while not unused.wait(0.1):
        if server.poll() is not None:
            return False
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    return True


def _wait_for_users(path: Path, unused: threading.Event) -> None:
    # The descriptor, and with it the lock, stays open until this process has stopped the server.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    unused.set()


def _die_with_parent() -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    system = ctypes.CDLL(None, use_errno=True)
    return lambda: system.prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
