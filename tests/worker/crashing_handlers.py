"""Handlers that are made inside a quarantine's child, each of which ends in its own way."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from broker.values import Delivery, Fields, Finish, JournalEntry, Settlement
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.role import Role
from memory.errors import MemoryUnavailableError
from worker.errors import RunFailedError


class Suspect:
    """Does what the text of its envelope says, and notes each start in a file."""

    role = Role.SEARCH

    def __init__(self, notes: str) -> None:
        self._notes = Path(notes)

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        with self._notes.open("a") as notes:
            notes.write(f"{os.getpid()}\n")
        match envelope.payload["text"]:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(3)
            case "raise":
                journal = (JournalEntry("model_call", {"model": "m"}),)
                raise RunFailedError(ValueError("no such page"), journal)
            case "away":
                raise MemoryUnavailableError("Redis does not answer")
            case "hang":
                await asyncio.Event().wait()
            case "time":
                left: Fields = {"outcome": "answered", "seconds": delivery.remaining_seconds}
                return Finish(Outcome.ANSWERED, left)
        return Finish(Outcome.ANSWERED, {"outcome": "answered", "pid": os.getpid()})


@asynccontextmanager
async def suspect(notes: str, _role: str) -> AsyncIterator[Suspect]:
    yield Suspect(notes)


def nobody(_role: str) -> AbstractAsyncContextManager[Suspect]:
    raise LookupError("expected an open index for this role, found none")
