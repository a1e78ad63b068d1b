"""Puts a handler together in a process of its own, for suspects; see `worker.quarantine`."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from broker.embedded import Endpoint
from config.settings import Settings
from deploy.logging_setup import configure_logging, secrets_of
from deploy.recording import HopCalls
from deploy.staff import handlers
from worker.agent_handler import told_of_poison
from worker.port import Handler
from worker.process import Staffing
from worker.quarantine import Quarantine, Quarantined


def made_quarantine(
    roles: Collection[str], settings: Settings, endpoint: Endpoint, knowing: Collection[str]
) -> Quarantine:
    """Return the quarantine of a process that works for `roles`.

    Of the roles that need the index (`knowing`) only where it is a server's: the embedded one
    belongs to this process alone, and their suspects run here.
    """
    here = () if settings.qdrant_url is not None else knowing
    make = partial(made_handler, settings, endpoint, frozenset(knowing))
    return Quarantine(make, set(roles) - set(here), told_of_poison, preload=[__name__])


def with_quarantine(
    staffing: Sequence[Staffing], quarantine: Quarantine, calls: HopCalls
) -> list[Staffing]:
    """Return the staffing with handlers that run their suspects in quarantine.

    `calls` counts what the suspects asked of models.
    """
    return [
        replace(one, handler=Quarantined(one.handler, quarantine, calls.heard))
        if one.handler.role.value in quarantine.roles
        else one
        for one in staffing
    ]


@asynccontextmanager
async def warming(quarantine: Quarantine) -> AsyncIterator[None]:
    """Get ready for the first suspect while something else is done inside."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(quarantine.warm())
        yield


@asynccontextmanager
async def made_handler(
    settings: Settings, endpoint: Endpoint, knowing: Collection[str], role: str
) -> AsyncIterator[Handler]:
    """Make the handler of a role while inside."""
    configure_logging(settings.log_level, secrets=secrets_of(settings))
    async with AsyncExitStack() as stack:
        knowledge = None
        if role in knowing:
            from deploy.knowledge import opened_knowledge

            knowledge = await stack.enter_async_context(opened_knowledge(settings))
        client = endpoint.client()
        stack.push_async_callback(client.aclose)
        staffing = await handlers(settings, (role,), client, knowledge, stack, meter=None)
        yield staffing[0].handler
