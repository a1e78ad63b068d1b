"""Each shipped alert rule fires while its condition holds, and resolves afterwards.

A real Prometheus evaluates the rules over real processes: a gateway, a worker, Redis and its
exporter. One thing of the rules is changed: `for` becomes a second. The windows of rates stay, so
a recovery is played as it happens: good questions outnumber the bad ones.
"""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from broker.embedded_redis import answers
from broker.keys import stream_key
from broker.transport.connect import connect
from tests.deploy.test_dashboards import ALERTS, RULES
from tests.desk.conftest import ingest_example
from tests.desk.test_answers_on_the_wire import asks_the_server, make_draft, make_judgement
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import DOMAIN, TOPIC, command, environment
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.ports import free_port
from tests.support.waiting import block_until, wait_until

PROGRAMS = ("prometheus", "prometheus-redis-exporter", "redis-server")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
pytestmark = [
    pytest.mark.long,
    pytest.mark.redis,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed (Debian packages): {MISSING}"),
]

MEMORY_BYTES = 2_000_000_000
BALLAST_BYTES = 50_000_000
"""So much data that what connections use is nothing beside it."""
PATIENCE_SECONDS = 120.0
SLOW_SECONDS = 31.0
WEEK_SECONDS = 7 * 86_400
AT_ONCE = 8
QUESTION = "How do I configure SMS routing rules?"
GOOD = make_draft("Open Routing > Rules and choose New rule. [1]")
DRAFTS = {
    "unmarked": make_draft("Elephants remember everything."),
    "refused": make_draft("", status="insufficient_context"),
    "failing": OpenAI().failure(500),
}


class ChangingModel(ModelServer):
    """Writes and judges as its `mode` says: well, or with one fault."""

    mode = "good"

    def choose_response(self, received: Received) -> Response:
        if "claims_read" in json.dumps(received.body):
            return make_judgement(completeness=0.1 if self.mode == "poor" else 1.0)
        if self.mode != "slow":
            return DRAFTS.get(self.mode, GOOD)
        is_time = asyncio.Event()
        asyncio.get_running_loop().call_later(SLOW_SECONDS, is_time.set)
        return replace(GOOD, body=GOOD.body + b"\n\n", gates={0: is_time})


class Process:
    """A program that is killed, and started again."""

    def __init__(self, words: list[str], environment: dict[str, str] | None, log: Path) -> None:
        self._words = words
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._words, env=self._environment, stdout=log, stderr=log
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@dataclass
class WatchedDesk:
    """The processes, and how a scenario changes them."""

    data: Path
    environment: dict[str, str]
    model: ChangingModel
    redis: Any
    prometheus: httpx.AsyncClient
    http: httpx.AsyncClient
    redis_server: Process
    gateway: Process
    worker: Process
    _numbers: "count[int]" = field(default_factory=count)

    async def find_alerts(self) -> dict[str, str]:
        """Return the state, pending or firing, of every alert that is not resolved."""
        try:
            answer = await self.prometheus.get("/api/v1/alerts")
        except httpx.TransportError:
            return {"Prometheus": "has not started"}
        if answer.status_code == 503:
            return {"Prometheus": "reads its storage"}
        alerts = answer.json()["data"]["alerts"]
        return {alert["labels"]["alertname"]: alert["state"] for alert in alerts}

    async def fires(self, name: str) -> None:
        """Wait for an alert."""

        async def is_firing() -> bool:
            return (await self.find_alerts()).get(name) == "firing"

        await wait_until(is_firing, patience_seconds=PATIENCE_SECONDS)

    async def is_quiet(self) -> None:
        """Wait until no alert is left; all are checked each second."""

        async def is_so() -> bool:
            return not await self.find_alerts()

        await wait_until(is_so, patience_seconds=PATIENCE_SECONDS)

    async def ask(self, times: int, mode: str = "good") -> set[str]:
        """Ask the question so often while the model works in a mode; return the outcomes."""
        self.model.mode = mode
        turns = asyncio.Semaphore(AT_ONCE)

        async def send() -> str:
            number = next(self._numbers)
            sent = {"text": QUESTION, "message_id": f"m{number}"}
            async with turns:
                answer = await self.http.post(f"/v1/conversations/c{number}/messages", json=sent)
            return str(answer.json().get("outcome", answer.text))

        outcomes = set(await asyncio.gather(*(send() for _ in range(times))))
        self.model.mode = "good"
        return outcomes

    async def is_up(self) -> None:
        """Wait until the gateway serves requests."""

        async def is_ready() -> bool:
            try:
                return (await self.http.get("/readyz")).status_code == 200
            except httpx.TransportError:
                return False

        await wait_until(is_ready, patience_seconds=PATIENCE_SECONDS)

    async def refdesk(self, *words: str) -> str:
        """Run a command to its end."""
        process = await asyncio.create_subprocess_exec(
            *command(*words), env=self.environment, stdout=subprocess.PIPE
        )
        out, _ = await process.communicate()
        return out.decode()


Condition = Callable[[WatchedDesk], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def limit_memory(desk: WatchedDesk, *, share: float) -> AsyncIterator[None]:
    """Have Redis use this share of its memory."""
    used = (await desk.redis.info("memory"))["used_memory"]
    await desk.redis.config_set("maxmemory", int(used / share) if share else 0)
    yield
    await desk.redis.config_set("maxmemory", MEMORY_BYTES)


@asynccontextmanager
async def stop_redis(desk: WatchedDesk) -> AsyncIterator[None]:
    """Have no Redis."""
    desk.redis_server.kill()
    yield
    desk.redis_server.start()


@asynccontextmanager
async def stop_desk(desk: WatchedDesk) -> AsyncIterator[None]:
    """Have no process of the desk."""
    for process in (desk.gateway, desk.worker):
        process.kill()
    yield
    for process in (desk.gateway, desk.worker):
        process.start()
    await desk.is_up()


@asynccontextmanager
async def kill_worker(desk: WatchedDesk) -> AsyncIterator[None]:
    """Have a question wait for a worker that was killed."""
    desk.worker.kill()
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(desk.ask(1))
        yield
        desk.worker.start()
    assert asking.result() == {"answered"}


@asynccontextmanager
async def play(desk: WatchedDesk, alert: str, mode: str, outcome: str) -> AsyncIterator[None]:
    """Ask while the model has a fault until the alert fires, then while it has none."""
    while (await desk.find_alerts()).get(alert) != "firing":
        assert await desk.ask(AT_ONCE, mode) == {outcome}
    yield
    while await desk.find_alerts():
        assert await desk.ask(AT_ONCE) == {"answered"}


@asynccontextmanager
async def damage_document(desk: WatchedDesk) -> AsyncIterator[None]:
    """Read a folder with a damaged document, then without it."""
    folder = desk.data.parent / "documents"
    folder.mkdir()
    (folder / "whole.md").write_text("# Whole\n\nThis document can be read.")
    (folder / "damaged.docx").write_bytes(b"PK\x03\x04 no archive")
    await desk.refdesk("ingest", str(folder))
    yield
    (folder / "damaged.docx").unlink()
    await desk.refdesk("ingest", str(folder))


@asynccontextmanager
async def age_sources(desk: WatchedDesk) -> AsyncIterator[None]:
    """Date the last reading of every source back by more than a week."""
    path = desk.data / "sources.json"
    whole = path.read_text()
    listed = json.loads(whole)
    for source in listed["sources"]:
        source["read_at"] = time.time() - 1.1 * WEEK_SECONDS
    path.write_text(json.dumps(listed))
    yield
    path.write_text(whole)


@asynccontextmanager
async def add_dead_letter(desk: WatchedDesk) -> AsyncIterator[None]:
    """Send a worker what is no envelope; drop it from the dead letters."""
    await desk.redis.xadd(stream_key("lang", 0), {"frame": b"no envelope"})
    yield
    for letter in json.loads(await desk.refdesk("dead", "list", "--json")):
        await desk.refdesk("dead", "drop", letter["id"])


CONDITIONS: dict[str, Condition] = {
    "RefdeskIsNotScraped": stop_desk,
    "RedisHasNoLimitOfMemory": partial(limit_memory, share=0),
    "RedisMemoryFillsUp": partial(limit_memory, share=0.8),
    "RedisMemoryIsNearlyFull": partial(limit_memory, share=0.95),
    "RefdeskTakesNoQuestions": partial(limit_memory, share=2.0),
    "RefdeskBrokerDown": stop_redis,
    "RefdeskNoWorkers": kill_worker,
    "RefdeskSourcesFail": damage_document,
    "RefdeskSourcesAreOld": age_sources,
    "RefdeskDeadLetters": add_dead_letter,
    **{
        alert: partial(play, alert=alert, mode=mode, outcome=outcome)
        for alert, mode, outcome in (
            ("RefdeskModelFails", "failing", "answered"),
            ("RefdeskQualityFalls", "poor", "answered"),
            ("RefdeskQuestionsAreSlow", "slow", "answered"),
            ("RefdeskQuestionsFail", "unmarked", "failed"),
            ("RefdeskRefusesMore", "refused", "refused"),
        )
    },
}
"""What triggers each alert, in order."""


def write_configuration(folder: Path, targets: list[str]) -> Path:
    """Write the rules, with a short `for`, and what Prometheus reads besides."""
    groups = [
        {
            **group,
            "rules": [
                {**rule, **({"for": "1s"} if "for" in rule else {})} for rule in group["rules"]
            ],
        }
        for group in RULES["groups"]
    ]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "desk", "static_configs": [{"targets": targets}]}],
    }
    path = folder / "prometheus.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path


@asynccontextmanager
async def watched_desk(folder: Path) -> AsyncIterator[WatchedDesk]:
    """Start everything, Prometheus last."""
    data = folder / "data"
    data.mkdir()
    await asyncio.to_thread(ingest_example, "sms_platform", data)
    ports = [free_port() for _ in range(4)]
    gateway, worker, exporter, prometheus = (f"127.0.0.1:{port}" for port in ports)
    socket = folder / "redis.sock"
    path = write_configuration(folder, [gateway, worker, exporter])
    async with AsyncExitStack() as stack:
        model = ChangingModel("")
        await stack.enter_async_context(running_server(model))

        def make(*words: str, **environment: str) -> Process:
            process = Process(list(words), environment or None, folder / "log")
            stack.callback(process.kill)
            process.start()
            return process

        redis_server = make(
            "redis-server", "--port", "0", "--unixsocket", str(socket), "--dir", str(folder),
            "--appendonly", "yes", "--maxmemory", str(MEMORY_BYTES),
        )  # fmt: skip
        block_until(partial(answers, socket))
        settings = asks_the_server(model) | {
            "redis_url": f"unix://{socket}",
            "domain_name": DOMAIN,
            "domain_scope": TOPIC,
            "lease_seconds": 4,
            "model_timeout_seconds": 2 * SLOW_SECONDS,
            "log_level": "warning",
        }
        named = environment(
            data,
            **{
                name: setting if isinstance(setting, str) else json.dumps(setting)
                for name, setting in settings.items()
            },
        )
        redis = connect(f"unix://{socket}")
        stack.push_async_callback(redis.aclose)
        await redis.set("ballast", bytes(BALLAST_BYTES))
        desk = WatchedDesk(
            data=data,
            environment=named,
            model=model,
            redis=redis,
            prometheus=await stack.enter_async_context(client(prometheus)),
            http=await stack.enter_async_context(client(gateway)),
            redis_server=redis_server,
            gateway=make(*command("serve", "--gateway-only", "--port", str(ports[0])), **named),
            worker=make(*command("up", "--port", str(ports[1])), **named),
        )
        await desk.is_up()
        make(
            "prometheus-redis-exporter", "-redis.addr", f"unix://{socket}",
            "-web.listen-address", exporter,
        )  # fmt: skip
        make(
            "prometheus", f"--config.file={path}", f"--storage.tsdb.path={folder / 'series'}",
            f"--web.listen-address={prometheus}",
        )  # fmt: skip
        yield desk


def client(address: str) -> httpx.AsyncClient:
    """A client of one of the servers."""
    return httpx.AsyncClient(base_url=f"http://{address}", timeout=2 * PATIENCE_SECONDS)


async def test_each_alert_fires_and_resolves_and_a_healthy_desk_has_none(tmp_path: Path) -> None:
    assert set(CONDITIONS) == {rule["alert"] for rule in ALERTS}
    async with watched_desk(tmp_path) as desk:
        await desk.is_quiet()
        for name, condition in CONDITIONS.items():
            async with condition(desk):
                await desk.fires(name)
            await desk.is_quiet()
