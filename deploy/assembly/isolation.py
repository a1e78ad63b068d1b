"""Puts a handler together in a process of its own, for suspects; see `worker.isolation`."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from broker.embedded.endpoint import Endpoint
from config.settings import Settings
from deploy.assembly.agent_factory import make_worker_specs
from deploy.logging_setup import configure_logging, secrets_of
from worker.agent_handler import make_poison_notice
from worker.isolation import Quarantine
from worker.port import Handler


def make_quarantine(
    roles: Collection[str], settings: Settings, endpoint: Endpoint, knowing: Collection[str]
) -> Quarantine:
    """Return the quarantine of a process that works for `roles`.

    Of the roles that need the index (`knowing`) only where it is a server's: the embedded one
    belongs to this process alone, and their suspects run here.
    """
    here = () if settings.qdrant_url is not None else knowing
    make = partial(make_handler, settings, endpoint, frozenset(knowing))
    return Quarantine(make, set(roles) - set(here), make_poison_notice, preload=[__name__])


@asynccontextmanager
async def warming(quarantine: Quarantine) -> AsyncIterator[None]:
    """Get ready for the first suspect while something else is done inside."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(quarantine.warm())
        yield


@asynccontextmanager
async def make_handler(
    settings: Settings, endpoint: Endpoint, knowing: Collection[str], role: str
) -> AsyncIterator[Handler]:
    """Make the handler of a role while inside."""
    configure_logging(settings.log_level, secrets=secrets_of(settings))
    async with AsyncExitStack() as stack:
        knowledge = None
        if role in knowing:
            from deploy.assembly.knowledge import open_knowledge

            knowledge = await stack.enter_async_context(open_knowledge(settings))
        client = endpoint.client()
        stack.push_async_callback(client.aclose)
        specs = await make_worker_specs(settings, (role,), client, knowledge, stack, meter=None)
        yield specs[0].handler
