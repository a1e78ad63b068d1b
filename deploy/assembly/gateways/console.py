"""Assembles the console, and what it shows to programs."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deploy.assembly.gap_finding import finding_gaps
from deploy.assembly.runtime import Runtime, desks
from envelope.question import CONSOLE
from gateway.console.again import Again
from gateway.console.frame import Frame
from gateway.console.gap_pages import GapPages
from gateway.console.routes import console_router
from gateway.http.context import HttpChannel
from gateway.http.middleware import HasSession
from gateway.http.routes.gaps import gaps_router
from memory.console_state import RedisConsoleSessions

if TYPE_CHECKING:
    from fastapi import APIRouter
    from redis.asyncio import Redis

    from records.store import RecordStore


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the HTTP application has of the console: its routes, and who may send it a form."""

    has_session: HasSession
    routers: "Sequence[APIRouter]"


@asynccontextmanager
async def open_console(
    runtime: Runtime,
    channel: HttpChannel,
    client: "Redis",
    records: "RecordStore | None",
    unavailable: tuple[type[Exception], ...],
) -> AsyncIterator["ConsoleParts"]:
    """Provide the console."""
    settings = runtime.settings
    frame = Frame(
        RedisConsoleSessions(client),
        records,
        assistants=[(one.tenant, one.assistant) for one in settings.of_assistants()],
        records_days=settings.records_days,
        unavailable=unavailable,
    )
    again = Again(desks(runtime, CONSOLE), runtime.broker.replies)
    if records is None:
        yield ConsoleParts(frame.has_session, [console_router(frame)])
        return
    embedder = None if runtime.knowledge is None else runtime.knowledge.embedder
    async with finding_gaps(settings, records, embedder) as gaps:
        routers = [
            console_router(frame),
            GapPages(frame, gaps, again).router(),
            gaps_router(channel, gaps),
        ]
        yield ConsoleParts(frame.has_session, routers)
