"""Requests as bytes, valid ones of every route and mutations of them; seeded.

Nothing here knows HTTP well enough to be polite: lengths lie, lines end in the middle, two kinds of
framing occur in one request, and bytes are flipped, cut, doubled and put in.
"""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.gateway.hostile.values import ODD, bent
from tests.support.waiting import within

FORESEEN = frozenset({503, 504})
"""Statuses from 500 on that are documented: something is away, or full."""
LEAKS = (
    b"Traceback", b"site-packages", b'File "', b"/gateway/", b".py", b"rd:{", b"pydantic",
)  # fmt: skip
IDLE_SECONDS = 0.3
"""A server that is silent for so long waits for the rest of a broken request."""
READ_SECONDS = 20.0
"""So long a whole request waits for the first byte of its answer, on a slow machine too."""
CANARY = "marimba"
"""A word in every body, query and header that is sent: no error repeats it."""
PATHS = (
    "/v1/conversations", "/v1/conversations/c1", "/v1/conversations/c1/messages",
    "/v1/conversations/c1/messages/m1/events", "/v1/conversations/c1/messages/m1/cancel",
    "/v1/conversations/c1/messages/m1/feedback", "/v1/chat/completions", "/v1/models",
    "/v1/models/docs", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/documents/x",
    f"/v1/{CANARY}", f"/v1/conversations/c1?assistant={CANARY}", "/", "*",
)  # fmt: skip
ROUTES: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("POST", "/v1/conversations", {}),
    ("POST", "/v1/conversations/c1/messages", {"text": "/help", "message_id": "m1"}),
    ("POST", "/v1/conversations/c1/messages", {"text": "/help", "language": "en"}),
    ("POST", "/v1/conversations/c1/messages/m1/feedback", {"rating": "up", "reason": CANARY}),
    ("POST", "/v1/conversations/c1/messages/m1/cancel", {}),
    ("GET", "/v1/conversations/c1/messages/m1/events", {}),
    ("GET", "/v1/conversations/c1", {}),
    ("GET", "/v1/models/docs", {}),
    ("DELETE", "/v1/conversations/c2", {}),
    ("POST", "/v1/chat/completions",
     {"model": "docs", "messages": [{"role": "user", "content": "/help"}], "stream": True}),
)  # fmt: skip
METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PRI")
BODIES: tuple[dict[str, object], ...] = (
    {"text": "/help", "message_id": "m1", "language": "en"},
    {"rating": "up", "reason": CANARY},
    {"model": "docs", "messages": [{"role": "user", "content": "/help"}], "stream": False, "n": 1,
     "stream_options": {"include_usage": True}, "conversation_id": "c1"},
)  # fmt: skip
PIECES = (
    b"\x00", b"\r\n", b"\n", b"\r", b"\xff\xfe", b" ", b"\t", b":", b"%00", b"%ff", b"../",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding:\x0bchunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding: identity\r\n",
    b"Content-Length: 0\r\n", b"Content-Length: 5\r\n", b"Content-Length: +5\r\n",
    b"Content-Length: 99999999999999999999\r\n", b"Content-Length: 0x10\r\n",
    b"Expect: 100-continue\r\n", b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
    b"Host: b\r\n", b"X: " + b"a" * 9_000 + b"\r\n", b" folded\r\n", b"0\r\n\r\n",
    b"5\r\nhello\r\n",
    b"ffffffffffffffff\r\n", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"HTTP/0.9", b"HTTP/3.0",
    b"X-Forwarded-For: 1\r\n", b"Last-Event-ID: 1-1.1\r\n", b"Accept: text/event-stream\r\n",
    b"Origin: null\r\n", b"Idempotency-Key: \xc3\xa9\r\n", b"X-Request-Id: a\tb\r\n",
)  # fmt: skip


@dataclass
class Verdict:
    """What the answers were, and what is wrong with them."""

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def requests(count: int, *, seed: int, token: str) -> Iterator[tuple[bytes, bool]]:
    """Yield that many requests, the same for the same seed, and whether each is a whole one."""
    chance = random.Random(seed)
    for number in range(count):
        made = _right(chance, token)
        is_whole = number % 4 == 0
        if not is_whole:
            for _ in range(chance.choice((1, 1, 2, 4))):
                made = chance.choice(MUTATIONS)(made, chance)
        yield made, is_whole


def _right(chance: random.Random, token: str) -> bytes:
    """A request that is framed well; what it says may be odd."""
    method, path, value = chance.choice(ROUTES)
    if chance.random() < 0.2:
        method, path = chance.choice(METHODS), chance.choice(PATHS)
    body = b""
    if value or method in {"PUT", "PATCH"}:
        value = value or chance.choice(BODIES)
        body = json.dumps(bent(value, chance) if chance.random() < 0.7 else value).encode()
    key = token if chance.random() < 0.8 else f"refdesk_secret_{CANARY}"
    headers = [
        "Host: 127.0.0.1", f"Authorization: Bearer {key}", "Content-Type: application/json",
        "Connection: close", f"X-Odd: {CANARY}",
    ]  # fmt: skip
    if body:
        headers.append(f"Content-Length: {len(body)}")
    if chance.random() < 0.1:
        headers.append(f"Idempotency-Key: {str(chance.choice(ODD))[:50]!r}")
    head = "\r\n".join([f"{method} {path} HTTP/1.1", *headers])
    return head.encode("latin-1", "replace") + b"\r\n\r\n" + body


def _flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return (data[:at] + data[at + chance.randrange(1, 40) :]) or b"\r\n"


def _end(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(1, len(data) + 1)]


def _put_in(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + chance.choice(PIECES) + data[at:]


def _put_in_line(data: bytes, chance: random.Random) -> bytes:
    ends = [found.end() for found in re.finditer(rb"\r\n", data)]
    at = chance.choice(ends) if ends else 0
    return data[:at] + chance.choice(PIECES) + data[at:]


def _double(data: bytes, chance: random.Random) -> bytes:
    return data.replace(b"Connection: close\r\n", b"", 1) * chance.randrange(2, 5)


def _bare(data: bytes, _chance: random.Random) -> bytes:
    return data.replace(b"\r\n", b"\n")


def _noise(data: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(1, 200)) + data[: chance.randrange(len(data))]


MUTATIONS = (_flip, _cut, _end, _put_in, _put_in_line, _put_in_line, _double, _bare, _noise)


async def send_all(
    port: int, count: int, *, seed: int, token: str, secrets: tuple[str, ...], at_once: int = 32
) -> Verdict:
    """Send that many requests, each over a new connection, and judge every answer."""
    verdict = Verdict()
    waiting = requests(count, seed=seed, token=token)

    async def send() -> None:
        for data, is_whole in waiting:
            answer = await _exchange(port, data, is_whole=is_whole)
            _judge(verdict, data, answer, (*secrets, token))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(send())
    return verdict


async def _exchange(port: int, data: bytes, *, is_whole: bool) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer, patience_seconds = b"", READ_SECONDS if is_whole else IDLE_SECONDS
    try:
        writer.write(data)
        async with within(READ_SECONDS):
            while piece := await _piece(reader, patience_seconds):
                answer, patience_seconds = answer + piece, IDLE_SECONDS
    except (ConnectionError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
    return answer


async def _piece(reader: asyncio.StreamReader, patience_seconds: float) -> bytes:
    """Return what comes next; nothing once the server is silent: it waits for more."""
    try:
        async with asyncio.timeout(patience_seconds):
            return await reader.read(65_536)
    except TimeoutError:
        return b""


def _judge(verdict: Verdict, data: bytes, answer: bytes, secrets: tuple[str, ...]) -> None:
    verdict.sent += 1
    statuses = [int(found) for found in re.findall(rb"(?:^|\n|\})HTTP/1\.1 (\d{3}) ", answer)]
    verdict.statuses.update(statuses)
    unforeseen = [status for status in statuses if status >= 500 and status not in FORESEEN]
    described = b"/openapi.json" in data
    leaks = [leak for leak in LEAKS if leak in answer and not described]
    leaked = [word for word in secrets if word.encode() in answer]
    repeated = CANARY.encode() in answer and not any(status < 400 for status in statuses)
    if unforeseen or leaks or leaked or repeated:
        found = f"{unforeseen} {leaks} {len(leaked)} secrets, repeated: {repeated}"
        verdict.wrong.append(f"{found}: {data[:400]!r} -> {answer[:600]!r}")
