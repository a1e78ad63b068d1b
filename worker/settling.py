"""Settles what finished together in one round trip."""

import asyncio
from collections.abc import Sequence

from broker.port import Broker, Delivery, Settlement


class Settler:
    """Gathers settlements while a batch travels, and sends them as the next.

    Alone a settlement travels at once, in its own task; under load hundreds share a round trip.
    """

    def __init__(self, broker: Broker, *, batch: int = 256) -> None:
        self._broker = broker
        self._batch = batch
        self._waiting: list[tuple[Delivery, Settlement, asyncio.Future[bool]]] = []
        self._travelling = False
        self._wake = asyncio.Event()
        self._stopping = False

    async def settle(self, delivery: Delivery, settlement: Settlement) -> bool:
        """Return whether the entry was still ours; raises what the broker raises."""
        if self._travelling or self._waiting:
            done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            self._waiting.append((delivery, settlement, done))
            return await done
        self._travelling = True
        try:
            [kept] = await self._broker.settle([(delivery, settlement)])
        finally:
            self._travelling = False
            self._wake.set()
        return kept

    async def run(self) -> None:
        """Send batches until stopped and empty."""
        while not (self._stopping and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            while self._waiting and not self._travelling:
                batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
                self._travelling = True
                await self._send(batch)
                self._travelling = False

    def stop(self) -> None:
        """Let `run` return once everything that waits is sent."""
        self._stopping = True
        self._wake.set()

    async def _send(
        self, batch: Sequence[tuple[Delivery, Settlement, asyncio.Future[bool]]]
    ) -> None:
        try:
            results = await self._broker.settle([(entry, what) for entry, what, _ in batch])
        except Exception as error:  # noqa: BLE001 - each waiting task must hear of it, and raises it
            for _, _, done in batch:
                if not done.done():
                    done.set_exception(error)
            return
        for (_, _, done), result in zip(batch, results, strict=True):
            if not done.done():
                done.set_result(result)
