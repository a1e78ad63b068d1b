"""Starts an MCP server as a process and exchanges messages with it: one a line.

The transport of the `mcp` package gives a server parts of our environment and reads lines of any
length; this one gives it nothing but what the operator names, and ends a server that floods. The
process and its children never survive: they are a process group, which is killed at the end.
"""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter

from tools.errors import ToolFailed
from tools.outside.foreign_text import clean_line

MOST_MESSAGE_BYTES = 4_000_000
MOST_UNASKED = 1_000
"""Messages that a server may send between two answers."""
GRACE_SECONDS = 1.0
_LAST_WORDS = 2_000
_PIECE = 4_096
_DIES_WITH_PARENT = (
    "import ctypes,os,sys;ctypes.CDLL(None).prctl(1,9);"
    "os.execve(sys.argv[1],sys.argv[1:],os.environ)"
)
"""Linux kills the server when this process dies, also where it could not say goodbye."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@dataclass(slots=True)
class ServerEnd:
    """How a server process ended: `reason` is empty while it runs."""

    reason: str = ""
    last_words: str = field(default="", repr=False)
    """The end of what it wrote to its standard error; for the log."""


@asynccontextmanager
async def open_process(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: Path | None,
    end: ServerEnd,
) -> AsyncIterator[Streams]:
    """Yield the streams of a server that runs inside the block; raises `ToolFailed`."""
    process = await _start(command, environment, directory)
    inward, received = anyio.create_memory_object_stream[Incoming](0)
    sent, outward = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_read(process, inward, end)),
                group.create_task(_write(process, outward)),
                group.create_task(_listen(process, end)),
            ]
            try:
                yield received, sent
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        for stream in (inward, received, sent, outward):
            stream.close()
        await _stop(process)


async def _start(
    command: Sequence[str], environment: Mapping[str, str], directory: Path | None
) -> asyncio.subprocess.Process:
    program = shutil.which(command[0], path=environment.get("PATH", os.environ.get("PATH")))
    if program is None:
        raise ToolFailed(f"expected a program {command[0]!r}, found none")
    arguments = [program, *command[1:]]
    if sys.platform.startswith("linux"):
        arguments = [sys.executable, "-I", "-S", "-c", _DIES_WITH_PARENT, *arguments]
    try:
        return await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,
            limit=MOST_MESSAGE_BYTES,
        )
    except (OSError, ValueError) as error:
        raise ToolFailed(f"the program {command[0]!r} cannot be started: {error}") from error


async def _read(
    process: asyncio.subprocess.Process, inward: MemoryObjectSendStream[Incoming], end: ServerEnd
) -> None:
    """Pass the messages of the server on, until it ends or floods."""
    output, unasked = _pipe(process.stdout), 0
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with inward:
            while not end.reason:
                try:
                    line = await output.readline()
                except ValueError:
                    end.reason = f"it sent a message of more than {MOST_MESSAGE_BYTES} bytes"
                    break
                if not line:
                    end.reason = "it ended"
                    break
                message = _parse(line)
                is_answer = message is not None and not isinstance(
                    message.message, JSONRPCNotification | JSONRPCRequest
                )
                unasked = 0 if is_answer else unasked + 1
                if unasked > MOST_UNASKED:
                    end.reason = f"it sent more than {MOST_UNASKED} messages that nobody asked for"
                elif message is not None:
                    await inward.send(message)


def _parse(line: bytes) -> SessionMessage | None:
    """Return the message of a line; None for anything else, which some servers print."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


async def _write(
    process: asyncio.subprocess.Process, outward: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    if process.stdin is None:
        raise ToolFailed("expected an input of the server, found none")
    with suppress(ConnectionError, anyio.ClosedResourceError):
        async for item in outward:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()


async def _listen(process: asyncio.subprocess.Process, end: ServerEnd) -> None:
    """Keep the end of the standard error, so that the server never waits for a reader."""
    errors, kept = _pipe(process.stderr), b""
    while piece := await errors.read(_PIECE):
        kept = (kept + piece)[-_LAST_WORDS:]
        end.last_words = clean_line(kept.decode("utf-8", "replace"), _LAST_WORDS)


def _pipe(stream: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if stream is None:
        raise ToolFailed("expected an output of the server, found none")
    return stream


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Let the server end by itself for a moment, then kill it and all that it started."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
