"""Says whether a worker process can work, and keeps the depths that `/metrics` shows true."""

import asyncio
import time
from collections.abc import Callable, Sequence

from broker.errors import BrokerUnavailableError
from broker.port import Broker
from worker.metrics import PrometheusMeter
from worker.process import WorkerProcess

DEAF_SECONDS = 12.0
"""Without a successful read for so long, a worker is deaf: reads block two seconds at most."""
DEPTH_SECONDS = 1.0


class Readiness:
    """Answers `/readyz`."""

    def __init__(self, process: WorkerProcess, renewal_alive: Callable[[], bool]) -> None:
        self._process = process
        self._renewal_alive = renewal_alive

    def unready(self) -> str:
        """Return why the process cannot work, or an empty text."""
        if not self._renewal_alive():
            return "the renewal of leases has ended"
        now = time.monotonic()
        deaf = [
            worker.role
            for worker in self._process.workers
            if worker.has_room and now - worker.last_read > DEAF_SECONDS
        ]
        return f"no answer from Redis for {', '.join(deaf)}" if deaf else ""


async def keep_depths(broker: Broker, roles: Sequence[str], meter: PrometheusMeter) -> None:
    """Read the depths from Redis for ever; cancel this to stop."""
    while True:
        try:
            meter.depths(await broker.status(roles))
        except BrokerUnavailableError:
            meter.failed("status", "unavailable")
        await asyncio.sleep(DEPTH_SECONDS)
