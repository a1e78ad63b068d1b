"""Measures the HTTP gateway: concurrent conversations, a killed gateway, and added latency.

`python -m benchmarks.speed.gateway` starts a separate Redis, one worker process with offline agents
on the example documents, and one gateway process, and prints

- for 200 concurrent conversations of several messages each: errors, lost and duplicate outcomes,
  and the times to the first event and to the outcome;
- the same, with the gateway killed (SIGKILL) and restarted during the run;
- the latency that the gateway adds: a command over HTTP and over the broker, in alternation.

Lost and duplicate outcomes are counted by the clients and in the journals.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.speed.redis_server import private_redis
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from gateway.desk import Desk, Message

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
QUESTIONS = (
    "How do I configure SMS routing rules?",
    "What does error 4029 mean?",
    "How do I set it up?",
    "How do I rent a number?",
    "What will the weather be like tomorrow?",
)
CONVERSATIONS = 200
MESSAGES = 2
TURNS = 300
START_SECONDS = 60
KILL_AFTER = 0.3
"""The gateway is killed once this share of the messages has its outcome."""


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.gateway", description=__doc__)
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)
    parser.add_argument(
        "--messages", type=int, default=MESSAGES, help="the number of messages of each conversation"
    )
    parser.add_argument(
        "--turns", type=int, default=TURNS, help="the number of latency measurements"
    )
    chosen = parser.parse_args()
    with private_redis() as url, tempfile.TemporaryDirectory() as folder:
        bench = Bench(url, Path(folder))
        bench.refdesk("ingest", str(EXAMPLES))
        with bench.running("up", until="working as every role"):
            print(f"{chosen.conversations} conversations at once, {chosen.messages} messages each")
            for killed in (False, True):
                asyncio.run(crowd(bench, chosen.conversations, chosen.messages, killed=killed))
            with bench.run_gateway() as port:
                asyncio.run(latency(url, port, chosen.turns))
    return 0


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

    @contextmanager
    def run_gateway(self, port: int = 0) -> Iterator[int]:
        """Have a gateway process while inside; yields its port."""
        with self.running(
            "serve", "--gateway-only", "--port", str(port), until="serving on"
        ) as line:
            yield int(line.split(";")[0].rsplit(":", 1)[1])

    @staticmethod
    def _command(words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "deploy.cli.main", *words]


async def crowd(bench: Bench, conversations: int, messages: int, *, killed: bool) -> None:
    """Let them all talk at once; print the result."""
    with ExitStack() as servers:
        process, line = bench.start("serve", "--gateway-only", "--port", "0", until="serving on")
        port = int(line.split(";")[0].rsplit(":", 1)[1])
        client = ResumingClient(port, patience_seconds=300)
        answers: list[ResumedAnswer] = []
        midway = asyncio.Event()
        run = uuid4().hex[:6]
        began = time.perf_counter()

        async def driver(number: int) -> None:
            for turn in range(messages):
                text = QUESTIONS[(number + turn) % len(QUESTIONS)]
                name = f"{run}-{number}"
                answers.append(await client.ask(name, f"{name}-{turn}", text))
                if len(answers) >= conversations * messages * KILL_AFTER:
                    midway.set()

        async def kill() -> None:
            await midway.wait()
            process.kill()
            process.wait()
            await asyncio.to_thread(servers.enter_context, bench.run_gateway(port))

        async with asyncio.TaskGroup() as tasks:
            for number in range(conversations):
                tasks.create_task(driver(number))
            if killed:
                tasks.create_task(kill())
        seconds = time.perf_counter() - began
        process.terminate()
        process.wait()
    doubled = await count_doubled(bench.redis_url, answers)
    _print_crowd(answers, seconds, doubled, killed=killed)


async def count_doubled(url: str, answers: Sequence[ResumedAnswer]) -> int:
    """Count the messages whose journals do not hold exactly one outcome."""
    broker = RedisBroker(connect(url))
    wrong = 0
    for one in answers:
        found = await broker.admin.find_questions(one.message_id)
        journals = [await broker.replies.read_journal(question) for question in found]
        ends = [entry for journal in journals for entry in journal if entry.kind == "finished"]
        wrong += len(ends) != 1
    await broker.close()
    return wrong


def _print_crowd(
    answers: Sequence[ResumedAnswer], seconds: float, wrong: int, *, killed: bool
) -> None:
    first = sorted(one.first_seconds for one in answers if one.first_seconds)
    whole = sorted(one.seconds for one in answers)
    errors = [error for one in answers for error in one.errors]
    broken = sum(one.text != one.done[0]["text"] for one in answers if one.done)
    print(f"\n{'gateway killed in the middle' if killed else 'undisturbed'}")
    print(
        f"  messages            {len(answers)} in {seconds:.1f} s ({len(answers) / seconds:.0f}/s)"
    )
    print(f"  errors              {len(errors)} {sorted(set(errors))}")
    print(f"  lost                {sum(not one.done for one in answers)}")
    print(f"  doubled             {sum(len(one.done) > 1 for one in answers)}")
    print(f"  texts not whole     {broken}")
    print(f"  journals not of one {wrong}")
    print(f"  resumed             {sum(one.resumed > 0 for one in answers)} messages")
    print(f"  waited for admission{sum(one.waited for one in answers)} messages")
    print(f"  first event         p50 {_at(first, 50):.0f} ms, p95 {_at(first, 95):.0f} ms")
    print(f"  outcome             p50 {_at(whole, 50):.0f} ms, p95 {_at(whole, 95):.0f} ms")


def _at(times: Sequence[float], percent: int) -> float:
    return times[min(len(times) - 1, len(times) * percent // 100)] * 1000 if times else 0.0


async def latency(url: str, port: int, turns: int) -> None:
    """Ask the same over the broker and over HTTP, in turns; print what HTTP adds."""
    broker = RedisBroker(connect(url))
    desk = Desk(
        broker.producer,
        broker.replies,
        tenant="default",
        assistant="default",
        channel="bench",
        deadline_seconds=60,
        words=lambda _key, _language: "",
    )
    direct, http = [], []
    for turn in range(turns + 20):
        name = f"latency-{turn}-{uuid4().hex[:6]}"
        began = time.perf_counter()
        await desk.ask(Message("/help", name, "a", "help"))
        between = time.perf_counter()
        await _over_http(port, name)
        if turn >= 20:
            direct.append(between - began)
            http.append(time.perf_counter() - between)
    await broker.close()
    over_broker, over_http = statistics.median(direct) * 1000, statistics.median(http) * 1000
    print(f"\none command, {turns} times in turns, medians")
    print(f"  over the broker     {over_broker:.2f} ms")
    print(f"  over HTTP           {over_http:.2f} ms")
    print(f"  added               {over_http - over_broker:.2f} ms")


async def _over_http(port: int, name: str) -> None:
    body = b'{"text":"/help","message_id":"b"}'
    request = (
        f"POST /v1/conversations/{name}/messages HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    ).encode() + body
    async with exchange(port, request) as (status, _):
        if status != 200:
            raise SystemExit(f"expected an answer, found status {status}")


if __name__ == "__main__":
    sys.exit(main())
