"""Several processes ingest into one index on a server, whichever of them are killed.

No Qdrant server is run: the index is the local mode of its client behind the server's interface.
"""

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from config.model_settings import CompatibleServer
from config.settings import Settings
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.runtime import connect_runtime
from deploy.generate.redis_users import OPERATOR, READER, WRITER
from gateway.connections.server import listening, serving
from knowledge.ingestion_report import IngestionResult, PlainReport
from knowledge.source_registry import parse_source
from memory.presence import RedisPresence
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import settings_of
from tests.support.command_line import environment_of
from tests.support.guarded_redis import GuardedRedis, guarded
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.qdrant_front import QdrantFront
from tests.support.waiting import wait_until, within

__all__ = ["guarded"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.redis,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
]
PAGES = 16
GATE = "The gate of this ingestion"
"""A text with it gets its vectors only when the gate is opened."""
USERS = {"read": READER, "write": WRITER}


class Vendor(ModelServer):
    """Embeds each text as its length, and counts how often each text was answered."""

    def __init__(self) -> None:
        super().__init__("")
        self.paid: Counter[str] = Counter()
        self.last_call: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_at_gate = asyncio.Event()

    def count_pages(self) -> list[int]:
        """Return how often each page was embedded; other texts calibrate the index."""
        return [count for text, count in self.paid.items() if "\nWhat page" in text]

    def choose_response(self, received: Received) -> Response:
        texts = received.body["input"]
        answer = OpenAI().vectors([[1.0, float(len(text))] for text in texts])
        if any(GATE in text for text in texts) and not self.gate.is_set():
            self.is_at_gate.set()
            return Response(ends="never")
        self.paid.update(texts)
        self.last_call = texts
        return answer


class WriteGate:
    """Holds the requests that write points back, once half of the pages are there."""

    def __init__(self, app: Any) -> None:
        self.gate, self.is_at_gate = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self._app = app
        self._writes = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope.get("method") == "PUT" and scope["path"].endswith("/points"):
            self._writes += 1
            if self._writes > PAGES and not self.gate.is_set():
                self.is_at_gate.set()
                await self.gate.wait()
        await self._app(scope, receive, send)


@dataclass
class Installation:
    """A Redis, an index on a server, a vendor, and the processes that ingest."""

    settings: Settings
    redis: GuardedRedis
    vendor: Vendor
    gate: WriteGate
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def start(self) -> list["subprocess.Popen[bytes]"]:
        """Start a pod that reads and one that writes, each as its user of Redis."""
        return [self.start_one(role) for role in USERS]

    def start_one(self, role: str) -> "subprocess.Popen[bytes]":
        """Start a pod of a role."""
        settings = self.settings
        own = settings.compatible_servers["own"]
        environment = {
            **environment_of(settings.refdesk_data),
            "REDIS_URL": self.redis.endpoint(USERS[role]).url,
            "QDRANT_URL": str(settings.qdrant_url),
            "EMBEDDING_MODEL": settings.embedding_model,
            "EMBEDDING_DIMENSIONS": "2",
            "COMPATIBLE_SERVERS": json.dumps({"own": {"base_url": own.base_url, "api_key": "key"}}),
            "LEASE_SECONDS": str(settings.lease_seconds),
            "INGESTION_READERS": "1",
            "HEALTH_PORT": "0",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "worker", "--role", role],
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    async def wait_until_working(self) -> None:
        """Wait until every process that runs has announced itself."""

        async def are_known() -> bool:
            living = await RedisPresence(self.redis.operator).living()
            running = {process.pid for process in self.processes if process.poll() is None}
            return running <= {worker.pid for worker in living}

        await wait_until(are_known, patience_seconds=120)

    async def ingest(self, folder: Path) -> IngestionResult:
        """Ingest as the command does."""
        report = PlainReport(lambda _line: None)
        return await run_ingestion(self.settings, [parse_source(str(folder))], report)

    async def read_index(self) -> tuple[list[str], int]:
        """Return the ids of the documents, and the number of their chunks that are there."""
        async with open_knowledge(self.settings) as knowledge:
            listed = sorted(document.id for document in await knowledge.index.list_documents())
            written = [await knowledge.index.read_written(name) for name in listed]
        return listed, sum(len(found.chunks) for found in written if found is not None)

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
async def installation(tmp_path: Path, guarded: GuardedRedis) -> AsyncIterator[Installation]:
    front, vendor = QdrantFront(), Vendor()
    gate = WriteGate(front.app)
    listener = listening("127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serving(gate, listener, asyncio.Event()))
        await stack.enter_async_context(running_server(vendor))
        own = CompatibleServer(base_url=f"{vendor.url}/v1", api_key=SecretStr("key"))
        settings = settings_of(
            tmp_path / "data",
            redis_url=guarded.endpoint(OPERATOR).url,
            qdrant_url=f"http://127.0.0.1:{listener.getsockname()[1]}",
            embedding_model="lengths@own",
            embedding_dimensions=2,
            compatible_servers={"own": own},
            lease_seconds=6.0,
        )
        # The operator sets a new Redis up.
        async with connect_runtime(settings):
            pass
        made = Installation(settings, guarded, vendor, gate)
        stack.callback(made.end)
        yield made
    assert front.rejected == []
    assert await guarded.refusals() == []
    await front.close()


def write_pages(folder: Path, pages: int = PAGES, gate: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(pages):
        text = f"What page {number} says. {gate if number == pages // 2 else ''}"
        (folder / f"{number:04}.md").write_text(f"# Page {number}\n\n{text}\n")
    return folder


async def test_documents_are_read_and_written_by_other_processes_and_paid_for_once(
    installation: Installation, tmp_path: Path
) -> None:
    folder = write_pages(tmp_path / "docs")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    installation.start()
    await installation.wait_until_working()

    result = await installation.ingest(folder)

    assert (result.added, len(result.failed), result.chunks) == (PAGES, 1, PAGES)
    documents, chunks = await installation.read_index()
    assert (len(documents), chunks) == (PAGES, PAGES)
    assert installation.vendor.count_pages() == [1] * PAGES
    assert await installation.redis.operator.keys("rd:parcel:*") == []
    assert await installation.redis.operator.keys("rd:paid:*") == []

    (folder / "0000.md").unlink()
    again = await installation.ingest(folder)

    assert (again.added, again.unchanged, again.removed) == (0, PAGES - 1, 1)


@pytest.mark.parametrize("stage", ["vectors", "index"])
async def test_a_killed_pod_loses_no_document_and_nothing_is_paid_for_twice(
    stage: str, installation: Installation, tmp_path: Path
) -> None:
    folder = write_pages(tmp_path / "docs", gate=GATE)
    vendor, gate = installation.vendor, installation.gate
    (vendor.gate if stage == "vectors" else gate.gate).clear()
    killed = installation.start()
    await installation.wait_until_working()

    async with asyncio.TaskGroup() as tasks:
        ingesting = tasks.create_task(installation.ingest(folder))
        async with within(120):
            await (vendor if stage == "vectors" else gate).is_at_gate.wait()
        for process in killed:
            process.send_signal(signal.SIGKILL)
        # What the killed process had sent to the index arrives while another one writes.
        installation.start()
        await installation.wait_until_working()
        vendor.gate.set()
        gate.gate.set()
        result = await ingesting

    assert (result.added, result.failed, result.chunks) == (PAGES, (), PAGES)
    documents, chunks = await installation.read_index()
    assert (len(documents), chunks) == (PAGES, PAGES)
    assert vendor.count_pages() == [1] * PAGES


async def test_a_stopped_ingestion_leaves_nothing_to_do_and_the_next_one_goes_on(
    installation: Installation, tmp_path: Path
) -> None:
    folder = write_pages(tmp_path / "docs", gate=GATE)
    vendor = installation.vendor
    vendor.gate.clear()
    installation.start()
    await installation.wait_until_working()
    streams = [f"rd:{{0}}:stream:{role}" for role in USERS]

    async def is_idle() -> bool:
        return not any([await installation.redis.operator.xlen(name) for name in streams])

    async with asyncio.TaskGroup() as tasks:
        ingesting = tasks.create_task(installation.ingest(folder))
        async with within(120):
            await vendor.is_at_gate.wait()
        ingesting.cancel()
    # An order that has started ends by itself, when its vendor answers.
    vendor.gate.set()
    await wait_until(is_idle)

    result = await installation.ingest(folder)

    assert result.added + result.unchanged == PAGES
    assert vendor.count_pages() == [1] * PAGES
    assert await installation.redis.operator.keys("rd:parcel:*") == []


@pytest.mark.long
@pytest.mark.timeout(5400)
@pytest.mark.parametrize(("pages", "kills"), [(100, 5), (1000, 50)])
async def test_every_document_is_written_and_paid_for_once_however_often_pods_are_killed(
    pages: int, kills: int, installation: Installation, tmp_path: Path
) -> None:
    folder, vendor = write_pages(tmp_path / "docs", pages), installation.vendor
    chosen = random.Random(49)
    unanswered: Counter[str] = Counter()
    running = dict(zip(USERS, installation.start(), strict=True))
    await installation.wait_until_working()

    async with asyncio.TaskGroup() as tasks:
        ingesting = tasks.create_task(installation.ingest(folder))
        for _ in range(kills):
            goal = vendor.paid.total() + chosen.randint(1, pages // kills)

            def is_there(goal: int = goal) -> bool:
                return vendor.paid.total() >= goal or ingesting.done()

            await wait_until(is_there, patience_seconds=None)
            role = chosen.choice(list(running))
            running[role].kill()
            if role == "write":
                # A kill during a call leaves nobody who could keep its answer.
                unanswered.update(vendor.last_call)
            running[role] = installation.start_one(role)
        result = await ingesting

    assert (result.added, result.failed, result.chunks) == (pages, (), pages)
    documents, chunks = await installation.read_index()
    assert (len(documents), chunks) == (pages, pages)
    paid = Counter({text: count for text, count in vendor.paid.items() if "\nWhat page" in text})
    assert len(paid) == pages
    assert paid - Counter(dict.fromkeys(paid, 1)) <= unanswered
