"""The port of a worker that probes and Prometheus read."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from broker.port import RoleStatus
from tests.worker.cast import House
from worker.errors import HealthPortError
from worker.health import serving
from worker.metrics import PrometheusMeter
from worker.process import WorkerProcess
from worker.readiness import DEAF_SECONDS, Readiness, keep_depths


class ShowingMeter(PrometheusMeter):
    """Tells when depths have arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.shown = asyncio.Event()

    def depths(self, status: Sequence[RoleStatus]) -> None:
        super().depths(status)
        self.shown.set()


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextmanager
def served(meter: PrometheusMeter, reason: str = "") -> Iterator[int]:
    with serving(0, meter.registry, lambda: reason, host="127.0.0.1") as port:
        yield port


def test_a_living_process_says_so() -> None:
    with served(PrometheusMeter(), "deaf") as port:
        assert get(port, "/healthz") == (200, '{"status": "alive"}')


@pytest.mark.parametrize(("reason", "status", "said"), [("", 200, "ready"), ("deaf", 503, "deaf")])
def test_readiness_names_what_is_missing(reason: str, status: int, said: str) -> None:
    with served(PrometheusMeter(), reason) as port:
        code, body = get(port, "/readyz")

    assert (code, json.loads(body)) == (status, {"status": said})


def test_metrics_tell_what_was_handled_and_what_waits() -> None:
    meter = PrometheusMeter()
    meter.handled("lang", "forward", 0.01)
    meter.depths([RoleStatus("lang", 3, 1, 2.5, 1, 2)])

    with served(meter) as port:
        page = get(port, "/metrics")[1]

    assert 'refdesk_handled_total{outcome="forward",role="lang"} 1.0' in page
    assert 'refdesk_depth{role="lang"} 3.0' in page
    assert 'refdesk_dead_letters{role="lang"} 1.0' in page


def test_another_page_is_not_found() -> None:
    with served(PrometheusMeter()) as port:
        assert get(port, "/")[0] == 404


def test_a_taken_port_is_named() -> None:
    registry = PrometheusMeter().registry

    with (
        served(PrometheusMeter()) as port,
        pytest.raises(HealthPortError, match=f"found {port}: "),
        serving(port, registry, str, host="127.0.0.1"),
    ):
        pytest.fail("two servers on one port")


def test_the_port_is_free_again_afterwards() -> None:
    with served(PrometheusMeter()) as port:
        pass

    with pytest.raises(urllib.error.URLError):
        get(port, "/healthz")


async def test_a_worker_that_reads_is_ready_and_a_deaf_one_names_its_role(house: House) -> None:
    process = house.process()
    readiness = Readiness(process, lambda: True)

    assert readiness.unready() == ""

    _last_heard(process, "search", seconds_ago=DEAF_SECONDS + 1)

    assert readiness.unready() == "no answer from Redis for search"


async def test_a_worker_with_no_room_is_not_called_deaf(house: House) -> None:
    process = house.process(places=0)
    _last_heard(process, "search", seconds_ago=DEAF_SECONDS + 1)

    assert Readiness(process, lambda: True).unready() == ""


async def test_without_the_renewal_of_leases_nothing_is_ready(house: House) -> None:
    readiness = Readiness(house.process(), lambda: False)

    assert readiness.unready() == "the renewal of leases has ended"


async def test_the_depths_that_metrics_show_are_those_of_redis(house: House) -> None:
    meter = ShowingMeter()
    await house.broker.prepare(["lang"])

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(keep_depths(house.broker, ["lang"], meter))
        await meter.shown.wait()
        keeping.cancel()

    assert meter.registry.get_sample_value("refdesk_depth", {"role": "lang"}) == 0


def _last_heard(process: WorkerProcess, role: str, *, seconds_ago: float) -> None:
    for worker in process.workers:
        if worker.role == role:
            worker.last_read -= seconds_ago
