"""Does in one process what operators want of all workers."""

from collections.abc import Callable, Collection

import structlog

from memory.presence import WorkerControls

log = structlog.get_logger("worker")


class ProcessControls:
    """Pauses roles, sets the log level and reloads prompts, as operators requested.

    `level` is the log level if operators request none. `reload_prompts` returns why
    prompts cannot be used, which is logged; the previous ones stay in use.
    """

    def __init__(
        self,
        pause: Callable[[Collection[str]], None],
        set_level: Callable[[str], None],
        reload_prompts: Callable[[], str],
        *,
        level: str,
    ) -> None:
        self._pause = pause
        self._set_level = set_level
        self._level = level
        self._reload_prompts = reload_prompts
        self._before = WorkerControls()
        self._reloads: int | None = None

    def follow(self, controls: WorkerControls) -> None:
        """Do what the operators want; the prompts of the start need not be read again."""
        before, self._before = self._before, controls
        if controls.paused != before.paused:
            self._pause(controls.paused)
            log.info("roles_paused", roles=sorted(controls.paused))
        if controls.level != before.level:
            self._set_level(controls.level or self._level)
        if self._reloads not in (None, controls.reloads):
            self._reload()
        self._reloads = controls.reloads

    def _reload(self) -> None:
        if fault := self._reload_prompts():
            log.error("prompts_not_reloaded", error=fault)
        else:
            log.info("prompts_reloaded")
