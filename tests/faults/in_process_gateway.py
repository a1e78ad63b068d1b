"""A client in a worker's process, where submissions are handed to the manager there.

Whoever asks here writes a submission to the process's socket, and reads the result. When the
process dies, stands still or loses Redis meanwhile, the same message is asked again elsewhere.
"""

import asyncio
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

from broker.errors import BrokerUnavailableError
from broker.ports import Broker
from broker.values import Accepted, Busy, Duplicate, Submission

ANSWER_SECONDS = 1.0
"""How long a stopped process is waited for; it submits its requests when it goes on."""


def front_of(ledger: str | Path, pid: int) -> Path:
    """Return the socket of a worker process."""
    return Path(ledger).with_name(f"{pid}.s")


@asynccontextmanager
async def front(broker: Broker, path: Path) -> AsyncIterator[None]:
    """Submit what is asked at this socket while inside; what was begun is ended."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            asked = await reader.read()
            # Without an answer it is asked again, as where the process had died.
            with suppress(BrokerUnavailableError):
                if asked:
                    submission: Submission = pickle.loads(asked)  # noqa: S301 - from our own socket
                    writer.write(pickle.dumps(await broker.producer.submit(submission)))

    async with asyncio.TaskGroup() as under_way:
        server = await asyncio.start_unix_server(
            lambda reader, writer: under_way.create_task(serve(reader, writer)), path
        )
        try:
            yield
        finally:
            server.close()


async def through(path: Path, submission: Submission) -> Accepted | Duplicate | Busy:
    """Submit at a process's socket; raises `BrokerUnavailableError` when no answer comes."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(pickle.dumps(submission))
                writer.write_eof()
                answer = await reader.read()
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        raise BrokerUnavailableError(f"the client of {path.name} does not answer") from error
    if not answer:
        raise BrokerUnavailableError(f"the client of {path.name} ended")
    found: Accepted | Duplicate | Busy = pickle.loads(answer)  # noqa: S301 - from our own socket
    return found
