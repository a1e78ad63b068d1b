"""Plans a deployment by simulating the flow of questions with measured costs.

`python -m benchmarks.capacity measure` runs one and two worker processes on one Redis, and four
shards on a Redis Cluster of six local processes, and compares them with the simulation. `python -m
benchmarks.capacity plan` prints the tables of `docs/capacity.md`.

The simulation: every hop waits for a worker, which takes the waiting hops of a shard in batches,
and for the Redis of its shard, which stores the results of a batch in one request. A worker process
and a Redis each use one thread. A burst of work occupies a processor until it ends.
"""

import heapq
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redis import Redis

from benchmarks.speed.payload import payloads
from benchmarks.speed.redis_server import private_server
from benchmarks.speed.runner import processes
from benchmarks.speed.systems.port import SYSTEMS, Setting
from benchmarks.speed.tables import table

HOPS = 17
"""Number of hops of a question: the manager first, then eight times a role and the manager
again.
"""
BATCH = 25
"""Maximum number of hops that a worker reads and settles together: 0.08 round trips per hop
(benchmarks.md).
"""
OTHER_MS = 0.2
"""How long another program runs at a time, in milliseconds."""
SHARDS = 4
CASES = ((1, 1), (1, 20), (1, 200), (2, 200))
"""Worker processes, and questions in flight in each; the costs are derived from the first and
third.
"""
WARM_SECONDS = 1.5
WINDOW_SECONDS = 3.0
HEAD = (
    "Redis", "processes", "in flight in each", "questions a second", "simulated", "ratio",
    "worker ms", "master ms", "replica ms", "processors of others",
)  # fmt: skip
_RESTED = object()


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: questions per second, processor milliseconds per question, processors used by
    others.
    """

    rate: float = 0.0
    worker_ms: float = 0.0
    redis_ms: float = 0.0
    replica_ms: float = 0.0
    others: float = 0.0


@dataclass(frozen=True, slots=True)
class Costs:
    """Milliseconds of processor time, for each hop and for each batch of hops of one shard.

    `replica` is the processor time of a replica relative to that of its master.
    """

    worker_hop: float
    worker_batch: float
    redis_hop: float
    redis_batch: float
    replica: float = 0.0


ONE_REDIS = Costs(0.096, 0.201, 0.050, 0.075)
"""The costs with one Redis, measured by `measure` on the machine described in `docs/capacity.md`.
"""
CLUSTER = Costs(0.150, 2.335, 0.089, 0.522, replica=0.36)
"""The costs with a cluster, where a process waits for 36 streams with a separate call for each."""
LONG_PAYLOAD = 1.4
"""The processor time of Redis for a long conversation, relative to that for 4 kB
(benchmarks.md).
"""
MOST_BUSY = 0.6
WORK_MS = {"without a model": 45.0, "with a model": 155.0}
"""Processor time of the agents per question, in milliseconds: see `docs/capacity.md`."""
RATES = (10, 100, 1_000, 10_000)
ROUNDS = 3
PLAN_HEAD = (
    "answers", "questions a second", "processes", "masters", "in Refdesk, p50 / p95 ms",
    "processes busy", "masters busy",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Predicted:
    """The results of a simulation; `busy` are the mean loads of the workers and of the masters."""

    rate: float
    p50_ms: float
    p95_ms: float
    worker_busy: float
    redis_busy: float
    worker_ms: float
    redis_ms: float


@dataclass(slots=True)
class _Question:
    began: float
    shard: int
    left: int = HOPS


class _Station:
    """A thread of one process, which does one burst of work at a time."""

    def __init__(self) -> None:
        self.waiting: deque[Any] = deque()
        self.is_busy = False
        self.busy_ms = 0.0

    def take(self, costs: Costs) -> tuple[float, Any]:
        """Return how long the next burst lasts, and what it works on."""
        raise NotImplementedError


class _Worker(_Station):
    """Processes hops of one shard after another; `shards` are those with waiting hops."""

    def __init__(self) -> None:
        super().__init__()
        self.hops: defaultdict[int, deque[_Question]] = defaultdict(deque)

    def take(self, costs: Costs) -> tuple[float, list[_Question]]:
        shard = self.waiting.popleft()
        hops = self.hops[shard]
        batch = [hops.popleft() for _ in range(min(BATCH, len(hops)))]
        if hops:
            self.waiting.append(shard)
        return costs.worker_batch + len(batch) * costs.worker_hop, batch


class _Redis(_Station):
    """A master or its replica; it processes the results of one worker after another."""

    def __init__(self) -> None:
        super().__init__()
        self.results: defaultdict[_Worker, list[_Question]] = defaultdict(list)

    def take(self, costs: Costs) -> tuple[float, list[_Question]]:
        # What a worker finished while Redis was busy is stored in the same request.
        batch = self.results.pop(self.waiting.popleft())
        return costs.redis_batch + len(batch) * costs.redis_hop, batch


class _Replica(_Station):
    """Repeats the work of its master."""

    def take(self, costs: Costs) -> tuple[float, int]:
        hops = self.waiting.popleft()
        return costs.replica * (costs.redis_batch + hops * costs.redis_hop), hops


class _Other(_Station):
    """Another program, which uses a processor for a share of the time."""

    def take(self, costs: Costs) -> tuple[float, None]:
        # It makes up for the time that it waited.
        return max(OTHER_MS, self.waiting.popleft() - self.busy_ms), None


class Simulation:
    """A closed system with `at_once` questions per worker, or an open one with `rate`.

    Without `processors`, every thread has its own processor. `others` is the number of processors
    that other programs use.
    """

    def __init__(
        self,
        costs: Costs,
        *,
        workers: int,
        masters: int = 1,
        shards: int = 1,
        processors: int | None = None,
        others: float = 0.0,
        at_once: int = 0,
        rate: float = 0.0,
    ) -> None:
        self._costs, self._shards, self._rate, self._at_once = costs, shards, rate, at_once
        self._workers = [_Worker() for _ in range(workers)]
        self._masters = [_Redis() for _ in range(masters)]
        self._replicas = [_Replica() for _ in range(masters if costs.replica else 0)]
        self._others = [_Other() for _ in range(math.ceil(others))]
        self._share = others / max(1, len(self._others))
        self._free = processors
        self._ready: deque[_Station] = deque()
        self._events: list[tuple[float, int, _Station | None, Any]] = []
        self._number = 0
        self._now = 0.0
        self._random = random.Random(1)
        self._times: list[tuple[float, float]] = []
        self._hops = 0

    def run(self, seconds: float) -> Predicted:
        """Simulate `seconds` after a warm-up of the same length, and return the results."""
        for worker in self._workers:
            for _ in range(self._at_once):
                self._ask(worker)
        for other in self._others:
            self._give(other, 0.0)
        if self._rate:
            self._at(0.0, None, None)
        self._advance(1000 * seconds)
        stations = (*self._workers, *self._masters)
        before, hops = [station.busy_ms for station in stations], self._hops
        self._times.clear()
        self._advance(2000 * seconds)
        busy = [one.busy_ms - then for one, then in zip(stations, before, strict=True)]
        times = sorted(end - began for end, began in self._times) or [0.0]
        asked, own = max(1.0, (self._hops - hops) / HOPS), len(self._workers)
        return Predicted(
            rate=asked / seconds,
            p50_ms=times[len(times) // 2],
            p95_ms=times[int(0.95 * len(times))],
            worker_busy=sum(busy[:own]) / own / (1000 * seconds),
            redis_busy=sum(busy[own:]) / len(busy[own:]) / (1000 * seconds),
            worker_ms=sum(busy[:own]) / asked,
            redis_ms=sum(busy[own:]) / asked,
        )

    def _advance(self, until: float) -> None:
        while self._events and self._events[0][0] < until:
            self._now, _, station, batch = heapq.heappop(self._events)
            if station is None:
                self._ask(self._random.choice(self._workers))
                self._at(self._now + self._random.expovariate(self._rate / 1000), None, None)
            elif batch is _RESTED:
                self._give(station, self._share * self._now)
            else:
                self._finish(station, batch)

    def _at(self, when: float, station: _Station | None, batch: Any) -> None:
        self._number += 1
        heapq.heappush(self._events, (when, self._number, station, batch))

    def _ask(self, worker: _Worker) -> None:
        self._enter(worker, _Question(self._now, self._random.randrange(self._shards)))

    def _enter(self, worker: _Worker, question: _Question) -> None:
        hops = worker.hops[question.shard]
        hops.append(question)
        if len(hops) == 1:
            self._give(worker, question.shard)

    def _give(self, station: _Station, work: Any) -> None:
        station.waiting.append(work)
        self._wake(station)

    def _wake(self, station: _Station) -> None:
        if not station.is_busy and station.waiting:
            station.is_busy = True
            # Other programs have used what was measured: they go first.
            add = self._ready.appendleft if isinstance(station, _Other) else self._ready.append
            add(station)
            self._run_ready()

    def _run_ready(self) -> None:
        while self._ready and self._free != 0:
            if self._free is not None:
                self._free -= 1
            station = self._ready.popleft()
            spent, batch = station.take(self._costs)
            # Hops differ: a burst lasts between half and one and a half of its mean.
            spent *= self._random.uniform(0.5, 1.5)
            station.busy_ms += spent
            self._at(self._now + spent, station, batch)

    def _finish(self, station: _Station, batch: Any) -> None:
        station.is_busy = False
        if self._free is not None:
            self._free += 1
        if isinstance(station, _Worker):
            number = batch[0].shard % len(self._masters)
            master = self._masters[number]
            is_waiting = station in master.results
            master.results[station] += batch
            if not is_waiting:
                self._give(master, station)
            if self._replicas:
                self._give(self._replicas[number], len(batch))
        elif isinstance(station, _Other):
            self._at(self._now + OTHER_MS, station, _RESTED)
        elif isinstance(station, _Redis):
            for question in batch:
                self._go_on(question)
        self._wake(station)
        self._run_ready()

    def _go_on(self, question: _Question) -> None:
        self._hops += 1
        question.left -= 1
        worker = self._random.choice(self._workers)
        if question.left:
            self._enter(worker, question)
            return
        self._times.append((self._now, question.began))
        if self._at_once:
            self._ask(worker)


def find_costs(alone: Measured, many: Measured) -> Costs:
    """Return the costs that explain the measurements of one question alone and of many at once."""

    def split(single: float, crowded: float) -> tuple[float, float]:
        batch = max(0.0, (single - crowded) / (HOPS * (1 - 1 / BATCH)))
        return single / HOPS - batch, batch

    worker, redis = split(alone.worker_ms, many.worker_ms), split(alone.redis_ms, many.redis_ms)
    return Costs(*worker, *redis, replica=many.replica_ms / many.redis_ms)


@contextmanager
def _cluster() -> Iterator[tuple[str, Sequence[Redis], int]]:
    """Run a cluster of three masters and three replicas."""
    # The cluster of the tests; the simulation alone does not need them.
    from tests.faults.cluster import MASTERS, Cluster

    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        yield cluster.url, [Redis(port=node.port) for node in cluster.nodes], MASTERS


@contextmanager
def _single() -> Iterator[tuple[str, Sequence[Redis], int]]:
    """Run one Redis."""
    with private_server() as server:
        yield server.url, [Redis(unix_socket_path=str(server.socket))], 1


def measure(workers: int, at_once: int, *, is_cluster: bool) -> Measured:
    """Return the measurements of workers with `at_once` questions in flight in each."""
    with ExitStack() as stack:
        url, servers, masters = stack.enter_context(_cluster() if is_cluster else _single())
        shards = SHARDS if is_cluster else 1
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        setting = Setting(url, url, payloads()["4 kB"], folder, shards=shards)
        started = stack.enter_context(processes(SYSTEMS[0], setting, workers))
        for process in started:
            process.request("crowd", at_once=at_once, seconds=WARM_SECONDS)
        for process in started:
            process.receive()
        before, servers_before, began = _read_busy(), _read_used(servers), time.perf_counter()
        for process in started:
            process.request("window", seconds=WINDOW_SECONDS)
        results = [process.receive() for process in started]
        passed = time.perf_counter() - began
        used = [now - then for now, then in zip(_read_used(servers), servers_before, strict=True)]
        busy = _read_busy() - before
    rate = sum(item["answered"] / item["seconds"] for item in results)
    worked = sum(item["processor_seconds"] / item["seconds"] for item in results)
    return Measured(
        rate=rate,
        worker_ms=1000 * worked / rate,
        redis_ms=1000 * sum(used[:masters]) / passed / rate,
        replica_ms=1000 * sum(used[masters:]) / passed / rate,
        others=max(0.0, (busy - sum(used)) / passed - worked),
    )


def _read_busy() -> float:
    """Return the sum of the seconds in which the processors of this machine were busy."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (sum(ticks) - sum(ticks[3:5])) / os.sysconf("SC_CLK_TCK")


def _read_used(servers: Sequence[Redis]) -> list[float]:
    found: list[Any] = [server.info("cpu") for server in servers]
    return [float(item["used_cpu_user"]) + float(item["used_cpu_sys"]) for item in found]


def validate(rounds: int) -> str:
    """Return a table that compares measurements with the predictions of the simulation."""
    rows = []
    for is_cluster in (False, True):
        runs = {
            case: [measure(*case, is_cluster=is_cluster) for _ in range(rounds)] for case in CASES
        }
        costs = find_costs(_middle(runs[CASES[0]]), _middle(runs[CASES[-2]]))
        sys.stderr.write(f"{costs}\n")
        place = {"masters": 3, "shards": SHARDS} if is_cluster else {}
        for (workers, at_once), measured in runs.items():
            simulated = [
                Simulation(
                    costs, workers=workers, at_once=at_once, others=item.others,
                    processors=os.cpu_count(), **place,
                ).run(WINDOW_SECONDS)
                for item in measured
            ]  # fmt: skip
            ratios = [one.rate / real.rate for one, real in zip(simulated, measured, strict=True)]
            own = _middle(measured)
            rows.append([
                "cluster, 4 shards" if is_cluster else "one Redis", str(workers), str(at_once),
                f"{own.rate:.0f}", f"{statistics.median(item.rate for item in simulated):.0f}",
                f"{statistics.median(ratios):.2f}", f"{own.worker_ms:.2f}", f"{own.redis_ms:.2f}",
                f"{own.replica_ms:.2f}", f"{own.others:.2f}",
            ])  # fmt: skip
    return table(HEAD, rows)


def _middle(runs: Sequence[Measured]) -> Measured:
    return Measured(*(
        statistics.median(getattr(run, name) for run in runs) for name in Measured.__slots__
    ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """A deployment for a rate of questions, and its simulation."""

    rate: float
    workers: int
    masters: int
    found: Predicted


def plan(rate: float, work_ms: float) -> Plan:
    """Return how many workers and masters are needed so that they are busy for about `MOST_BUSY` of
    the time.

    `work_ms` is the processor time of all agents for a question.
    """
    single, many = (
        rate * HOPS * (costs.redis_hop * LONG_PAYLOAD + costs.redis_batch) / 1000 / MOST_BUSY
        for costs in (ONE_REDIS, CLUSTER)
    )
    masters = 1 if single <= 1 else max(3, math.ceil(many))
    flow = ONE_REDIS if masters == 1 else CLUSTER
    spent = work_ms + HOPS * (flow.worker_hop + flow.worker_batch)
    workers = max(2, math.ceil(rate * spent / 1000 / MOST_BUSY))
    costs = replace(
        flow,
        worker_hop=flow.worker_hop + work_ms / HOPS,
        redis_hop=flow.redis_hop * LONG_PAYLOAD,
    )
    simulation = Simulation(costs, workers=workers, masters=masters, shards=2 * masters, rate=rate)
    return Plan(rate, workers, masters, simulation.run(max(0.5, min(20.0, 500 / rate))))


def describe_plans() -> str:
    """Return the table of plans."""
    rows = [
        [
            name, f"{item.rate:,.0f}", f"{item.workers:,}", str(item.masters),
            f"{item.found.p50_ms:.0f} / {item.found.p95_ms:.0f}",
            f"{item.found.worker_busy:.0%}", f"{item.found.redis_busy:.0%}",
        ]
        for name, work_ms in WORK_MS.items()
        for item in (plan(rate, work_ms) for rate in RATES)
    ]  # fmt: skip
    return table(PLAN_HEAD, rows)


if __name__ == "__main__":
    print(validate(ROUNDS) if sys.argv[1:] == ["measure"] else describe_plans())
