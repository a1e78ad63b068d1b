"""Collects settlements while others are in flight, and sends them in one round trip."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack

from broker.ports import LocalConsumer
from broker.values import (
    ConsumerDemand,
    Delivery,
    Forward,
    ReturnResult,
    ScatterBranches,
    Settled,
    Settlement,
)

LANES = 2
"""Maximum number of batches in flight. While Redis processes one, this process encodes the next."""
BATCH = 48
"""Maximum number of settlements per batch. With more, Redis and this process wait for each other.

`make bench` shows the effect of both values, in questions per second.
"""

Answer = Callable[[bool | Exception], None]
"""Receives whether the entry was still held, or the error raised by the broker."""
Settle = Callable[
    [Sequence[tuple[Delivery, Settlement]], Sequence[ConsumerDemand]], Awaitable[Settled]
]
Waiting = tuple[Delivery, Settlement, Answer]
Demands = Sequence[tuple[LocalConsumer, ConsumerDemand]]


def no_consumers() -> Sequence[LocalConsumer]:
    """Return no consumers, so that settlements take no entries."""
    return ()


class SettlementPipeline:
    """Queues the settlements of finished runs and sends them to Redis in batches.

    A single settlement is sent immediately, by the task that submits it. While `LANES` batches are
    in flight, settlements wait, and the next batch takes up to `BATCH` of them. Frames addressed to
    a role in `consumers` are delivered to its consumers in the same round trip.
    """

    def __init__(
        self,
        settle: Settle,
        *,
        consumers: Callable[[], Sequence[LocalConsumer]] = no_consumers,
        batch: int = BATCH,
    ) -> None:
        self._settle = settle
        self._consumers = consumers
        self._batch = batch
        self._waiting: list[Waiting] = []
        self._travelling = 0
        self._trips: asyncio.TaskGroup | None = None
        self._changed = asyncio.Event()
        self._stopping = False

    async def submit(self, delivery: Delivery, settlement: Settlement, answer: Answer) -> None:
        """Send a settlement, or queue it for the next batch; `answer` receives the result.

        A settlement is queued only while `run` sends batches.
        """
        queued = (delivery, settlement, answer)
        if self._trips is not None and (self._travelling >= LANES or self._waiting):
            self._waiting.append(queued)
            return
        self._travelling += 1
        await self._send([queued])

    async def run(self) -> None:
        """Send batches until stopped and empty."""
        async with asyncio.TaskGroup() as trips:
            self._trips = trips
            try:
                self._send_waiting()
                while not self._stopping or self._waiting:
                    self._changed.clear()
                    await self._changed.wait()
            finally:
                self._trips = None

    def stop(self) -> None:
        """Let `run` return as soon as no settlements are waiting."""
        self._stopping = True
        self._changed.set()

    def _send_waiting(self) -> None:
        """Start round trips while settlements wait and lanes are free."""
        while self._waiting and self._travelling < LANES and self._trips is not None:
            batch, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            self._travelling += 1
            self._trips.create_task(self._send(batch))

    async def _send(self, batch: Sequence[Waiting]) -> None:
        results: Sequence[bool | Exception]
        try:
            demands = _find_demands(self._consumers(), (settlement for _, settlement, _ in batch))
            with ExitStack() as awaiting:
                for consumer, _ in demands:
                    awaiting.enter_context(consumer.awaiting())
                try:
                    settled = await self._settle(
                        [(delivery, settlement) for delivery, settlement, _ in batch],
                        [demand for _, demand in demands],
                    )
                except Exception as error:  # noqa: BLE001 - each answer receives it, and raises it
                    results = [error] * len(batch)
                else:
                    _deliver(demands, settled.taken)
                    results = [
                        settled.away.get(index, kept) for index, kept in enumerate(settled.kept)
                    ]
            for (_, _, answer), result in zip(batch, results, strict=True):
                answer(result)
        finally:
            self._travelling -= 1
            self._send_waiting()
            if self._stopping:
                self._changed.set()


def _find_demands(
    consumers: Sequence[LocalConsumer], settlements: Iterable[Settlement]
) -> list[tuple[LocalConsumer, ConsumerDemand]]:
    """Return the consumers with free slots for frames of these settlements, with their demands."""
    sent: dict[str, int] = {}
    for settlement in settlements:
        for role in _list_roles(settlement):
            sent[role] = sent.get(role, 0) + 1
    demands: list[tuple[LocalConsumer, ConsumerDemand]] = []
    for consumer in consumers:
        left = sent.get(consumer.role)
        if left and (slots := min(left, consumer.free_slots)) > 0:
            sent[consumer.role] = left - slots
            demand = ConsumerDemand(role=consumer.role, consumer=consumer.consumer, slots=slots)
            demands.append((consumer, demand))
    return demands


def _list_roles(settlement: Settlement) -> Iterable[str]:
    """Return the role of each frame that a settlement sends, or may send by ending a join."""
    if isinstance(settlement, Forward):
        return [send.role for send in settlement.sends]
    if isinstance(settlement, ScatterBranches):
        return [branch.role for branch in settlement.branches[: settlement.at_once]]
    return settlement.roles if isinstance(settlement, ReturnResult) else ()


def _deliver(demands: Demands, taken: Sequence[Delivery]) -> None:
    by_name = {(demand.role, demand.consumer): consumer for consumer, demand in demands}
    for delivery in taken:
        by_name[delivery.role, delivery.consumer].deliver(delivery)
