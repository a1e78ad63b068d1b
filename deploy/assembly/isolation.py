"""Creates the handlers in child processes, for suspects; see `worker.isolation`."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from broker.embedded.endpoint import Endpoint
from broker.redis_broker import RedisBroker
from config.settings import Settings
from deploy.assembly.agent_factory import make_worker_specs
from deploy.logging_setup import configure_logging, secrets_of
from worker.agent_handler import make_poison_notice
from worker.isolation import Quarantine
from worker.port import Handler


def make_quarantine(
    roles: Collection[str], settings: Settings, endpoint: Endpoint, knowing: Collection[str]
) -> Quarantine:
    """Return the quarantine of a process that runs `roles`.

    Roles that need the index (`knowing`) are included only if the index is on a server: an embedded
    index belongs to this process alone, so that its suspects run here.
    """
    here = () if settings.qdrant_url is not None else knowing
    make = partial(make_handler, settings, endpoint, frozenset(knowing))
    return Quarantine(make, set(roles) - set(here), make_poison_notice, preload=[__name__])


@asynccontextmanager
async def warming(quarantine: Quarantine) -> AsyncIterator[None]:
    """Start the fork server while the block inside runs."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(quarantine.warm())
        yield


@asynccontextmanager
async def make_handler(
    settings: Settings, endpoint: Endpoint, knowing: Collection[str], role: str
) -> AsyncIterator[Handler]:
    """Provide the handler of a role; runs in the child process."""
    configure_logging(settings.log_level, secrets=secrets_of(settings))
    async with AsyncExitStack() as stack:
        knowledge = None
        if role in knowing:
            from deploy.assembly.knowledge import open_knowledge

            knowledge = await stack.enter_async_context(open_knowledge(settings))
        client = endpoint.client()
        stack.push_async_callback(client.aclose)
        # Drafts are written for the delivery that the parent holds; nothing else is sent from here.
        drafts = RedisBroker(client, shards=settings.shards).drafts
        specs = await make_worker_specs(
            settings, (role,), client, knowledge, stack, meter=None, drafts=drafts
        )
        yield specs[0].handler
