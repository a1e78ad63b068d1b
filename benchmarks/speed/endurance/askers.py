"""Asks questions as people do: when they like, whether or not the desk keeps up."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.speed.endurance.results import share_below
from broker.redis_broker import RedisBroker
from broker.values import Accepted
from gateway.desk import Desk, Message
from gateway.errors import BusyError

DEADLINE_SECONDS = 30.0
PATIENCE_SECONDS = 5.0
TEXT = "How do I configure routing rules?"


def desk_of(broker: RedisBroker, tenant: str, deadline_seconds: float = DEADLINE_SECONDS) -> Desk:
    """Return the desk of a tenant."""
    return Desk(
        broker.producer,
        broker.replies,
        tenant=tenant,
        assistant="endurance",
        channel="endurance",
        deadline_seconds=deadline_seconds,
        words=lambda _key, language: language,
    )


@dataclass
class Answers:
    """The results of the questions of a period; seconds."""

    seconds: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    retry_waits_seconds: list[float] = field(default_factory=list)
    in_the_time: int = 0

    def close(self, seconds: float) -> None:
        """End the time; what is answered later was not answered in it."""
        self.seconds = seconds
        self.in_the_time = self.outcomes["answered"]

    def p(self, share: float) -> float:
        """Return the time below which this share of the accepted was answered."""
        return share_below(self.took, share)

    @property
    def answered_a_second(self) -> float:
        """How many got a real answer, in this time, per second."""
        return self.in_the_time / self.seconds


class Askers:
    """Ask at random times at given rates, each question in a new conversation."""

    def __init__(self, broker: RedisBroker, *, seed: int) -> None:
        self._broker = broker
        self._random = random.Random(seed)
        self.asked = 0

    async def ask_for(self, seconds: float, rates: Mapping[str, float]) -> Answers:
        """Ask for so long at these questions a second of each tenant; wait for every answer."""
        return await self._ask_while(lambda since: since < seconds, rates)

    async def ask_until(self, done: asyncio.Event, rates: Mapping[str, float]) -> Answers:
        """Ask at these rates until something is done; wait for every answer."""
        return await self._ask_while(lambda _: not done.is_set(), rates)

    async def _ask_while(
        self, goes_on: Callable[[float], bool], rates: Mapping[str, float]
    ) -> Answers:
        desks = {tenant: desk_of(self._broker, tenant) for tenant in rates}
        answers = Answers()
        began = time.perf_counter()
        due = self._random.expovariate(sum(rates.values()))
        async with asyncio.TaskGroup() as tasks:
            while goes_on(due):
                (tenant,) = self._random.choices(list(rates), list(rates.values()))
                await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
                tasks.create_task(self._ask(desks[tenant], tenant, answers))
                due += self._random.expovariate(sum(rates.values()))
            answers.close(time.perf_counter() - began)
        return answers

    async def _ask(self, desk: Desk, tenant: str, answers: Answers) -> None:
        self.asked += 1
        message = Message(TEXT, f"talk-{self.asked}", f"message-{self.asked}")
        answers.asked[tenant] += 1
        began = time.perf_counter()
        try:
            admission = await desk.submit(message)
        except BusyError as busy:
            answers.refused[tenant] += 1
            answers.retry_waits_seconds.append(busy.retry_after_seconds)
            return
        if not isinstance(admission, Accepted):
            raise SystemExit(f"expected a new question to be accepted, found {admission}")
        reply = await self._broker.replies.await_reply(
            desk.question(message), block_seconds=DEADLINE_SECONDS + PATIENCE_SECONDS
        )
        ended = time.perf_counter()
        outcome = str(reply["outcome"]) if reply is not None else "none"
        answers.outcomes[outcome] += 1
        answers.took.append(ended - began)
