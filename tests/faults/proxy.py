"""A bad line to Redis: it can lose replies, break, be slow, or swallow everything both ways.

It runs in a thread with a separate loop, so that a test whose loop is busy has a line all the
same.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

READ_BYTES = 65_536
RESET = struct.pack("ii", 1, 0)
"""Lingering for no second: closing sends RST instead of FIN."""


@dataclass(slots=True)
class Loss:
    """Which replies are lost: those to the next `left` requests in which `word` stands."""

    word: bytes
    left: int


class ProxiedConnection:
    """One connection through the proxy."""

    def __init__(self, proxy: "Proxy", near: asyncio.StreamWriter, far: asyncio.StreamWriter):
        self._proxy = proxy
        self.near = near
        self.far = far
        self.loses_reply = False
        self.mute = False

    async def carry_requests(self, reader: asyncio.StreamReader) -> None:
        """Carry what the client says until it hangs up."""
        while data := await reader.read(READ_BYTES):
            await self._proxy.delay()
            if self.swallows():
                continue
            self.loses_reply = self.loses_reply or self._proxy.loses_reply_to(data)
            self.far.write(data)
            await self.far.drain()

    async def carry_replies(self, reader: asyncio.StreamReader) -> None:
        """Carry what Redis says until it hangs up."""
        while data := await reader.read(READ_BYTES):
            await self._proxy.delay()
            if self.swallows():
                continue
            if self.loses_reply:
                self._proxy.lost += 1
                return
            self.near.write(data)
            await self.near.drain()

    def swallows(self) -> bool:
        """Whether bytes vanish here; a connection that lost some stays mute."""
        self.mute = self.mute or self._proxy.parted
        return self.mute

    def reset(self) -> None:
        """Break it without a goodbye."""
        for writer in (self.near, self.far):
            found: socket.socket | None = writer.get_extra_info("socket")
            if found is not None and found.family != socket.AF_UNIX:
                with suppress(OSError):  # of a line that the other end has closed already
                    found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()


class Proxy:
    """Stands between clients and one Redis, which answers at a socket or at host and port."""

    def __init__(self, target: Path | tuple[str, int]) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._lines: set[ProxiedConnection] = set()
        self._loss: Loss | None = None
        self._server: asyncio.Server | None = None
        self._port = 0
        self.parted = False
        self.seconds = 0.0
        self.lost = 0

    def __enter__(self) -> "Proxy":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        """Where clients reach Redis through this line."""
        return f"redis://127.0.0.1:{self._port}"

    def lose_replies(self, word: str, times: int = 1) -> None:
        """Let requests with this word through, and break the line when they are answered."""
        self._loss = Loss(word.encode(), times)

    def reset(self) -> None:
        """Break every line; new ones may be made."""
        self._now(self._reset)

    def slow(self, seconds: float) -> None:
        """Hold everything up for so long, each way."""
        self.seconds = seconds

    def part(self) -> None:
        """Swallow everything both ways, and hang up on nobody."""
        self.parted = True

    def heal(self) -> None:
        """Carry again; lines on which something was swallowed stay half-open and mute."""
        self.parted = False

    def freeze(self) -> int:
        """Make the lines that exist mute and half-open; return how many they are."""
        lines = list(self._lines)
        for line in lines:
            line.mute = True
        return len(lines)

    async def delay(self) -> None:
        """Wait as long as the line is slow."""
        if self.seconds:
            await asyncio.sleep(self.seconds)  # noqa: TID251 - the connection is slow

    def loses_reply_to(self, data: bytes) -> bool:
        """Whether the reply to this request gets lost; counts it."""
        loss = self._loss
        if loss is None or loss.left < 1 or loss.word not in data:
            return False
        loss.left -= 1
        return True

    def _now(self, act: Callable[[], None]) -> None:
        async def done() -> None:
            act()

        asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def _reset(self) -> None:
        for line in list(self._lines):
            line.reset()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, near_reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        try:
            far_reader, far = await self._reach()
        except OSError:
            near.transport.abort()
            return
        line = ProxiedConnection(self, near, far)
        self._lines.add(line)
        with suppress(OSError, ExceptionGroup):
            await self._carry(line, near_reader, far_reader)
        self._lines.discard(line)
        line.reset()
        for writer in (near, far):
            with suppress(OSError):
                await writer.wait_closed()

    async def _carry(
        self, line: ProxiedConnection, near: asyncio.StreamReader, far: asyncio.StreamReader
    ) -> None:
        """Carry until either side has hung up."""
        async with asyncio.TaskGroup() as tasks:
            ways = [
                tasks.create_task(line.carry_requests(near)),
                tasks.create_task(line.carry_replies(far)),
            ]
            _, others = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for other in others:
                other.cancel()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, Path):
            return await asyncio.open_unix_connection(str(self._target))
        return await asyncio.open_connection(*self._target)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        # Who was just let in is seen off as well.
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            self._reset()
            await asyncio.gather(*others, return_exceptions=True)
