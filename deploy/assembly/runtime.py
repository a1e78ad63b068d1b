"""Assembles the desk from the concrete classes that this package chooses."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from socket import gethostname
from typing import TYPE_CHECKING

import structlog

from agents.roster import AGENTS
from broker.background_jobs import BackgroundJobs
from broker.embedded_redis import Endpoint, run_embedded_redis
from broker.errors import BrokerUnavailableError
from broker.lease_renewer import InLoopRenewal, LeaseRenewal
from broker.maintenance.erasure import Rewriting
from broker.ports import Eraser
from broker.producer import AdmissionPolicy
from broker.redis_broker import RedisBroker
from config.settings import Settings
from config.texts import load_texts
from deploy.assembly.agent_factory import make_worker_specs
from deploy.assembly.assistant_prompts import PromptFolders
from deploy.assembly.job_reports import publishing_jobs
from deploy.assembly.languages import publishing_languages
from deploy.assembly.observing import needs_meter, observing
from deploy.assembly.role_slots import INSTANCES, count_smallest_role
from deploy.errors import CommandError
from deploy.logging_setup import configure_logging, secrets_of
from envelope.role import INGESTING, Role
from gateway.dead_letters import DeadLetters
from gateway.desk import Desk
from knowledge.data_folder import protect_data_folder
from knowledge.errors import IndexOwned
from llm.port import Model
from manager.flows import NEWEST
from memory.presence import RedisPresence
from worker.agent_handler import make_poison_notice
from worker.controls import ProcessControls
from worker.isolation import Quarantine
from worker.port import Handler
from worker.process import WorkerProcess, WorkerSpec
from worker.shutdown import GRACE_SECONDS, GracePeriod

if TYPE_CHECKING:
    from deploy.assembly.knowledge import Knowledge
    from worker.metrics import PrometheusMeter

log = structlog.get_logger("worker")

INGESTION, READ, WRITE = Role.INGESTION.value, Role.READ.value, Role.WRITE.value
ROLES: tuple[str, ...] = tuple(role.value for role in Role if role.value in INSTANCES)
KNOWING = frozenset({INGESTION, WRITE, *(spec.role.value for spec in AGENTS if spec.needs_index)})
"""The roles that need the index."""
HOUR_SECONDS = 3600
DAY_SECONDS = 24 * HOUR_SECONDS
REWRITE_SECONDS = 20.0
"""How long a command that is ending waits while its embedded server rewrites the append-only
file.
"""
REWRITE_LOOK_SECONDS = 0.05
STUCK_DEADLINES = 2.0
"""The event loop counts as stuck if it is blocked for this multiple of a question's time limit."""
OWNER_CHECK_SECONDS = 0.5
"""How often a process checks whether the owner of the index is still running."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A connection to Redis with its broker; `knowledge` is set if this process has opened the
    index.

    `jobs` runs all background jobs of the process. `grace` is the period in which this process
    shuts down; `report_waiting` is called if that takes long enough to be noticed.
    """

    endpoint: Endpoint
    broker: RedisBroker
    settings: Settings
    knowledge: "Knowledge | None" = None
    jobs: BackgroundJobs = field(default_factory=BackgroundJobs)
    grace: GracePeriod = field(default_factory=GracePeriod)
    report_waiting: Callable[[], None] = lambda: None


@asynccontextmanager
async def connect_runtime(
    settings: Settings, *, endpoint: Endpoint | None = None
) -> AsyncIterator[Runtime]:
    """Connect to Redis: to `endpoint` if given, to `REDIS_URL` if set, or to the data folder's own
    server.
    """
    async with AsyncExitStack() as stack:
        if endpoint is None and settings.redis_url is not None:
            endpoint = Endpoint(url=settings.redis_url, durable=True)
        owned = endpoint is None
        if endpoint is None:
            protect_data_folder(settings.refdesk_data)
            endpoint = await stack.enter_async_context(run_embedded_redis(settings.refdesk_data))
        broker = _broker(settings, endpoint)
        stack.push_async_callback(broker.close)
        if owned and endpoint.durable:
            stack.push_async_callback(rewrite_file, broker.eraser)
        await broker.prepare((*ROLES, *sorted(INGESTING)))
        yield Runtime(endpoint, broker, settings)


async def rewrite_file(eraser: Eraser) -> None:
    """Rewrite the append-only file before the last process exits, if anything was erased.

    If the rewrite fails, its mark remains, and the next process that starts the server repeats the
    rewrite.
    """
    with suppress(BrokerUnavailableError, TimeoutError):
        async with asyncio.timeout(REWRITE_SECONDS):
            going_on = True
            while going_on:
                going_on = await eraser.rewrite_file()
                await asyncio.sleep(REWRITE_LOOK_SECONDS if going_on else 0)


@asynccontextmanager
async def working(
    settings: Settings,
    roles: Sequence[str],
    *,
    health_port: int = 0,
    grace: GracePeriod | None = None,
) -> AsyncIterator[Runtime]:
    """Connect to Redis, and run workers for `roles`."""
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(connect_runtime(settings))
        runtime = runtime if grace is None else replace(runtime, grace=grace)
        meter = (
            make_meter() if needs_meter(settings.otel_exporter_otlp_endpoint, health_port) else None
        )
        knowledge = None
        if KNOWING & set(roles):
            from deploy.assembly.knowledge import open_knowledge

            knowledge = await stack.enter_async_context(open_knowledge(settings))
            await stack.enter_async_context(runtime.jobs.running("warm_index", knowledge.warm))
        await stack.enter_async_context(
            run_workers(runtime, roles, knowledge, health_port=health_port, meter=meter, warm=True)
        )
        registry = None if meter is None else meter.registry
        await stack.enter_async_context(observing(runtime.broker, settings, registry, runtime.jobs))
        await stack.enter_async_context(publishing_jobs(runtime.endpoint, runtime.jobs))
        yield runtime


@asynccontextmanager
async def open_desk(
    settings: Settings, *, report_waiting: Callable[[], None] = lambda: None
) -> AsyncIterator[Desk]:
    """Open a desk that can answer questions; raises `CommandError` if there are no documents."""
    async with (
        run_desk(settings, report_waiting=report_waiting) as runtime,
        observing(runtime.broker, settings, None, runtime.jobs),
    ):
        yield desk(runtime, "cli")


@asynccontextmanager
async def run_desk(
    settings: Settings,
    *,
    empty: bool = False,
    meter: "PrometheusMeter | None" = None,
    grace: GracePeriod | None = None,
    report_waiting: Callable[[], None] = lambda: None,
) -> AsyncIterator[Runtime]:
    """Provide a runtime whose questions are answered by workers in this process, or by the workers
    of a running `refdesk up`.

    Raises `CommandError` if there are no documents, unless `empty` is true. `meter` counts the work
    of the workers in this process. Without `grace`, the process waits for all running agents before
    it ends, because a model call for a question of another process would be dropped, repeated, and
    paid for again.
    """
    if grace is None:
        grace = GracePeriod(settings.agent_timeout_seconds + GRACE_SECONDS)

    def load() -> None:
        from deploy.assembly.knowledge import load_libraries

        load_libraries(settings)

    async with AsyncExitStack() as stack:
        async with _loading(load):
            runtime = await stack.enter_async_context(connect_runtime(settings))
        runtime = replace(runtime, grace=grace, report_waiting=report_waiting)
        from deploy.assembly.knowledge import open_knowledge

        try:
            knowledge = await stack.enter_async_context(open_knowledge(settings))
        except IndexOwned:
            # The process that owns the index runs the roles, and gets the question.
            await stack.enter_async_context(ready_to_take_over(runtime, ROLES, meter))
            yield runtime
            return
        if not empty and not await knowledge.has_documents():
            place = settings.qdrant_url or settings.refdesk_data.resolve()
            raise CommandError(
                f"there are no documents in {place} yet (REFDESK_DATA or QDRANT_URL determines the "
                "location); read some with: refdesk ingest PATH..."
            )
        await stack.enter_async_context(runtime.jobs.running("warm_index", knowledge.warm))
        await stack.enter_async_context(run_workers(runtime, ROLES, knowledge, meter=meter))
        yield replace(runtime, knowledge=knowledge)


def desks(runtime: Runtime, channel: str, *, result_list: str = "") -> dict[tuple[str, str], Desk]:
    """Return the desk of every assistant for `channel`, by tenant and assistant."""
    posts = [replace(runtime, settings=assistant) for assistant in runtime.settings.of_assistants()]
    return {
        (post.settings.tenant, post.settings.assistant): desk(
            post, channel, result_list=result_list
        )
        for post in posts
    }


def desk(runtime: Runtime, channel: str, *, result_list: str = "") -> Desk:
    """Return the desk of this process's tenant and first assistant for `channel`."""
    return Desk(
        runtime.broker.producer,
        runtime.broker.replies,
        tenant=runtime.settings.tenant,
        assistant=runtime.settings.assistant,
        channel=channel,
        deadline_seconds=runtime.settings.deadline_seconds,
        words=load_texts().text,
        result_list=result_list,
        keep_seconds=runtime.settings.result_seconds,
        flow=NEWEST[runtime.settings.way.value],
        ways=NEWEST,
        names_people=runtime.settings.records_people == "id",
    )


def dead_letters(runtime: Runtime) -> DeadLetters:
    """Return the object that resubmits the questions of dead-lettered messages."""
    settings = runtime.settings
    return DeadLetters(
        runtime.broker.producer,
        load_texts().text,
        settings.default_language,
        settings.deadline_seconds,
        settings.result_seconds_of,
    )


@asynccontextmanager
async def ready_to_take_over(
    runtime: Runtime, roles: Sequence[str], meter: "PrometheusMeter | None" = None
) -> AsyncIterator[None]:
    """Run workers for `roles` as soon as the owner of the index exits."""
    take_over = partial(_take_over_when_owner_exits, runtime, roles, meter)
    async with run_maintenance(runtime), runtime.jobs.running("index_takeover", take_over):
        yield


@asynccontextmanager
async def run_workers(
    runtime: Runtime,
    roles: Sequence[str],
    knowledge: "Knowledge | None",
    *,
    health_port: int = 0,
    meter: "PrometheusMeter | None" = None,
    models: Callable[[str], Model] | None = None,
    warm: bool = False,
    prompts: PromptFolders | None = None,
) -> AsyncIterator[None]:
    """Run workers for `roles`; `models` returns the model for a task, by default according to the
    settings.

    Prompts can be injected into `prompts` before and while they run. If `warm` is true, the fork
    server for suspects is started in advance; it costs a process, which only a long-running command
    needs.
    """
    settings = runtime.settings
    if settings.uses_model and models is None:
        # Imported here: a worker without a model does not need the library of vectors.
        from deploy.assembly.models import note_windows

        settings = await note_windows(settings)
    if meter is None and health_port:
        meter = make_meter()
    prompts = PromptFolders() if prompts is None else prompts
    async with AsyncExitStack() as stack:
        client = runtime.endpoint.client()
        stack.push_async_callback(client.aclose)
        quarantine = None
        if models is None and runtime.endpoint.played is None:
            # An embedded index belongs to this process alone: suspects of its roles run here.
            here = KNOWING if settings.qdrant_url is None else frozenset[str]()
            quarantine = Quarantine(
                partial(make_handler, settings, runtime.endpoint, KNOWING),
                set(roles) - here - INGESTING,
                make_poison_notice,
                preload=[__name__],
            )
            if warm:
                await stack.enter_async_context(
                    runtime.jobs.running("warm_quarantine", quarantine.warm)
                )
        worker_specs = await make_worker_specs(
            settings,
            roles,
            client,
            knowledge,
            stack,
            meter=meter,
            models=models,
            quarantine=quarantine,
            drafts=runtime.broker.drafts,
            broker=runtime.broker,
            prompts=prompts,
            lazily=meter is None and not warm,
        )
        renewal = _renewal(runtime)
        process = _process(runtime, worker_specs, renewal, meter)
        if meter is not None:
            _show_worker_specs(meter, worker_specs, process)
        if meter is not None and health_port:
            await stack.enter_async_context(
                _serve_health(runtime, process, renewal, meter, health_port)
            )
        if process.roles and runtime.endpoint.played is None:
            # Removed last, because a process that finishes its work is still alive.
            own = RedisPresence(client).of_process(gethostname(), os.getpid(), process.roles)
            set_level = partial(configure_logging, secrets=secrets_of(settings))
            controls = ProcessControls(
                process.pause, set_level, prompts.reload, level=settings.log_level
            )
            stack.push_async_callback(own.leave_quietly, runtime.grace.left)
            announce = partial(own.keep_announcing, lambda: process.paused_roles, controls.follow)
            await stack.enter_async_context(runtime.jobs.running("worker_presence", announce))
            await stack.enter_async_context(
                publishing_languages(settings, knowledge, runtime.endpoint, runtime.jobs)
            )
        await stack.enter_async_context(process.running())
        yield


def run_maintenance(runtime: Runtime) -> AbstractAsyncContextManager[None]:
    """Run the maintenance loop, even if no worker is running."""
    return _renewal(runtime).running(lambda _lost: None)


def make_meter() -> "PrometheusMeter":
    """Return the meter of this process, whose registry contains all of its metrics."""
    from worker.metrics import PrometheusMeter

    return PrometheusMeter()


@asynccontextmanager
async def make_handler(
    settings: Settings, endpoint: Endpoint, knowing: Collection[str], role: str
) -> AsyncIterator[Handler]:
    """Provide the handler for a role; this runs in the child process."""
    configure_logging(settings.log_level, secrets=secrets_of(settings))
    async with AsyncExitStack() as stack:
        knowledge = None
        if role in knowing:
            from deploy.assembly.knowledge import open_knowledge

            knowledge = await stack.enter_async_context(open_knowledge(settings))
        client = endpoint.client()
        stack.push_async_callback(client.aclose)
        # Drafts are written for the delivery that the parent holds; nothing else is sent from here.
        drafts = RedisBroker(client, shards=settings.shards).drafts
        specs = await make_worker_specs(
            settings, (role,), client, knowledge, stack, meter=None, drafts=drafts
        )
        yield specs[0].handler


@asynccontextmanager
async def _loading(load: Callable[[], None]) -> AsyncIterator[None]:
    """Import the libraries of the index in the background, because this takes a third of the start
    time of a command.
    """
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(asyncio.to_thread(load))
        yield


async def _take_over_when_owner_exits(
    runtime: Runtime, roles: Sequence[str], meter: "PrometheusMeter | None"
) -> None:
    from deploy.assembly.knowledge import open_knowledge

    while True:
        await asyncio.sleep(OWNER_CHECK_SECONDS)
        try:
            async with (
                open_knowledge(runtime.settings) as knowledge,
                run_workers(runtime, roles, knowledge, meter=meter),
            ):
                await asyncio.Event().wait()
        except IndexOwned:
            continue


def _renewal(runtime: Runtime) -> LeaseRenewal:
    settings, endpoint = runtime.settings, runtime.endpoint
    kind = LeaseRenewal if endpoint.played is None else InLoopRenewal
    return kind(
        lambda: _broker(settings, endpoint),
        lease_seconds=settings.lease_seconds,
        jobs=runtime.jobs,
    )


def _show_worker_specs(
    meter: "PrometheusMeter", worker_specs: Sequence[WorkerSpec], process: WorkerProcess
) -> None:
    def running(role: str) -> int:
        return sum(len(worker.runs) for worker in process.workers if worker.role == role)

    for member in worker_specs:
        role = member.handler.role.value
        slots = member.slots * member.instances
        meter.register_role(role, slots=slots, running=partial(running, role))


def _process(
    runtime: Runtime,
    worker_specs: list[WorkerSpec],
    renewal: LeaseRenewal,
    meter: "PrometheusMeter | None",
) -> WorkerProcess:
    from worker.port import SilentMeter

    return WorkerProcess(
        runtime.broker,
        worker_specs,
        renewal=renewal,
        meter=meter if meter is not None else SilentMeter(),
        jobs=runtime.jobs,
        grace=runtime.grace,
        report_waiting=runtime.report_waiting,
    )


@asynccontextmanager
async def _serve_health(
    runtime: Runtime,
    process: WorkerProcess,
    renewal: LeaseRenewal,
    meter: "PrometheusMeter",
    port: int,
) -> AsyncIterator[None]:
    from worker.health import WorkerHealth, serving

    readiness = WorkerHealth(
        process,
        lambda: renewal.alive,
        stuck_seconds=STUCK_DEADLINES * runtime.settings.deadline_seconds,
    )
    async with runtime.jobs.running("health_turns", readiness.record_turns):
        with serving(port, meter.registry, dead=readiness.dead, unready=readiness.unready):
            yield


def _broker(settings: Settings, endpoint: Endpoint) -> RedisBroker:
    return RedisBroker(
        endpoint.client(),
        shards=settings.shards,
        lease_seconds=settings.lease_seconds,
        ttl_seconds=settings.result_ttl_hours * HOUR_SECONDS,
        quota=settings.shard_quota,
        pace=AdmissionPolicy(
            at_least=max(
                1, count_smallest_role(settings.instances, settings.concurrency) // settings.shards
            ),
            lanes=tuple(sorted(INGESTING)),
        ),
        make_notice=make_poison_notice,
        dead_letter_ttl_seconds=settings.dead_letter_ttl_days * DAY_SECONDS,
        dead_letter_ttls={
            assistant.assistant_key: settings.dead_letter_seconds_of(
                assistant.tenant, assistant.assistant
            )
            for assistant in settings.of_assistants()
        },
        rewriting=Rewriting(
            after_seconds=settings.erasure_rewrite_seconds,
            every_seconds=DAY_SECONDS if settings.erasure_rewrite_seconds else 0.0,
        ),
    )
