"""The port of a worker that probes and Prometheus read."""

import asyncio
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.waiting import wait_until, within
from tests.support.worker_harness import WorkerHarness
from worker.errors import HealthPortError
from worker.health import LONGEST_SILENCE_SECONDS, WorkerHealth, serving
from worker.metrics import PrometheusMeter
from worker.process import WorkerProcess


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@contextmanager
def serve_health(meter: PrometheusMeter, reason: str = "", dead: str = "") -> Iterator[int]:
    with serving(
        0, meter.registry, dead=lambda: dead, unready=lambda: reason, host="127.0.0.1"
    ) as port:
        yield port


def test_a_living_process_reports_that_it_is_alive() -> None:
    with serve_health(PrometheusMeter(), "deaf") as port:
        assert get(port, "/healthz") == (200, '{"status": "alive"}')


def test_a_process_with_a_blocked_event_loop_is_reported_as_dead() -> None:
    with serve_health(PrometheusMeter(), dead="stands still") as port:
        pages = [get(port, page) for page in ("/healthz", "/readyz")]

    assert pages == [(503, '{"status": "stands still"}')] * 2


@pytest.mark.parametrize(("reason", "status", "said"), [("", 200, "ready"), ("deaf", 503, "deaf")])
def test_readiness_names_what_is_missing(reason: str, status: int, said: str) -> None:
    with serve_health(PrometheusMeter(), reason) as port:
        code, body = get(port, "/readyz")

    assert (code, json.loads(body)) == (status, {"status": said})


def test_metrics_count_settled_and_running_entries() -> None:
    meter = PrometheusMeter()
    meter.register_role("lang", slots=16, running=lambda: 2)
    meter.count_hop("lang", "forward", 0.01)

    with serve_health(meter) as port:
        page = get(port, "/metrics")[1]

    assert 'refdesk_handled_total{outcome="forward",role="lang"} 1.0' in page
    assert 'refdesk_running{role="lang"} 2.0' in page
    assert 'refdesk_slots{role="lang"} 16.0' in page
    assert 'refdesk_leases_lost_total{role="lang"} 0.0' in page


def test_an_idle_connection_does_not_delay_probes() -> None:
    with (
        serve_health(PrometheusMeter()) as port,
        socket.create_connection(("127.0.0.1", port)),
        socket.create_connection(("127.0.0.1", port)),
    ):
        assert get(port, "/healthz")[0] == 200


def test_another_page_is_not_found() -> None:
    with serve_health(PrometheusMeter()) as port:
        assert get(port, "/")[0] == 404


def test_a_taken_port_is_named() -> None:
    registry = PrometheusMeter().registry

    with (
        serve_health(PrometheusMeter()) as port,
        pytest.raises(HealthPortError, match=f"port {port} "),
        serving(port, registry, dead=str, unready=str, host="127.0.0.1"),
    ):
        pytest.fail("two servers on one port")


def test_the_port_is_free_again_afterwards() -> None:
    with serve_health(PrometheusMeter()) as port:
        pass

    with pytest.raises(urllib.error.URLError):
        get(port, "/healthz")


async def test_a_worker_that_reads_is_ready_and_a_deaf_one_names_its_role(
    harness: WorkerHarness,
) -> None:
    process = harness.process()
    readiness = WorkerHealth(process, lambda: True)

    assert readiness.unready() == ""

    _set_last_read(process, "search", seconds_ago=LONGEST_SILENCE_SECONDS + 1)

    assert readiness.unready() == "no response from Redis for search"


async def test_a_worker_with_no_room_is_not_called_deaf(harness: WorkerHarness) -> None:
    process = harness.process(slots=0)
    _set_last_read(process, "search", seconds_ago=LONGEST_SILENCE_SECONDS + 1)

    assert WorkerHealth(process, lambda: True).unready() == ""


async def test_without_the_renewal_of_leases_nothing_is_ready(harness: WorkerHarness) -> None:
    readiness = WorkerHealth(harness.process(), lambda: False)

    assert readiness.unready() == "the renewal of leases has ended"


async def test_a_process_whose_renewal_has_ended_is_started_again(harness: WorkerHarness) -> None:
    alive = [False]
    readiness = WorkerHealth(harness.process(), lambda: alive[0])

    assert readiness.dead() == ""  # it has not begun yet
    alive[0] = True
    assert readiness.dead() == ""
    alive[0] = False
    assert readiness.dead() == "the renewal of leases has ended"


async def test_an_event_loop_that_was_blocked_for_long_counts_as_dead_until_it_runs(
    harness: WorkerHarness,
) -> None:
    readiness = WorkerHealth(harness.process(), lambda: True, stuck_seconds=60)

    assert readiness.dead() == ""

    readiness.last_turn -= 61

    assert readiness.dead() == "the event loop has been blocked for 61 s"

    async with within(), asyncio.TaskGroup() as tasks:
        turning = tasks.create_task(readiness.record_turns())
        await wait_until(lambda: not readiness.dead())
        turning.cancel()


def _set_last_read(process: WorkerProcess, role: str, *, seconds_ago: float) -> None:
    for worker in process.workers:
        if worker.role == role:
            worker.last_read -= seconds_ago
