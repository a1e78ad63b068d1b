"""A client that follows an answer across restarts of the server."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

AGAIN_SECONDS = 0.1
CUT = (ConnectionError, asyncio.IncompleteReadError, OSError)


@dataclass
class ResumedAnswer:
    """What one message brought, with each `done`."""

    message_id: str
    resumed: int = 0
    last_id: str = ""
    stages: list[str] = field(default_factory=list)
    text: str = ""
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
        answer = ResumedAnswer(message_id) if answer is None else answer
        base = f"/v1/conversations/{conversation_id}/messages"
        body = json.dumps({"text": text, "message_id": message_id}).encode()
        try:
            async with asyncio.timeout(self._patience_seconds):
                while not answer.done and not answer.errors:
                    try:
                        await self._follow(answer, base, body)
                    except CUT:
                        answer.resumed += 1
                        await asyncio.sleep(AGAIN_SECONDS)
        except TimeoutError:
            answer.errors.append("no outcome in time")
        return answer

    async def _follow(self, answer: ResumedAnswer, base: str, body: bytes) -> None:
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
                    _apply_event(answer, fields)
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


def _apply_event(answer: ResumedAnswer, fields: Mapping[str, str]) -> None:
    data = json.loads(fields["data"])
    answer.last_id = fields.get("id", answer.last_id)
    match fields["event"]:
        case "stage":
            answer.stages.append(data["stage"])
        case "text":
            answer.text += data["text"]
        case "done":
            answer.done.append(data)
