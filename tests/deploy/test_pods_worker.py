"""A worker process reports what it did: in `/metrics`, by role, and in its log."""

import asyncio
import json
import multiprocessing
import os
import signal
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.transport.connect import connect
from deploy.assembly.runtime import connect_runtime, desk
from gateway.desk import Message
from tests.deploy import eventful_worker
from tests.support.app_harness import settings_of
from tests.support.ports import free_port
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.timeout(180)]

ROLES = ("manager", "lang", "command", "translation", "essence")
QUESTION = "How do I configure SMS routing rules?"
OF_NO_WORK = {"queue_depths_unavailable", "worker_heartbeat_failed"}
"""What a worker reports of itself, where Redis is slow."""


@dataclass
class Pod:
    """A running worker process, its port and its log."""

    process: Any
    port: int
    log: Path

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            response: bytes = answer.read()
        return response.decode()

    async def metric(self, name: str, **labels: str) -> float | None:
        """One value of `/metrics`, or None where it is not shown."""
        page = await asyncio.to_thread(self.page, "/metrics")
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return float(sample.value)
        return None

    async def reaches(self, value: float, name: str, **labels: str) -> float:
        """Wait until a value is shown that is at least so large."""

        async def large() -> float | None:
            result = await self.metric(name, **labels)
            return result if result is not None and result >= value else None

        reached: float = await wait_until(large)
        return reached

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@dataclass
class Pods:
    """Starts worker processes on one Redis."""

    url: str
    client: Any
    desk: Any
    folder: Path
    started: list[Pod] = field(default_factory=list)

    async def start(self) -> Pod:
        port = free_port()
        pod = Pod(None, port, self.folder / f"{port}.log")
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.deploy.eventful_worker"])
        pod.process = context.Process(
            target=eventful_worker.main,
            args=(self.url, str(self.folder), ROLES, port, str(pod.log)),
        )
        pod.process.start()
        self.started.append(pod)
        await wait_until(partial(self.client.lpop, eventful_worker.READY))
        return pod

    async def submit(self, message_id: str, text: str = QUESTION) -> None:
        command = "help" if text == "/help" else None
        await self.desk.submit(Message(text, f"talk-{message_id}", message_id, command))

    async def hanging(self) -> None:
        await wait_until(partial(self.client.lpop, eventful_worker.HANGING))


@pytest.fixture
async def running(redis_url: str, tmp_path: Path) -> AsyncIterator[Pods]:
    client: Any = connect(redis_url)
    await client.flushall()
    async with connect_runtime(settings_of(tmp_path, redis_url=redis_url)) as post:
        pods = Pods(redis_url, client, desk(post, "test"), tmp_path)
        try:
            yield pods
        finally:
            for pod in pods.started:
                pod.process.kill()
                pod.process.join()
    await client.aclose()


async def test_work_that_goes_well_is_counted_by_role(running: Pods) -> None:
    pod = await running.start()
    await running.submit("help-1", "/help")
    await running.submit("plain-1")

    await pod.reaches(1, "refdesk_handled_total", role="command")
    await pod.reaches(1, "refdesk_handled_total", role="essence", outcome="forward")

    assert await pod.metric("refdesk_handling_seconds_count", role="essence") == 1
    assert await pod.metric("refdesk_routed_total", role="essence", event="completed") == 1
    assert await pod.metric("refdesk_routed_total", role="command", event="completed") == 1
    calls = {"role": "essence", "model": "gpt@test"}
    assert await pod.metric("refdesk_model_calls_total", outcome="answered", **calls) == 1
    assert await pod.metric("refdesk_model_cost_usd_total", **calls) == float(eventful_worker.COST)
    assert await pod.metric("refdesk_slots", role="essence") == 32
    assert [json.loads(pod.page(page))["status"] for page in ("/healthz", "/readyz")] == [
        "alive",
        "ready",
    ]


async def test_the_waiting_and_running_counts_match_redis(running: Pods) -> None:
    pod = await running.start()
    await running.submit("slow-1")
    await running.hanging()

    assert await pod.reaches(1, "refdesk_in_flight", role="translation") == 1
    assert await pod.metric("refdesk_depth", role="translation") == 1
    assert await pod.metric("refdesk_running", role="translation") == 1
    assert await pod.reaches(0.5, "refdesk_oldest_seconds", role="translation") < 30
    assert await pod.metric("refdesk_depth", role="lang") == 0


async def test_retries_and_dead_letters_are_counted(running: Pods) -> None:
    pod = await running.start()
    await running.submit("shaky-1")
    await running.submit("broken-1")

    await pod.reaches(1, "refdesk_dead_letters", role="essence")

    assert await pod.metric("refdesk_handled_total", role="essence", outcome="retry") == 3
    assert await pod.metric("refdesk_handled_total", role="essence", outcome="dead_letter") == 1
    assert await pod.metric("refdesk_failures_total", role="essence", reason="failed") == 4
    assert await pod.metric("refdesk_dead_letters", role="essence") == 1
    assert await pod.metric("refdesk_redelivered_total", role="essence") == 0


async def test_entries_of_a_killed_worker_are_counted_where_they_continue(running: Pods) -> None:
    killed = await running.start()
    await running.submit("slow-1")
    await running.hanging()
    other = await running.start()

    killed.process.kill()

    assert await other.reaches(1, "refdesk_redelivered_total", role="translation") == 1
    await other.reaches(1, "refdesk_handled_total", role="translation", outcome="forward")


async def test_a_lease_that_a_paused_worker_lost_is_counted(running: Pods) -> None:
    paused = await running.start()
    await running.submit("slow-1")
    await running.hanging()
    other = await running.start()

    os.kill(paused.process.pid, signal.SIGSTOP)
    await other.reaches(1, "refdesk_handled_total", role="translation", outcome="forward")
    os.kill(paused.process.pid, signal.SIGCONT)

    await paused.reaches(1, "refdesk_leases_lost_total", role="translation")
    handled = await paused.metric("refdesk_handled_total", role="translation", outcome="forward")
    assert handled is None


async def test_every_line_about_work_names_its_message_and_shows_no_secret(running: Pods) -> None:
    pod = await running.start()
    names = ["plain-1", "shaky-1", "broken-1"]
    for name in names:
        await running.submit(name)
    await pod.reaches(1, "refdesk_dead_letters", role="essence")
    await pod.reaches(2, "refdesk_handled_total", role="essence", outcome="forward")

    lines = pod.lines()

    work = [
        line
        for line in lines
        if line["logger"] in {"llm", "vendor", "worker"} and line["event"] not in OF_NO_WORK
    ]
    events = {line["event"] for line in work}
    assert events >= {"asked", "sent from a thread", "in a task", "hop_failed"}
    assert {(line.get("conversation_id"), line.get("message_id")) for line in work} == {
        (f"test/talk-{name}", name) for name in names
    }
    assert "[hidden]" in pod.log.read_text()
    assert eventful_worker.KEY not in pod.log.read_text()
