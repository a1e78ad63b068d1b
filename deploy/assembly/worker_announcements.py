"""Announces periodically that a worker process is alive, and follows the operators' controls."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import structlog

from config.errors import PromptError
from config.settings import Settings
from deploy.assembly.assistant_prompts import PromptFolders
from deploy.logging_setup import configure_logging, secrets_of
from memory.errors import MemoryUnavailableError
from memory.presence import WorkerControls

ANNOUNCE_SECONDS = 5.0
LEAVE_SECONDS = 2.0
"""How long a process that ends tries to remove its announcement, which expires otherwise."""

log = structlog.get_logger("worker")


class Presence(Protocol):
    """Stores the announcement of one process; its methods raise `MemoryUnavailableError`."""

    async def announce(self, paused: Sequence[str]) -> WorkerControls:
        """Announce that the process is alive, and which of its roles are paused."""
        ...

    async def leave(self) -> None:
        """Remove the announcement."""
        ...


class FollowsControls(Protocol):
    """A process that operators can control."""

    @property
    def paused_roles(self) -> Sequence[str]:
        """The roles that take no entries at present."""
        ...

    def follow(self, controls: WorkerControls) -> None:
        """Apply the controls of the operators; called with each announcement."""
        ...


class PausableProcess(Protocol):
    """The part of a worker process that is controlled."""

    @property
    def paused_roles(self) -> Sequence[str]:
        """The roles that take no entries at present."""
        ...

    def pause(self, roles: Collection[str]) -> None:
        """Let these roles take no more entries, and all others take them."""
        ...


class ProcessControls:
    """Pauses roles, sets the log level and reloads prompts, as operators requested. If prompts
    cannot be used, this is logged, and the previous ones stay in use.
    """

    def __init__(
        self, process: PausableProcess, prompts: PromptFolders, settings: Settings
    ) -> None:
        self._process = process
        self._prompts = prompts
        self._settings = settings
        self._before = WorkerControls()
        self._reloads: int | None = None

    @property
    def paused_roles(self) -> Sequence[str]:
        """The roles that take no entries at present."""
        return self._process.paused_roles

    def follow(self, controls: WorkerControls) -> None:
        """Do what the operators want; the prompts of the start need not be read again."""
        before, self._before = self._before, controls
        if controls.paused != before.paused:
            self._process.pause(controls.paused)
            log.info("roles_paused", roles=sorted(controls.paused))
        if controls.level != before.level:
            level = controls.level or self._settings.log_level
            configure_logging(level, secrets=secrets_of(self._settings))
        if self._reloads not in (None, controls.reloads):
            self._reload()
        self._reloads = controls.reloads

    def _reload(self) -> None:
        try:
            self._prompts.reload()
        except PromptError as error:
            log.error("prompts_not_reloaded", error=str(error))
        else:
            log.info("prompts_reloaded")


@asynccontextmanager
async def announcing(
    presence: Presence, controls: FollowsControls, *, every_seconds: float = ANNOUNCE_SECONDS
) -> AsyncIterator[None]:
    """Announce a process inside the context, follow the controls, and remove it at the end.

    An unreachable Redis is logged and has no other effect.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            announcements = tasks.create_task(_announce(presence, controls, every_seconds))
            try:
                yield
            finally:
                announcements.cancel()
    finally:
        await _leave(presence)


async def _announce(presence: Presence, controls: FollowsControls, every_seconds: float) -> None:
    while True:
        try:
            controls.follow(await presence.announce(controls.paused_roles))
        except MemoryUnavailableError as error:
            # The workers already log that Redis is unreachable.
            log.debug("worker_heartbeat_failed", error=str(error))
        await asyncio.sleep(every_seconds)


async def _leave(presence: Presence) -> None:
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            await presence.leave()
    except (MemoryUnavailableError, TimeoutError) as error:
        log.debug("worker_heartbeat_failed", error=str(error))
