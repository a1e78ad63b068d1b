"""Checks an installation: its settings, the availability and speed of its services, and what is
missing.
"""

import argparse
import asyncio
import os
import platform
import shutil
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import SecretStr

from cli.commands.status import describe_controls, describe_server, find_notes
from cli.model_in_use import NO_MODEL, describe_models
from cli.printing import WIDTH, print_line, say_json
from config.env_file import describe_env_file, find_env_file
from config.settings import Settings, load_settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.open_records import connect_records
from deploy.assembly.runtime import ROLES, Runtime, connect_runtime
from deploy.errors import CommandError
from deploy.logging_setup import HIDDEN, secrets_of
from knowledge.data_folder import LEAST_FREE_BYTES
from memory.job_reports import RedisJobReports
from memory.presence import RedisControls, RedisPresence

if TYPE_CHECKING:
    from knowledge.source_registry import RegisteredSource

EXIT_FAULTS = 10
PATIENCE_SECONDS = 15.0
"""Time limit for checking one part; a model that must be loaded first may need most of it."""
SLOW_REDIS_SECONDS = 0.05
SLOW_MODEL_SECONDS = 10.0
SLOW_EMBEDDING_SECONDS = 1.0
CLOCK_SECONDS = 1.0
NOTED_FREE_BYTES = 1024**3
GIBIBYTE = 1024**3
NAME_WIDTH = 11
DAY_SECONDS = 86_400
State = Literal["ok", "note", "fault", "off"]
_MARKS = {"ok": "ok", "note": "note", "fault": "FAULT", "off": "off"}


@dataclass(frozen=True, slots=True)
class SetupFinding:
    """The result of checking one part. `fault`: the part does not work. `note`: it works, but needs
    attention. `off`: it is not configured. `seconds`: its response time, if measured.
    """

    part: str
    state: State
    text: str
    seconds: float | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk doctor`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = (
        f"exit status: 0 everything that is configured works, {EXIT_FAULTS} "
        "something does not work, 1 error. Each model receives one small prompt, which the "
        "vendor may charge for."
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk doctor`."""
    settings = load_settings()
    findings = hide_secrets(asyncio.run(examine(settings)), secrets_of(settings))
    if chosen.json:
        say_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            for line in _describe(finding):
                print_line(line)
    return EXIT_FAULTS if any(finding.state == "fault" for finding in findings) else 0


def hide_secrets(findings: Sequence[SetupFinding], secrets: set[str]) -> list[SetupFinding]:
    """Return the findings without keys and passwords, which the error messages of clients may
    contain.
    """
    hidden = []
    for finding in findings:
        text = finding.text
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        hidden.append(SetupFinding(finding.part, finding.state, text, finding.seconds))
    return hidden


async def examine(settings: Settings) -> list[SetupFinding]:
    """Check every part; if one check fails or hangs, the others continue."""
    findings = [
        _check_versions(),
        *_check_settings(),
        *_check_disk(settings.refdesk_data.resolve()),
    ]
    findings += await _within("redis", lambda: _check_redis(settings))
    # The index is checked first, because the check of the embedding loads the model a second time.
    findings += await _within("index", lambda: _check_index(settings))
    rest: list[tuple[str, Callable[[], Awaitable[Sequence[SetupFinding]]]]] = [
        ("embedding", lambda: _check_embedding(settings)),
        ("models", lambda: _check_models(settings)),
        ("records", lambda: _check_records(settings)),
        ("slack", lambda: _check_slack(settings.slack_bot_token, settings.slack_api_url)),
        (
            "telegram",
            lambda: _check_telegram(settings.telegram_bot_token, settings.telegram_api_url),
        ),
    ]
    async with asyncio.TaskGroup() as tasks:
        # Each model has its own time limit, so that one that hangs does not hide the others.
        limits = {"models": None}
        running = [
            tasks.create_task(_within(part, check, limits.get(part, PATIENCE_SECONDS)))
            for part, check in rest
        ]
    findings += [finding for task in running for finding in task.result()]
    return [*findings, *check_sources(open_source_registry(settings.data_place).read().sources)]


def check_sources(sources: "Sequence[RegisteredSource]") -> list[SetupFinding]:
    """Return findings about the sources of documents: when they were read, and what failed."""
    if not sources:
        return [SetupFinding("sources", "off", "no source has been read into this data folder")]
    failed = [source for source in sources if source.failed]
    faulty = [source for source in sources if source.fault]
    read = [source.read_at for source in sources if source.read_at]
    findings = [
        SetupFinding("sources", "note", f"{source.spec.root} has not been read yet")
        for source in sources
        if not source.read_at
    ]
    if read:
        oldest = max(0.0, time.time() - min(read)) / DAY_SECONDS
        text = f"{len(read)}, the oldest was read {oldest:.1f} days ago"
        findings.insert(0, SetupFinding("sources", "ok", text))
    findings += [
        SetupFinding("sources", "note", f"{source.spec.root}: {source.fault}") for source in faulty
    ]
    for source in failed:
        text = (
            f"{source.spec.root}: {source.failed} documents could not be read; see refdesk status"
        )
        findings.append(SetupFinding("sources", "note", text))
    return findings


async def _within(
    part: str,
    check: Callable[[], Awaitable[Sequence[SetupFinding]]],
    limit_seconds: float | None = PATIENCE_SECONDS,
) -> Sequence[SetupFinding]:
    began = time.monotonic()
    try:
        async with asyncio.timeout(limit_seconds):
            return await check()
    except TimeoutError:
        seconds = time.monotonic() - began
        return [SetupFinding(part, "fault", f"did not answer within {seconds:.0f} s", seconds)]
    except Exception as error:  # noqa: BLE001 - the error is the finding
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        reason = " ".join(str(error).split()) or type(error).__name__
        return [SetupFinding(part, "fault", reason)]


def _check_versions() -> SetupFinding:
    return SetupFinding(
        "versions", "ok", f"Refdesk {version('refdesk')}, Python {platform.python_version()}"
    )


def _check_settings() -> list[SetupFinding]:
    file = find_env_file()
    lines = describe_env_file(Settings, file, os.environ)
    warnings = [line for line in lines if not line.startswith("settings are read from")]
    place = "the environment only" if file is None else str(file.path)
    notes = [SetupFinding("settings", "note", line.removeprefix("warning: ")) for line in warnings]
    return [SetupFinding("settings", "ok", f"read from {place}"), *notes]


def _check_disk(folder: Path) -> list[SetupFinding]:
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if not os.access(existing, os.W_OK):
        return [
            SetupFinding(
                "disk",
                "fault",
                f"{existing} is not writable; change its permissions, or "
                f"set REFDESK_DATA to another folder",
            )
        ]
    free = shutil.disk_usage(existing).free
    text = f"{folder}, {free / GIBIBYTE:.1f} GiB free"
    if free < LEAST_FREE_BYTES:
        return [
            SetupFinding("disk", "fault", f"{text}: documents cannot be ingested; free some space")
        ]
    return [SetupFinding("disk", "note" if free < NOTED_FREE_BYTES else "ok", text)]


async def _check_redis(settings: Settings) -> Sequence[SetupFinding]:
    async with connect_runtime(settings) as runtime:
        began = time.monotonic()
        roles = await runtime.broker.admin.read_status(ROLES)
        seconds = time.monotonic() - began
        server = await describe_server(runtime)
        state: State = "note" if seconds > SLOW_REDIS_SECONDS else "ok"
        findings = [SetupFinding("redis", state, server, round(seconds, 3))]
        waiting, dead = (sum(getattr(role, name) for role in roles) for name in ("depth", "dead"))
        if dead:
            text = f"{dead} dead letters: questions that failed; list them with: refdesk dead list"
            findings.append(SetupFinding("queues", "note", text))
        else:
            findings.append(SetupFinding("queues", "ok", f"{waiting} entries waiting or running"))
        return [
            *findings,
            *(await _check_clock(runtime)),
            *(await _check_workers(runtime)),
            *(await _check_jobs(runtime)),
        ]


async def _check_clock(runtime: Runtime) -> list[SetupFinding]:
    async with _client(runtime) as client:
        before = time.time()
        seconds, microseconds = await client.time()
        apart = abs(int(seconds) + int(microseconds) / 1e6 - (before + time.time()) / 2)
    if apart > CLOCK_SECONDS:
        text = (
            f"the clock differs from that of Redis by {apart:.1f} s; synchronise both "
            "machines (NTP)"
        )
        return [SetupFinding("clock", "note", text)]
    return [
        SetupFinding(
            "clock",
            "ok",
            f"the clock differs from that of Redis by less than {CLOCK_SECONDS:.0f} s",
        )
    ]


async def _check_workers(runtime: Runtime) -> list[SetupFinding]:
    async with _client(runtime) as client:
        living = await RedisPresence(client).living()
        notes = [*describe_controls(await RedisControls(client).read())]
    missing = [role for role in ROLES if not any(role in worker.roles for worker in living)]
    findings = [SetupFinding("workers", "note", note) for note in notes]
    if not living:
        text = "no worker process is running; refdesk serve, ask and up run all roles themselves"
        return [SetupFinding("workers", "off", text), *findings]
    if missing:
        text = (
            f"no worker runs {', '.join(missing)}, so questions wait; "
            "start one with: refdesk worker --role ROLE"
        )
        return [SetupFinding("workers", "fault", text), *findings]
    return [
        SetupFinding("workers", "ok", f"{len(living)} processes run all roles"),
        *findings,
    ]


async def _check_jobs(runtime: Runtime) -> list[SetupFinding]:
    async with _client(runtime) as client:
        reports = await RedisJobReports(client).list_reports()
    if not reports:
        return [SetupFinding("jobs", "off", "no running process has reported background jobs")]
    findings = [SetupFinding("jobs", "note", report.notice) for report in reports if report.notice]
    for report in reports:
        if report.failures:
            state: State = "fault" if report.is_paused else "note"
            findings.append(SetupFinding("jobs", state, report.describe_failure()))
    return findings or [SetupFinding("jobs", "ok", "no background job of a running process failed")]


@asynccontextmanager
async def _client(runtime: Runtime) -> AsyncIterator[Any]:
    client = runtime.endpoint.client()
    try:
        yield client
    finally:
        await client.aclose()


async def _check_index(settings: Settings) -> Sequence[SetupFinding]:
    from deploy.assembly.ingestion_run import request_documents
    from knowledge.owner_requests import OwnerRequest

    began = time.monotonic()
    listed = await request_documents(settings, OwnerRequest(action="list", limit=1))
    seconds = round(time.monotonic() - began, 3)
    total = listed.get("total", 0)
    place = settings.qdrant_url or "the data folder"
    if not total:
        text = f"no documents in {place}; read some with: refdesk ingest PATH..."
        return [SetupFinding("index", "note", text, seconds)]
    async with connect_runtime(settings) as runtime:
        notes = await find_notes(settings, runtime.broker)
    findings = [SetupFinding("index", "ok", f"{total} documents in {place}", seconds)]
    return [*findings, *(SetupFinding("index", "note", note) for note in notes)]


async def _check_embedding(settings: Settings) -> Sequence[SetupFinding]:
    from deploy.assembly.knowledge import make_embedder

    embedder = make_embedder(settings)
    try:
        # The first call loads the model, or the client of the vendor.
        await embedder.embed_questions(["When does the library open?"])
        began = time.monotonic()
        await embedder.embed_questions(["How long is the library open?"])
        seconds = time.monotonic() - began
    finally:
        close = getattr(embedder, "close", None)
        if close is not None:
            await close()
    where = "a vendor's" if settings.has_vendor_embedding else "on this machine"
    state: State = "note" if seconds > SLOW_EMBEDDING_SECONDS else "ok"
    text = f"{settings.embedding_model}, {where}"
    return [SetupFinding("embedding", state, text, round(seconds, 3))]


async def _check_models(settings: Settings) -> Sequence[SetupFinding]:
    from cli.commands.models import check_models

    if not settings.uses_model:
        return [SetupFinding("models", "off", NO_MODEL)]
    models = []
    for model in await check_models(settings):
        problem = model.problem or (model.tools_problem if model.needs_tools else "")
        if problem:
            models.append(SetupFinding("models", "fault", f"{model.model}: {problem}"))
            continue
        is_slow = model.seconds is not None and model.seconds > SLOW_MODEL_SECONDS
        cut = "; its context window is too small, see: refdesk models" if model.is_cut else ""
        state: State = "note" if cut or is_slow else "ok"
        seconds = None if model.seconds is None else round(model.seconds, 3)
        models.append(SetupFinding("models", state, f"{model.model}{cut}", seconds))
    return models or [SetupFinding("models", "ok", describe_models(settings))]


async def _check_records(settings: Settings) -> Sequence[SetupFinding]:
    if not settings.keeps_records:
        return [SetupFinding("records", "off", "no records are kept (RECORDS_DAYS is 0)")]
    began = time.monotonic()

    def look() -> None:
        store = connect_records(settings.records_url, settings.refdesk_data)
        try:
            store.prepare()
        finally:
            store.close()

    await asyncio.to_thread(look)
    where = "SQLite in the data folder" if settings.records_url is None else "at RECORDS_URL"
    text = f"{where}, kept for {settings.records_days:g} days"
    return [SetupFinding("records", "ok", text, round(time.monotonic() - began, 3))]


async def _check_slack(token: SecretStr | None, url: str | None) -> Sequence[SetupFinding]:
    if token is None or not token.get_secret_value():
        return [SetupFinding("slack", "off", "SLACK_BOT_TOKEN is not set")]
    try:
        from gateway.slack.app import identify
        from gateway.slack.transport import make_client
    except ImportError as error:
        raise CommandError("the extra `slack` is not installed") from error
    client = make_client(token.get_secret_value(), url=url)
    began = time.monotonic()
    await identify(client, frozenset())
    return [SetupFinding("slack", "ok", "accepts the token", round(time.monotonic() - began, 3))]


async def _check_telegram(token: SecretStr | None, url: str | None) -> Sequence[SetupFinding]:
    if token is None or not token.get_secret_value():
        return [SetupFinding("telegram", "off", "TELEGRAM_BOT_TOKEN is not set")]
    try:
        from gateway.telegram.connection import connect_bot, make_bot
    except ImportError as error:
        raise CommandError("the extra `telegram` is not installed") from error
    began = time.monotonic()
    async with connect_bot(make_bot(token.get_secret_value(), url=url)) as me:
        seconds = round(time.monotonic() - began, 3)
        return [SetupFinding("telegram", "ok", f"accepts the token of @{me.username}", seconds)]


def _describe(finding: SetupFinding) -> Sequence[str]:
    head = f"{_MARKS[finding.state]:<6}{finding.part:<{NAME_WIDTH}}"
    took = "" if finding.seconds is None else f" ({finding.seconds:.3f} s)"
    lines = textwrap.wrap(f"{finding.text}{took}", WIDTH - len(head))
    return [f"{head if at == 0 else ' ' * len(head)}{line}" for at, line in enumerate(lines)]
