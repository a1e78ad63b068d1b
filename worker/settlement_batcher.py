"""Settles what finished together in one round trip, and takes what comes next on the way."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from broker.errors import BrokerUnavailableError
from broker.ports import LocalConsumer, Settler
from broker.values import ConsumerDemand, Delivery, Forward, Settlement

LANES = 2
"""Batches that travel at once: while Redis works on one, this process makes the next."""
BATCH = 48
"""Settlements of one batch at most: larger ones leave either side waiting for the other."""


Told = Callable[[bool | Exception], None]
"""Hears whether an entry was still ours, or what the broker raised."""


def nobody() -> Sequence[LocalConsumer]:
    """Nobody takes on the way."""
    return ()


class SettlementBatcher:
    """Gathers settlements while a batch travels, and sends them as the next.

    Alone a settlement travels at once, in its own task; under load dozens share a round trip.
    What a settlement sends to a role of `takers` is taken for them in the same trip.
    """

    def __init__(
        self,
        broker: Settler,
        *,
        takers: Callable[[], Sequence[LocalConsumer]] = nobody,
        batch: int = BATCH,
    ) -> None:
        self._takers = takers
        self._broker = broker
        self._batch = batch
        self._waiting: list[tuple[Delivery, Settlement, Told]] = []
        self._travelling = 0
        self._wake = asyncio.Event()
        self._stopping = False

    async def submit(self, delivery: Delivery, settlement: Settlement, told: Told) -> None:
        """Return once it waits for the next batch, or, where nothing travels, was sent alone."""
        if self._travelling >= LANES or self._waiting:
            self._waiting.append((delivery, settlement, told))
            return
        self._travelling += 1
        try:
            await self._send([(delivery, settlement, told)])
        finally:
            self._travelling -= 1
            self._wake.set()

    async def run(self) -> None:
        """Send batches until stopped and empty."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(LANES):
                lanes.create_task(self._lane())

    async def _lane(self) -> None:
        while not (self._stopping and not self._waiting):
            await self._wake.wait()
            self._wake.clear()
            while self._waiting and self._travelling < LANES:
                batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
                self._travelling += 1
                await self._send(batch)
                self._travelling -= 1
        # Whoever waits beside must see the end too.
        self._wake.set()

    def stop(self) -> None:
        """Let `run` return once everything that waits is sent."""
        self._stopping = True
        self._wake.set()

    async def _send(self, batch: Sequence[tuple[Delivery, Settlement, Told]]) -> None:
        results: Sequence[bool | Exception]
        try:
            results = await self._settle([(entry, what) for entry, what, _ in batch])
        except Exception as error:  # noqa: BLE001 - each who waits must hear of it, and raises it
            results = [error] * len(batch)
        for (_, _, told), result in zip(batch, results, strict=True):
            told(result)

    async def _settle(
        self, settlements: Sequence[tuple[Delivery, Settlement]]
    ) -> Sequence[bool | BrokerUnavailableError]:
        """Return what became of each; an error stands in the place of what must be sent again."""
        wanting = _wanting(self._takers(), (settlement for _, settlement in settlements))
        wants = [ConsumerDemand(taker.role, taker.consumer, slots) for taker, slots in wanting]
        settled = await self._broker.settle_and_take(settlements, wants)
        by_consumer = {(taker.role, taker.consumer): taker for taker, _ in wanting}
        for delivery in settled.taken:
            by_consumer[delivery.role, delivery.consumer].deliver(delivery)
        return [settled.away.get(place, kept) for place, kept in enumerate(settled.kept)]


def _wanting(
    takers: Sequence[LocalConsumer], settlements: Iterable[Settlement]
) -> list[tuple[LocalConsumer, int]]:
    """Return who has room for what these settlements send, and for how much of it."""
    sent: dict[str, int] = {}
    for settlement in settlements:
        if isinstance(settlement, Forward):
            for send in settlement.sends:
                sent[send.role] = sent.get(send.role, 0) + 1
    wanting: list[tuple[LocalConsumer, int]] = []
    for taker in takers:
        left = sent.get(taker.role)
        if left and (slots := min(left, taker.free_slots)) > 0:
            sent[taker.role] = left - slots
            wanting.append((taker, slots))
    return wanting
