"""One process of `refdesk serve` outlives hostile e-mails, a hostile mail server and an outage."""

import asyncio
import json
import re
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from broker.transport.connect import connect
from gateway.api_keys import Scope, StoredKeys, make_key
from tests.desk.conftest import _settings_of_our_own, library, own_library
from tests.faults.servers import Server
from tests.support.app_harness import DOMAIN, TOPIC, command, environment, refdesk
from tests.support.mailbox_server import PASSWORD, USER, MailboxServer, run_mailbox_server
from tests.support.waiting import wait_until
from worker.shutdown import GRACE_SECONDS

__all__ = ["_settings_of_our_own", "library", "own_library"]

pytestmark = [
    pytest.mark.redis, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)
]  # fmt: skip

SECRET = "whsec_bmV3IHNlY3JldCBvZiB0aGUgd2ViaG9va3Mh"  # noqa: S105 - of this test
QUESTION = {"text": "What is an API key?"}
TO = b"To: desk+x@desk.test\r\n"
HOSTILE = (
    TO + b"Content-Type: text/plain; a*\r\n\r\nx",
    TO + b"From: " + b"a@a.test, " * 100_000 + b"\r\nSubject: x\r\n\r\nx",
)


@asynccontextmanager
async def relay_hostile_answers(mailbox: MailboxServer) -> AsyncIterator[int]:
    """Provide the port of a mail server whose first connection ends with a literal of any size.

    On the later ones it sends changed flags between its answers, as other clients may cause.
    """
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        if connections == 1:
            writer.write(b"* OK hello\r\n* 1 FETCH (X {99999999999999999999999}\r\n")
            await reader.read(1)
            writer.close()
            return
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", mailbox.port)
        with suppress(ConnectionError):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_copy(reader, server_writer))
                tasks.create_task(_copy(server_reader, writer, b"* 1 FETCH (FLAGS (\\Recent))\r\n"))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, before: bytes = b""
) -> None:
    while data := await reader.read(2_000_000):
        writer.write(before + data if re.match(rb"\* \d+ FETCH", data) else data)
        await writer.drain()
    writer.close()


@dataclass
class Receiver:
    """Receives webhooks; the first one waits until `goes_on`."""

    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def handle(self, _request: web.Request) -> web.Response:
        self.arrived.set()
        await self.goes_on.wait()
        return web.Response()


@asynccontextmanager
async def receive_webhooks() -> AsyncIterator[Receiver]:
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/hook", receiver.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        yield receiver
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving(folder: Path, settings: dict[str, str]) -> AsyncIterator[Any]:
    """Run `refdesk serve`; provide the process, and a client without a key."""
    with (folder / "serve.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command("serve", "--port", "0"),
            cwd=folder,
            env=environment(folder, **settings),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=log,
        )
    try:
        assert process.stdout is not None
        results = re.search(rb"http://\S+:\d+", await process.stdout.readline())
        assert results is not None, (folder / "serve.log").read_text()
        async with httpx.AsyncClient(base_url=results[0].decode(), timeout=None) as client:
            yield process, client
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


async def test_one_process_outlives_hostile_mails_and_an_outage_with_a_webhook_in_flight(
    own_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key, token = make_key("secret", tenant="default", scopes=tuple(Scope))
    headers = {"Authorization": f"Bearer {token}"}
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(Server(tmp_path_factory.mktemp("r"), "--appendfsync", "always"))
        async with connect(redis.url) as client:
            await StoredKeys(client).put(key)
        receiver = await stack.enter_async_context(receive_webhooks())
        mailbox = await stack.enter_async_context(run_mailbox_server())
        for mail in HOSTILE:
            await mailbox.put(mail)
        hook = {"url": receiver.url, "secret": SECRET, "private": True}
        settings: dict[str, Any] = {
            "redis_url": redis.url,
            "domain_name": DOMAIN,
            "domain_scope": TOPIC,
            "public_url": "http://desk.test",
            "allowed_hosts": '["127.0.0.1"]',
            "webhooks": json.dumps({"crm": hook}),
            "handover_email": "desk@desk.test",
            "smtp_host": "127.0.0.1",
            "imap_host": "127.0.0.1",
            "imap_port": str(await stack.enter_async_context(relay_hostile_answers(mailbox))),
            "imap_user": USER,
            "imap_password": PASSWORD,
            "imap_security": "none",
        }
        process, http = await stack.enter_async_context(serving(own_library, settings))
        http.headers.update(headers)

        async def is_ready(status: int) -> bool:
            return bool((await http.get("/readyz")).status_code == status)

        assert await ask(http) == 200
        await receiver.arrived.wait()
        redis.kill()
        await wait_until(lambda: is_ready(503))
        receiver.goes_on.set()
        refused = await ask(http)
        redis.start()
        await wait_until(lambda: is_ready(200))

        assert (refused, await ask(http)) == (503, 200)
        assert await wait_until(mailbox.is_read)
        metrics = (await http.get("/metrics")).text
        assert re.search(r'refdesk_job_failures_total{job="mail_replies"} [1-9]', metrics)
        assert 'refdesk_job_paused{job="mail_replies"} 0.0' in metrics

        async def is_shown() -> bool:
            result = await asyncio.to_thread(partial(refdesk, own_library, "doctor", **settings))
            return "OverflowError" in result.stdout and "could not be read" in result.stdout

        assert await wait_until(is_shown)
        assert process.returncode is None


@asynccontextmanager
async def hold_model_calls() -> AsyncIterator[tuple[asyncio.Event, str]]:
    """Provide the address of a model server that never answers, and whether it was asked."""
    asked = asyncio.Event()

    async def hold(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        asked.set()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    async with server:
        yield asked, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


@pytest.mark.parametrize("fault", ["killed", "silent"])
async def test_a_process_whose_redis_is_gone_ends_in_one_grace_period(
    own_library: Path, tmp_path_factory: pytest.TempPathFactory, fault: str
) -> None:
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(Server(tmp_path_factory.mktemp("r")))
        asked, address = await stack.enter_async_context(hold_model_calls())
        settings = {
            "redis_url": redis.url,
            "gen_model": "m@held",
            "compatible_servers": json.dumps({"held": {"base_url": address}}),
            "model_timeout_seconds": "300",
        }
        process, http = await stack.enter_async_context(serving(own_library, settings))
        sent = await http.post(
            "/v1/conversations/c1/messages", json=QUESTION, headers={"Prefer": "respond-async"}
        )
        assert sent.status_code == 202
        await asked.wait()
        if fault == "killed":
            redis.kill()
        else:
            redis.stop()
        began = time.monotonic()
        process.terminate()
        await process.wait()

        # The operating system frees the memory of the process after its period.
        assert time.monotonic() - began < 2 * GRACE_SECONDS


async def ask(http: httpx.AsyncClient) -> int:
    """Return the status of a question."""
    sent = await http.post("/v1/conversations/c1/messages", json=QUESTION)
    return sent.status_code
