"""Measures whether visitors are answered during thousands of hostile connections.

`python -m benchmarks.speed.open_connections` starts `refdesk serve` on the example documents, with
a public key, in a separate process on this machine, and holds open against it

- half-open connections, which send nothing or a part of their headers;
- buffered ones, which have the key, send a long body and keep its last byte to themselves;
- unread ones, which ask for a large page and never read it;

ten from one address (of 127.0.0.0/8), and opens another a second after the server ended one. Next
to them visitors of a website, each from another address, open a conversation and ask a question. It
prints how many were answered, how long that took, and the most memory that the server held. It ends
after `--seconds` at the latest.
"""

import argparse
import asyncio
import json
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "sms_platform"
WEBSITE = "https://www.acme.test"
QUESTION = "How do I configure SMS routing rules?"
BODY_BYTES = 500_000
PER_ADDRESS = 10
STOP_SECONDS = 20
AGAIN_SECONDS = 1.0
HELD_SHARE = 0.8
"""Visitors come once that many hostile connections are open; some are always opened again."""
SPARE_DESCRIPTORS = 200


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: where it listens, the key of the website, and its process."""

    port: int
    token: str
    pid: int
    question: str = QUESTION

    def memory_mb(self, name: str = "VmHWM") -> float:
        """Return what the process holds: now (`VmRSS`), or at most so far (`VmHWM`)."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0


@dataclass
class Result:
    """The result."""

    visitors: int
    answered: int = 0
    seconds: list[float] = field(default_factory=list)
    opened: int = 0
    held: int = 0
    before_mb: float = 0.0
    most_mb: float = 0.0
    errors: list[str] = field(default_factory=list)


@contextmanager
def serve(
    folder: Path, *, documents: bool = True, question: str = QUESTION, **settings: str
) -> Iterator[Served]:
    """Have `refdesk serve` while inside; visitors ask it the question."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "REFDESK_DATA": str(folder / "data"),
        "DOMAIN_NAME": "SMS platform documentation",
        "DOMAIN_SCOPE": "setting up and running an SMS messaging platform",
        "LOG_LEVEL": "warning",
        **settings,
    }

    def refdesk(*words: str) -> str:
        command = [sys.executable, "-m", "deploy.cli.main", *words]
        done = subprocess.run(
            command, env=environment, cwd=folder, check=True, capture_output=True, text=True
        )
        return done.stdout

    if documents:
        refdesk("ingest", str(EXAMPLES))
    made = json.loads(refdesk("keys", "create", "--public", "--origin", WEBSITE, "--json"))
    with (folder / "serve.log").open("wb") as log:
        command = [sys.executable, "-m", "deploy.cli.main", "serve", "--port", "0"]
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None  # noqa: S101 - we asked for a pipe
            found = re.search(r"http://\S+:(\d+)", process.stdout.readline())
            assert found is not None  # noqa: S101 - its first line says where
            token = next(str(one) for one in made.values() if str(one).startswith("refdesk_pub"))
            yield Served(int(found[1]), token, process.pid, question)
        finally:
            process.terminate()
            process.communicate(timeout=STOP_SECONDS)


async def attack(
    server: Served,
    *,
    half_open: int,
    buffered: int,
    unread: int = 0,
    visitors: int,
    seconds: float = 60.0,
) -> Result:
    """Hold connections open, let visitors ask meanwhile, and return the results."""
    result = Result(visitors, before_mb=server.memory_mb("VmRSS"))
    kinds = [half_open, buffered, unread]
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(seconds):
        held = [
            tasks.create_task(_hold(server, kind, number, result))
            for kind, count in enumerate(kinds)
            for number in range(count)
        ]
        while result.held < HELD_SHARE * sum(kinds):  # noqa: ASYNC110 - the sockets have no event
            await asyncio.sleep(0.05)
        asked = [tasks.create_task(_visit(server, number, result)) for number in range(visitors)]
        await asyncio.wait(asked)
        for task in held:
            task.cancel()
    result.most_mb = server.memory_mb()
    return result


async def _hold(server: Served, kind: int, number: int, result: Result) -> None:
    """Keep one hostile connection open, and open another when it ends; until cancelled."""
    address = f"127.{100 + kind}.{number // PER_ADDRESS // 250}.{1 + number // PER_ADDRESS % 250}"
    while True:
        try:
            reader, writer = await _connect(server, address)
        except OSError:
            await asyncio.sleep(AGAIN_SECONDS)
            continue
        result.opened += 1
        result.held += 1
        try:
            writer.write(_hostile(server, kind, number))
            await writer.drain()
            if kind == len(("half open", "buffered")):
                await asyncio.sleep(3600)
            await reader.read()
        except OSError:
            pass
        finally:
            result.held -= 1
            writer.transport.abort()
        await asyncio.sleep(AGAIN_SECONDS)


def _hostile(server: Served, kind: int, number: int) -> bytes:
    head = f"Host: 127.0.0.1:{server.port}\r\n"
    if kind == 0:
        return b"" if number % 2 else f"GET / HTTP/1.1\r\n{head}X: ".encode()
    if kind == 1:
        response = _head(server, "POST", f"/v1/conversations/c-{number}/messages", BODY_BYTES)
        return response.encode() + b'{"text":"' + b" " * (BODY_BYTES - 10)
    return f"GET /openapi.json HTTP/1.1\r\n{head}\r\n".encode() * 8


async def _visit(server: Served, number: int, result: Result) -> None:
    """Open a conversation, ask, and count the answer."""
    address = f"127.200.0.{1 + number % 250}"
    began = time.perf_counter()
    try:
        opened = await _ask(server, address, "/v1/conversations", b"{}", "")
        path = f"/v1/conversations/{opened['conversation_id']}/messages"
        body = json.dumps({"text": server.question}).encode()
        answer = await _ask(server, address, path, body, str(opened["token"]))
    except (OSError, ValueError, KeyError) as error:
        result.errors.append(repr(error))
        return
    result.seconds.append(time.perf_counter() - began)
    result.answered += answer.get("outcome") == "answered"


async def _ask(
    server: Served, address: str, path: str, body: bytes, visit: str
) -> dict[str, object]:
    reader, writer = await _connect(server, address)
    more = f"X-Conversation-Token: {visit}\r\n" if visit else ""
    head = _head(server, "POST", path, len(body), f"{more}Connection: close\r\n")
    writer.write(head.encode() + body)
    response = await reader.read()
    writer.close()
    answer = response.partition(b"\r\n\r\n")[2]
    found: dict[str, object] = json.loads(answer)
    if "error" in found:
        raise ValueError(str(found["error"]))
    return found


def _head(server: Served, method: str, path: str, length: int, more: str = "") -> str:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nOrigin: {WEBSITE}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {length}\r\n{more}\r\n"
    )


async def _connect(
    server: Served, address: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    mine = socket.socket()
    mine.setblocking(False)
    try:
        mine.bind((address, 0))
        await asyncio.get_running_loop().sock_connect(mine, ("127.0.0.1", server.port))
    except OSError:
        mine.close()
        raise
    return await asyncio.open_connection(sock=mine)


def raise_own_limit(count: int) -> None:
    """Let this process open that many connections; raises SystemExit where it may not."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise SystemExit(f"expected to be allowed {wanted} open files, found {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main() -> int:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.open_connections")
    parser.add_argument("--half-open", type=int, default=2_000)
    parser.add_argument("--buffered", type=int, default=600)
    parser.add_argument("--unread", type=int, default=0)
    parser.add_argument("--visitors", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=120.0, help="the longest duration")
    chosen = parser.parse_args()
    raise_own_limit(chosen.half_open + chosen.buffered + chosen.unread + chosen.visitors)
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as server:
        result = asyncio.run(
            attack(
                server,
                half_open=chosen.half_open,
                buffered=chosen.buffered,
                unread=chosen.unread,
                visitors=chosen.visitors,
                seconds=chosen.seconds,
            )
        )
        log = (Path(folder) / "serve.log").read_bytes()
    _print(result, len(log))
    return 0 if result.answered == result.visitors else 1


def _print(result: Result, log_bytes: int) -> None:
    print(f"answered            {result.answered} of {result.visitors}")
    if result.seconds:
        middle, longest = statistics.median(result.seconds), max(result.seconds)
        print(f"seconds             median {middle:.2f}, longest {longest:.2f}")
    print(f"hostile connections {result.opened} opened")
    print(f"resident memory     {result.before_mb:.0f} MB before, {result.most_mb:.0f} MB at most")
    print(f"log                 {log_bytes:,} bytes")
    for error in sorted(set(result.errors)):
        print(f"error               {error[:200]}")


if __name__ == "__main__":
    sys.exit(main())
