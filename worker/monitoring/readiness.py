"""Says whether a worker process lives and whether it can work."""

import asyncio
import time
from collections.abc import Callable

from worker.process import WorkerProcess

DEAF_SECONDS = 12.0
"""Without a successful read for so long, a worker is deaf: reads block eight seconds at most."""
PULSE_SECONDS = 1.0
RENEWAL_ENDED = "the renewal of leases has ended"


class Readiness:
    """Answers `/healthz` and `/readyz`.

    After `stuck_seconds` without a turn of the event loop the process no longer counts as living:
    more than the life of a question, so that nothing it may still hold is worth waiting for.
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

    async def pulse(self) -> None:
        """Note for ever that the event loop turns; cancel this to stop."""
        while True:
            self.last_turn = time.monotonic()
            await asyncio.sleep(PULSE_SECONDS)

    def dead(self) -> str:
        """Return why the process should be started again, or an empty text."""
        if self._renewal_alive():
            self._lived = True
        elif self._lived:
            # Before, it has not begun yet; ended, it does not begin again by itself.
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
        deaf = [
            worker.role
            for worker in self._process.workers
            if worker.runs.free_slots and now - worker.last_read > DEAF_SECONDS
        ]
        return f"no answer from Redis for {', '.join(dict.fromkeys(deaf))}" if deaf else ""
