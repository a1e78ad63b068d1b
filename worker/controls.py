"""Applies operator controls, which are set for all workers, to this process."""

from collections.abc import Callable, Collection

import structlog

from memory.presence import WorkerControls

log = structlog.get_logger("worker")


class ProcessControls:
    """Pauses roles, sets the log level and reloads prompts when an operator requests it.

    `level` is the default log level. `reload_prompts` returns an error message if the new prompts
    are invalid; the message is logged and the previous prompts stay in use.
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
        """Apply what changed since the last call; the first call does not reload the prompts."""
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
        if error := self._reload_prompts():
            log.error("prompts_not_reloaded", error=error)
        else:
            log.info("prompts_reloaded")
