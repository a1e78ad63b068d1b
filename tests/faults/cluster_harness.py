"""Workers and askers on a cluster whose nodes die, hang, hand over and move slots."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import ServerLinks, connect
from broker.values import Delivery, Fields, Finish, Forward, FrameSend, JournalEntry, Settlement
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.role import Role
from gateway.desk import Desk, Message
from tests.faults.cluster import Cluster
from tests.faults.desk_client import retry_until_answered
from tests.support.waiting import wait_until, within
from worker.port import SilentMeter
from worker.process import WorkerProcess, WorkerSpec

SHARDS = 6
HOPS = 4
ASKERS = 12
LEASE_SECONDS = 3.0
DEADLINE_SECONDS = 60.0


class Relay:
    """Passes a question back and forth, counting its hops, and ends it after the last."""

    def __init__(self, role: Role, other: Role) -> None:
        self.role = role
        self._other = other

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        hop = envelope.process_count + 1
        note = (JournalEntry("hop", {"number": hop}),)
        if hop == HOPS:
            reply: Fields = {"outcome": "answered", "text": envelope.message_id}
            return Finish(Outcome.ANSWERED, reply, journal=note)
        sent = envelope.replace(process_count=hop)
        return Forward((FrameSend(self._other.value, sent.encode()),), journal=note)


@dataclass
class Ledger:
    """The replies that clients got, by message; kept outside Redis, which may lose them."""

    reported: dict[str, list[Fields]] = field(default_factory=dict)
    answered: int = 0

    def note(self, name: str, reply: Fields) -> None:
        self.reported.setdefault(name, []).append(reply)
        self.answered += reply["outcome"] == "answered"

    def reasons(self) -> Counter[str]:
        return Counter(
            str(reply.get("termination_reason", reply["outcome"]))
            for replies in self.reported.values()
            for reply in replies
        )


class ClusterHarness:
    """Two worker processes' worth of workers, and askers who never rest."""

    def __init__(self, cluster: Cluster) -> None:
        self._url = cluster.url
        self.ledger = Ledger()
        # The client is in the first worker's process, as with `refdesk up`.
        self._lines = [ServerLinks(), ServerLinks()]
        self.client: Any = connect(self._url, self._lines[0])
        self.broker = RedisBroker(self.client, shards=SHARDS)
        self.desk = Desk(
            self.broker.producer, self.broker.replies,
            tenant="acme", assistant="desk", channel="test",
            deadline_seconds=DEADLINE_SECONDS, words=lambda _key, _language: "sorry",
            result_list="reported",
        )  # fmt: skip

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Have two processes' worth of workers while inside."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.broker.close)
            for lines in self._lines:
                broker = self._broker(lines)
                stack.push_async_callback(broker.close)
                await stack.enter_async_context(self._process(broker, lines).running())
            yield

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Ask without rest while inside; at the end every asker gets the last answer."""
        resting = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for number in range(ASKERS):
                tasks.create_task(self._ask(number, resting))
            try:
                yield
            finally:
                resting.set()

    async def quiet(self) -> bool:
        """Whether nothing is open any more."""
        shards = range(SHARDS)
        return not any([await self.client.zcard(f"rd:{{{shard}}}:deadlines") for shard in shards])

    async def until_answered(self, more: int) -> None:
        """Wait until that many more questions were answered."""
        goal = self.ledger.answered + more
        async with within(DEADLINE_SECONDS):
            await wait_until(
                lambda: self._has_answered(goal), patience_seconds=2 * DEADLINE_SECONDS
            )

    async def _has_answered(self, goal: int) -> bool:
        return self.ledger.answered >= goal

    async def _ask(self, asker: int, resting: asyncio.Event) -> None:
        count = 0
        while not resting.is_set():
            count += 1
            message = Message("?", f"c{asker}-{count}", f"m{asker}-{count}")
            self.ledger.note(message.message_id, await self.persistent(message))

    async def persistent(self, message: Message) -> Fields:
        """Ask; while the cluster does not answer, hand the same message in again."""
        return await retry_until_answered(lambda: self.desk.ask(message))

    def _broker(self, lines: ServerLinks) -> RedisBroker:
        return RedisBroker(connect(self._url, lines), shards=SHARDS, lease_seconds=LEASE_SECONDS)

    def _process(self, broker: RedisBroker, lines: ServerLinks) -> WorkerProcess:
        relays = (Relay(Role.MANAGER, Role.SEARCH), Relay(Role.SEARCH, Role.MANAGER))
        return WorkerProcess(
            broker,
            [WorkerSpec(relay, 16) for relay in relays],
            renewal=LeaseRenewal(lambda: self._broker(lines), lease_seconds=LEASE_SECONDS),
            meter=SilentMeter(),
        )


async def judge(harness: ClusterHarness) -> Counter[str]:
    """Compare the replies with what Redis knows; return the replies, counted by kind."""
    reported = harness.ledger.reported
    assert all(len(replies) == 1 for replies in reported.values())
    reasons = harness.ledger.reasons()
    assert set(reasons) <= {"answered", "lost"}, reasons
    sent: Counter[str] = Counter()
    for shard in range(SHARDS):
        for _, fields in await harness.client.xrange(f"rd:{{{shard}}}:results:reported"):
            sent[fields[b"q"].decode().rsplit("/", 1)[1]] += 1
    assert max(sent.values()) == 1
    for name, [reply] in reported.items():
        asked = harness.desk.question(Message("?", name.replace("m", "c"), name))
        kinds = [
            (entry.kind, entry.fields.get("number"))
            for entry in await harness.broker.replies.read_journal(asked)
        ]
        if reply["outcome"] == "answered" and kinds:
            hops = [("hop", number + 1) for number in range(HOPS)]
            assert kinds == [("accepted", None), *hops, ("finished", None)], (name, kinds)
        if reply["outcome"] == "failed":
            assert kinds == [], name
            assert sent[name] == 0
    return reasons
