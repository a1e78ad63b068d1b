"""No failure of a background job ends it, whichever it is, and no outage costs a message."""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    MutableMapping,
)
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from aiohttp import web
from redis.asyncio.client import Pipeline
from redis.exceptions import ConnectionError as RedisConnectionError

from broker import background_jobs
from broker.background_jobs import BackgroundJobs, Work
from broker.maintenance import loop
from broker.transport.connect import connect
from broker.transport.connection import AutoPipeliningRedis
from cli.commands.serve import answering
from config.settings import Settings
from deploy.assembly import languages, source_refresh
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.gateways.chat_gateways import (
    duty_of,
    run_chat_channel,
    turns_of,
)
from deploy.assembly.gateways.http_gateway import open_http_app
from deploy.assembly.open_records import connect_records
from deploy.assembly.runtime import Runtime, make_meter, ready_to_take_over, working
from gateway.api_keys import Scope, StoredKeys, make_key
from gateway.chat.platform_calls import Pacer
from gateway.telegram.bot_api import RATES, TelegramCalls
from gateway.telegram.channel import TelegramChannel
from gateway.telegram.connection import connect_bot, make_bot, receive_updates
from knowledge.source_registry import SourceRegistry, SourceSpec
from notifications import mail_replies, webhooks
from notifications.webhooks import ENDED, RATED, SOURCE_FAILED
from records import recorder
from tests.desk.conftest import _settings_of_our_own, library, own_library
from tests.support.app_harness import ROOT, settings_of
from tests.support.fake_telegram import TOKEN, BotApi, bot_api
from tests.support.mail_server import MailServer, run_mail_server
from tests.support.mailbox_server import PASSWORD, USER, MailboxServer, run_mailbox_server
from tests.support.ports import free_port
from tests.support.waiting import wait_until
from tests.test_project_rules import PACKAGES

__all__ = ["_settings_of_our_own", "library", "own_library"]

pytestmark = [pytest.mark.redis, pytest.mark.slow, pytest.mark.timeout(600)]

SECRET = "whsec_bmV3IHNlY3JldCBvZiB0aGUgd2ViaG9va3Mh"  # noqa: S105 - of this test
NO_JOB = "tasks without a job"
OUTAGES = 2
"""Each command of a job fails once before it is sent, and once after it was executed."""
ACTS = 4
PERSON = f"{USER}@desk.test"
WITHOUT_COMMANDS = {"warm_index", "settlements", "gap_announcements", "heartbeats", "job_reports"}
"""Jobs that find nothing to send here; `heartbeats` has connections without a client."""
ELSEWHERE = {"health_turns", "warm_quarantine", "index_takeover"}
"""The jobs of `refdesk worker` and `refdesk ask` alone; they send no command."""
FAILURES = ["OutageError: 1", "OutageError: 2"]
QUICK: tuple[tuple[Any, str, float], ...] = (
    (source_refresh, "CHECK_SECONDS", 0.1),
    (languages, "FRESH_SECONDS", 0.1),
    (mail_replies, "POLL_SECONDS", 0.1),
    (webhooks, "LEASE_SECONDS", 1),
    (webhooks, "AWAY_SECONDS", 0.1),
    (recorder, "LONGEST_PAUSE_SECONDS", 0.1),
    (loop, "LONGEST_SECONDS", 0.5),
)
"""Pauses that would only make the test longer."""

Job = tuple[BackgroundJobs, str]
JOB: ContextVar[str] = ContextVar("JOB", default="")


@dataclass
class Outages:
    """Lets each command of each job fail, and notes the calls by job and command."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    logged: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    failed: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    """The jobs of which no command has succeeded since their last outage."""
    is_armed: bool = False

    async def send(self, command: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Send a command of the current job, or fail."""
        if not self.is_armed or not (job := JOB.get()):
            return await call()
        self.calls[job, command] += 1
        number = self.calls[job, command]
        if number <= OUTAGES:
            self.failed.add(job)
            self.failing.add(job)
        if number == 1:
            raise RedisConnectionError("outage before the command")
        answer = await call()
        if number == OUTAGES:
            raise RedisConnectionError("outage after the command")
        self.failing.discard(job)
        return answer

    def log(self, _logger: Any, level: str, event: MutableMapping[str, Any]) -> Any:
        """Note that a job logged something; a processor of structlog."""
        self.logged[JOB.get()].add(f"{level} {event['event']}")
        raise structlog.DropEvent


@pytest.fixture
def outages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Outages]:
    """Outages of every client of Redis in this process."""
    made = Outages()
    client_class: Any = AutoPipeliningRedis
    originals = {name: getattr(client_class, name) for name in ("evalsha", "eval")}
    execute, execute_all = client_class.execute_command, Pipeline.execute
    attempt = BackgroundJobs.attempt

    def failing(name: str) -> Any:
        async def call(client: Any, script: str, *given: Any) -> Any:
            return await made.send(
                f"{name} {script[:8]}", lambda: originals[name](client, script, *given)
            )

        return call

    async def execute_command(client: Any, *given: Any, **options: Any) -> Any:
        return await made.send(str(given[0]), lambda: execute(client, *given, **options))

    async def execute_pipeline(pipeline: Any, *given: Any, **options: Any) -> Any:
        names = "+".join(dict.fromkeys(str(item[0][0]) for item in pipeline.command_stack))
        return await made.send(names, lambda: execute_all(pipeline, *given, **options))

    async def attempt_job(jobs: BackgroundJobs, name: str, work: Work) -> bool:
        JOB.set(name)
        return await attempt(jobs, name, work)

    for name in originals:
        monkeypatch.setattr(AutoPipeliningRedis, name, failing(name))
    monkeypatch.setattr(AutoPipeliningRedis, "execute_command", execute_command)
    monkeypatch.setattr(Pipeline, "execute", execute_pipeline)
    monkeypatch.setattr(BackgroundJobs, "attempt", attempt_job)
    for module, name, seconds in QUICK:
        monkeypatch.setattr(module, name, seconds)
    structlog.configure(processors=[made.log], wrapper_class=structlog.BoundLogger)
    token = JOB.set("")
    yield made
    JOB.reset(token)


class OutageError(Exception):
    """A failure that no job expects."""


@dataclass
class Failures:
    """Lets the first attempts of each job fail, and notes what is logged of them."""

    attempts: Counter[Job] = field(default_factory=Counter)
    logged: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def of(self, job: Job, work: Work) -> Work:
        """Return the work of the next attempt of a job."""
        self.attempts[job] += 1
        number = self.attempts[job]

        async def fail() -> None:
            raise OutageError(str(number))

        return work if number > len(FAILURES) else fail

    def are_over(self, jobs: Iterable[Job]) -> bool:
        """Whether each of these jobs runs again after its failures."""
        return all(self.attempts[job] > len(FAILURES) for job in jobs)

    def log(self, _logger: Any, _level: str, event: MutableMapping[str, Any]) -> Any:
        """Note the logged failures; a processor of structlog."""
        if event["event"] == "job_failed":
            self.logged[event["job"]].append(event["error"])
        raise structlog.DropEvent


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> Failures:
    """Failures of every job that is started from now on, with short pauses before its restart."""
    made, attempt = Failures(), BackgroundJobs.attempt

    async def attempt_job(jobs: BackgroundJobs, name: str, work: Work) -> bool:
        return await attempt(jobs, name, made.of((jobs, name), work))

    monkeypatch.setattr(BackgroundJobs, "attempt", attempt_job)
    for module, name, seconds in (*QUICK, (background_jobs, "FIRST_PAUSE_SECONDS", 0.01)):
        monkeypatch.setattr(module, name, seconds)
    structlog.configure(processors=[made.log], wrapper_class=structlog.BoundLogger)
    return made


@asynccontextmanager
async def receive_webhooks() -> AsyncIterator[tuple[str, list[tuple[str, Any]]]]:
    """Provide the address of a receiver, and the id and the body of each event that arrived."""
    received: list[tuple[str, Any]] = []

    async def handle(request: web.Request) -> web.Response:
        received.append((request.headers["webhook-id"], await request.json()))
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook", received
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serve(settings: Settings, telegram: str) -> AsyncIterator[tuple[Runtime, Any]]:
    """Run what `refdesk serve` and `refdesk telegram` run; provide the application over HTTP."""
    async with AsyncExitStack() as stack:
        enter, meter = stack.enter_async_context, make_meter()
        runtime = await enter(answering(settings, alone=False, records=True, meter=meter))
        app = await enter(open_http_app(runtime, asyncio.Event(), registry=meter.registry))
        await enter(source_refresh.refresh(runtime, None))
        bot = make_bot(TOKEN, url=telegram)
        me = await enter(connect_bot(bot))
        calls = TelegramCalls(bot, Pacer(await enter(turns_of(runtime, "telegram")), RATES))
        channel = await enter(
            run_chat_channel(runtime, lambda texts: TelegramChannel(calls, texts), secret=TOKEN)
        )
        duty = await enter(duty_of(runtime, "telegram", "polling"))
        await enter(receive_updates(calls, me, channel, channel.texts, how=duty))
        yield runtime, app


@dataclass
class Visitors:
    """People who ask, rate, and ask for a person, over HTTP and in Telegram."""

    http: httpx.AsyncClient
    api: BotApi
    mail: MailServer
    mailbox: MailboxServer
    registry: SourceRegistry
    folder: Path
    asked: list[str] = field(default_factory=list)
    """The ids of the messages over HTTP; their numbers are those of the chats in Telegram."""

    async def act(self) -> None:
        """Do once whatever concerns a background job."""
        number = len(self.asked) + 1
        await self.add_source(number)
        self._say_in_telegram(number)
        path = f"/v1/conversations/c{number}"
        message_id = (await self._post(f"{path}/messages", text="What is an API key?"))[
            "message_id"
        ]
        self.asked.append(message_id)
        await self._post(f"{path}/messages/{message_id}/feedback", rating="down")
        assert (await self._post(f"{path}/handover", message_id=message_id))["sent"]
        await self._answer_by_mail(number)

    async def scrape_until_recovered(self, outages: Outages) -> bool:
        """Scrape the metrics; return whether a command of each job succeeded after its outages."""
        assert (await self.http.get("/metrics")).status_code == 200
        return {"telemetry", "queue_depths"} <= outages.failed and not outages.failing

    async def list_two_answers(self, number: int) -> list[str]:
        """Return the answers in a conversation over HTTP if there are at least two."""
        messages = (await self.http.get(f"/v1/conversations/c{number}")).json()["messages"]
        answers = [item["answer"]["text"] for item in messages if item["status"] == "ended"]
        return answers if len(answers) > 1 else []

    def are_recorded(self, settings: Settings) -> bool:
        """Whether every message over HTTP and in Telegram is recorded."""
        store = connect_records(settings.records_url, settings.refdesk_data)
        records = list(store.read_all())
        store.close()
        chats = {f"telegram/{number + 1}:0" for number in range(len(self.asked))}
        return chats <= {record.conversation_id for record in records} and {*self.asked} <= {
            record.message_id for record in records
        }

    def are_announced(self, received: list[tuple[str, Any]], kind: str) -> bool:
        """Whether webhooks told of every message over HTTP."""
        return {*self.asked} <= {message for _, message in name_ids(received, kind)}

    def are_sources_read(self) -> bool:
        """Whether every source was read without a failure."""
        return all(source.read_at and not source.failed for source in self.registry.read().sources)

    async def _post(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.http.post(path, json=body)
        assert answer.status_code in {200, 202, 204}, answer.text
        return dict(answer.json()) if answer.content else {}

    async def _answer_by_mail(self, number: int) -> None:
        reply = EmailMessage()
        reply["From"], reply["To"] = PERSON, self.mail.messages[-1]["Reply-To"]
        reply["Message-ID"] = f"<{number}@desk.test>"
        reply.set_content(f"Answer {number}")
        await self.mailbox.put(reply)

    def _say_in_telegram(self, number: int) -> None:
        person = {"id": number, "is_bot": False, "first_name": "Ada"}
        chat = {"id": number, "type": "private"}
        message = {"message_id": 1, "date": 1, "chat": chat, "from": person, "text": "/help"}
        self.api.queue_update({"update_id": 9000 + number, "message": message})

    async def add_source(self, number: int) -> None:
        """Add a folder: to be read by its schedule, or by a request if the number is even."""
        folder = self.folder / str(number)
        folder.mkdir(parents=True)
        (folder / "page.md").write_text(f"# Page {number}\n\nThis page has the number {number}.")
        spec = SourceSpec(place=str(folder))
        if number % 2:
            self.registry.add(spec, "0 0 * * *")
            return
        self.registry.add(spec, "")
        [source] = [
            registered_source
            for registered_source in self.registry.read().sources
            if registered_source.spec == spec
        ]
        await self._post(f"/v1/sources/{source.id}/sync")


def find_jobs() -> set[str]:
    """Return the names, or beginnings of names, of the background jobs that the code starts."""
    started = re.compile(r"(?:running|supervise|attempt)\(\s*f?\"([a-z_]+)")
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {name for path in paths for name in started.findall(path.read_text(encoding="utf-8"))}


@pytest.mark.long
async def test_a_job_goes_on_after_an_outage_at_any_of_its_commands(
    own_library: Path, redis_url: str, outages: Outages
) -> None:
    async with open_visitors(own_library, redis_url) as (visitors, runtime, received):
        outages.is_armed = True
        for _ in range(ACTS):
            await visitors.act()
        await wait_until(partial(visitors.scrape_until_recovered, outages))
        outages.is_armed = False
        numbers = range(1, len(visitors.asked) + 1)

        await wait_until(partial(visitors.are_recorded, runtime.settings))
        for kind in (ENDED, RATED):
            await wait_until(partial(visitors.are_announced, received, kind))
            assert all(len(ids) == 1 for ids in name_ids(received, kind).values())
        for number in numbers:
            # The answer to the question, and that of a person by e-mail.
            answers = await wait_until(partial(visitors.list_two_answers, number))
            assert answers[1].endswith(f"Answer {number}")
            assert len(answers) == 2
            texts = await wait_until(partial(visitors.api.texts, number))
            assert len(texts) == 1
        await wait_until(visitors.are_sources_read)
        assert SOURCE_FAILED not in {body["type"] for _, body in received}
        names = {state.name for state in runtime.jobs.states}

    assert names - outages.failed == WITHOUT_COMMANDS
    assert {job for job in find_jobs() if job not in " ".join(names)} == ELSEWHERE


async def test_each_failure_of_any_job_is_logged_and_counted_and_the_job_starts_again(
    own_library: Path, redis_url: str, failures: Failures
) -> None:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        visitors, served, _ = await enter(open_visitors(own_library, redis_url))
        worker = await enter(working(served.settings, ["manager"], health_port=free_port()))
        await enter(ready_to_take_over(worker, ()))
        for number in range(len(FAILURES) + 1):
            await visitors.add_source(2 * number)
        jobs = [
            (runtime.jobs, state.name)
            for runtime in (served, worker)
            for state in runtime.jobs.states
        ]

        await wait_until(lambda: failures.are_over(jobs), patience_seconds=None)
        states = [state for item in (served, worker) for state in item.jobs.states]

    names = Counter(state.name for state in states)
    assert {job for job in find_jobs() if job not in " ".join(names)} == set()
    assert {name: Counter(errors) for name, errors in failures.logged.items()} == {
        name: Counter(FAILURES * count) for name, count in names.items()
    }
    assert {(state.failures, state.error, state.is_paused) for state in states} == {
        (len(FAILURES), FAILURES[-1], False)
    }


def name_ids(received: list[tuple[str, Any]], kind: str) -> dict[tuple[str, str], set[str]]:
    """Return the ids of the events of a kind by message."""
    ids: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for event_id, body in received:
        if body["type"] == kind:
            data = body["data"]
            ids[data["conversation_id"], data["message_id"]].add(event_id)
    return ids


@asynccontextmanager
async def open_visitors(
    folder: Path, redis_url: str
) -> AsyncIterator[tuple[Visitors, Runtime, list[tuple[str, Any]]]]:
    """Open the desk with all its servers, and provide its visitors and the webhooks received."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        client: Any = await enter(connect(redis_url))
        await client.flushall()
        key, token = make_key("secret", tenant="default", scopes=tuple(Scope))
        await StoredKeys(client).put(key)
        mail, mailbox = stack.enter_context(run_mail_server()), await enter(run_mailbox_server())
        (hook, received), api = await enter(receive_webhooks()), await enter(bot_api())
        settings = settings_of(
            folder,
            redis_url=redis_url,
            records_days=1,
            health_port=free_port(),
            public_url="http://desk.test",
            webhooks={"crm": {"url": hook, "secret": SECRET, "private": True}},
            handover_email=PERSON,
            smtp_host="127.0.0.1", smtp_port=mail.port, smtp_security="none",
            imap_host="127.0.0.1", imap_port=mailbox.port, imap_user=USER,
            imap_password=PASSWORD, imap_security="none",
        )  # fmt: skip
        JOB.set(NO_JOB)
        runtime, app = await enter(serve(settings, api.url))
        JOB.set("")
        http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app),
            base_url="http://desk.test",
            headers={"Authorization": f"Bearer {token}"},
        )
        registry = open_source_registry(settings.data_place)
        await enter(http)
        yield Visitors(http, api, mail, mailbox, registry, folder / "more"), runtime, received
