"""Reports whether a worker process is alive and whether it can work."""

import asyncio
import time
from collections.abc import Callable

from worker.process import WorkerProcess

LONGEST_SILENCE_SECONDS = 12.0
"""A worker without a successful read for this long is not ready: reads block at most 8 seconds."""
TURN_SECONDS = 1.0
RENEWAL_ENDED = "the renewal of leases has ended"


class Readiness:
    """Answers `/healthz` and `/readyz`.

    When the event loop has not turned for `stuck_seconds`, the process is dead. The default is more
    than the lifetime of a question, so that its entries are not worth waiting for.
    """

    def __init__(
        self,
        process: WorkerProcess,
        renewal_alive: Callable[[], bool],
        *,
        stuck_seconds: float = 240.0,
    ) -> None:
        self._process = process
        self._renewal_alive = renewal_alive
        self._stuck_seconds = stuck_seconds
        self._lived = False
        self.last_turn = time.monotonic()

    async def record_turns(self) -> None:
        """Record regularly that the event loop turns, until cancelled."""
        while True:
            self.last_turn = time.monotonic()
            await asyncio.sleep(TURN_SECONDS)

    def dead(self) -> str:
        """Return why the process should be started again, or an empty text."""
        if self._renewal_alive():
            self._lived = True
        elif self._lived:
            # It was alive before; once ended, it does not start again by itself.
            return RENEWAL_ENDED
        still = time.monotonic() - self.last_turn
        if still <= self._stuck_seconds:
            return ""
        return f"the event loop has stood still for {still:.0f} s"

    def unready(self) -> str:
        """Return why the process cannot work, or an empty text."""
        if not self._renewal_alive():
            return RENEWAL_ENDED
        now = time.monotonic()
        silent = [
            worker.role
            for worker in self._process.workers
            if worker.runs.free_slots
            and not worker.is_paused
            and now - worker.last_read > LONGEST_SILENCE_SECONDS
        ]
        return f"no answer from Redis for {', '.join(dict.fromkeys(silent))}" if silent else ""
