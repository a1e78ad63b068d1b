"""Push channels answer probes and scrapes on a separate port."""

import asyncio
import socket
from pathlib import Path

import httpx
import pytest
from fakeredis import FakeServer
from prometheus_client import CollectorRegistry, generate_latest

from broker.embedded_redis import Endpoint
from deploy.assembly.gateways.listening import serve_probes
from deploy.assembly.runtime import connect_runtime
from gateway.chat.delivery import push_metrics
from gateway.chat.ports import Tally
from tests.support.app_harness import settings_of
from tests.support.waiting import wait_until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def test_a_push_channel_reports_whether_it_can_accept_messages(tmp_path: Path) -> None:
    played, port = FakeServer(), free_port()
    endpoint = Endpoint(url="", durable=False, played=played)
    settings = settings_of(tmp_path, health_port=port)
    tally, refusals, ratings = Tally(), Tally(), Tally()
    tally.add("answered")
    refusals.add("limited_day")
    ratings.add("down")
    async with (
        connect_runtime(settings, endpoint=endpoint) as post,
        serve_probes(post, push_metrics("slack", tally, refusals, ratings)),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
    ):

        async def has_turned(status: int) -> bool:
            return (await client.get("/readyz")).status_code == status

        await wait_until(lambda: has_turned(200))
        alive, metrics = await client.get("/healthz"), (await client.get("/metrics")).text
        played.connected = False
        await wait_until(lambda: has_turned(503))
        still_alive = await client.get("/healthz")

    assert (alive.status_code, still_alive.status_code) == (200, 200)
    assert 'refdesk_chat_deliveries_total{channel="slack",result="answered"} 1.0' in metrics
    assert 'refdesk_chat_declined_total{channel="slack",reason="limited_day"} 1.0' in metrics
    assert 'refdesk_chat_feedback_total{channel="slack",rating="down"} 1.0' in metrics


async def test_nobody_is_answered_where_no_port_is_set(tmp_path: Path) -> None:
    endpoint = Endpoint(url="", durable=False, played=FakeServer())
    async with connect_runtime(settings_of(tmp_path), endpoint=endpoint) as post:
        before = len(asyncio.all_tasks())
        async with serve_probes(post, CollectorRegistry()):
            assert len(asyncio.all_tasks()) == before


@pytest.mark.parametrize(
    "results", [(), ("answered", "delivery_failed", "answered", "delivery_abandoned")]
)
def test_counts_are_those_of_the_moment_of_the_scrape(results: tuple[str, ...]) -> None:
    tally = Tally()
    registry = push_metrics("telegram", tally, Tally(), Tally())
    for result in results:
        tally.add(result)

    metrics = generate_latest(registry).decode()

    for result in set(results):
        line = f'refdesk_chat_deliveries_total{{channel="telegram",result="{result}"}}'
        assert f"{line} {float(results.count(result))}" in metrics
