"""Starts the processes of a desk, and a client that follows an answer across restarts."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AGAIN_SECONDS = 0.1
CUT = (ConnectionError, asyncio.IncompleteReadError, OSError)


@dataclass
class ResumedAnswer:
    """What one message brought: seconds until the first event, text and the last, each `done`.

    The first text is that of a draft, if drafts are sent. `retracted` counts sentences.
    """

    message_id: str
    first_seconds: float = 0.0
    first_text_seconds: float = 0.0
    seconds: float = 0.0
    resumed: int = 0
    waited: bool = False
    last_id: str = ""
    stages: list[str] = field(default_factory=list)
    text: str = ""
    retracted: int = 0
    done: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class ResumingClient:
    """Sends messages to a server at `port` and follows them, also across its restart."""

    def __init__(self, port: int, *, key: str = "", patience_seconds: float = 60.0) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._patience_seconds = patience_seconds

    async def ask(
        self, conversation_id: str, message_id: str, text: str, answer: ResumedAnswer | None = None
    ) -> ResumedAnswer:
        """Send a message and return its `answer`; send it again until the server accepts it."""
        began = time.perf_counter()
        answer = ResumedAnswer(message_id) if answer is None else answer
        base = f"/v1/conversations/{conversation_id}/messages"
        body = json.dumps({"text": text, "message_id": message_id}).encode()
        try:
            async with asyncio.timeout(self._patience_seconds):
                while not answer.done and not answer.errors:
                    try:
                        await self._follow(answer, base, body, began)
                    except CUT:
                        answer.resumed += 1
                        await asyncio.sleep(AGAIN_SECONDS)
        except TimeoutError:
            answer.errors.append("no outcome in time")
        answer.seconds = time.perf_counter() - began
        return answer

    async def _follow(self, answer: ResumedAnswer, base: str, body: bytes, began: float) -> None:
        if answer.last_id:
            path, headers = f"{base}/{answer.message_id}/events", {"Last-Event-ID": answer.last_id}
            request = self._request("GET", path, b"", headers)
        else:
            request = self._request("POST", base, body, {"Content-Type": "application/json"})
        async with exchange(self._port, request) as (status, lines):
            if status == 503:
                raise ConnectionError("the server stops")
            if status != 200:
                answer.errors.append(f"status {status}")
                return
            fields: dict[str, str] = {}
            async for line in lines:
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                elif "event" in fields:
                    answer.first_seconds = answer.first_seconds or time.perf_counter() - began
                    _apply_event(answer, fields, time.perf_counter() - began)
                    fields = {}
        if not answer.done:
            raise ConnectionError("the stream was cut")

    def _request(self, method: str, path: str, body: bytes, more: Mapping[str, str]) -> bytes:
        headers = {
            "Host": f"127.0.0.1:{self._port}",
            "Accept": "text/event-stream",
            "Connection": "close",
            "Content-Length": str(len(body)),
            **self._headers,
            **more,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


@asynccontextmanager
async def exchange(port: int, request: bytes) -> AsyncIterator[tuple[int, AsyncIterator[str]]]:
    """Send a request; yield the status of its answer, and the lines of its body as they come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        status = int((await _line(reader)).split(b" ")[1])
        while await _line(reader):
            pass
        yield status, _body(reader)
    finally:
        writer.close()


async def _body(reader: asyncio.StreamReader) -> AsyncIterator[str]:
    left = b""
    while size := int(await _line(reader), 16):
        left += (await reader.readexactly(size + 2))[:-2]
        *lines, left = left.split(b"\n")
        for line in lines:
            yield line.decode()


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the answer was cut")
    return line.rstrip(b"\r\n")


def _apply_event(answer: ResumedAnswer, fields: Mapping[str, str], seconds: float) -> None:
    data = json.loads(fields["data"])
    answer.last_id = fields.get("id", answer.last_id)
    match fields["event"]:
        case "waiting":
            answer.waited = True
        case "stage":
            answer.stages.append(data["stage"])
        case "draft":
            answer.first_text_seconds = answer.first_text_seconds or seconds
        case "retracted":
            answer.retracted += len(data["sentences"])
        case "text":
            answer.text += data["text"]
            answer.first_text_seconds = answer.first_text_seconds or seconds
        case "done":
            answer.done.append(data)


ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "sms_platform"
START_SECONDS = 60


class Bench:
    """Starts processes of one desk."""

    def __init__(self, redis_url: str, data: Path, **settings: str) -> None:
        self.redis_url = redis_url
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "REDIS_URL": redis_url,
            "REFDESK_DATA": str(data),
            "DOMAIN_NAME": "SMS platform documentation",
            "DOMAIN_SCOPE": "setting up and running an SMS messaging platform",
            **settings,
        }

    def refdesk(self, *words: str) -> None:
        """Run a command to its end."""
        subprocess.run(
            self._command(words), env=self._environment, check=True, stdout=subprocess.DEVNULL
        )

    def start(self, *words: str, until: str) -> "tuple[subprocess.Popen[str], str]":
        """Start a process; return it and the line that says it is ready."""
        process = subprocess.Popen(
            self._command(words), env=self._environment, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None  # noqa: S101 - we asked for a pipe
        for line in process.stdout:
            if until in line:
                return process, line
        raise SystemExit(f"refdesk {' '.join(words)} ended before it said {until!r}")

    @contextmanager
    def running(self, *words: str, until: str) -> Iterator[str]:
        """Have a process while inside."""
        process, line = self.start(*words, until=until)
        try:
            yield line
        finally:
            process.terminate()
            process.wait(START_SECONDS)

    @staticmethod
    def _command(words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "deploy.cli.main", *words]
