"""Assembles the console: its access control, and the data of its pages."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from pydantic import SecretStr

from broker.values import DeadLetter
from config.channel_settings import find_zone
from config.env_file import find_env_file, read_names
from config.settings import Settings
from deploy.assembly.data_folder import open_source_registry
from deploy.assembly.gateways.documents import make_library
from deploy.assembly.open_records import finding_gaps
from deploy.assembly.runtime import Runtime, dead_letters, desks
from deploy.assembly.source_refresh import refresh_source
from deploy.errors import CommandError
from deploy.logging_setup import secrets_of
from envelope.question import CONSOLE
from envelope.verified import VerifiedAnswer
from gateway.console.access import Assistant, ConsoleRole, Gate
from gateway.console.again import Again
from gateway.console.attention import FindConcerns
from gateway.console.check_pages import CheckPages
from gateway.console.frame import ConsolePart, Frame
from gateway.console.gap_pages import GapPages
from gateway.console.oidc import OidcClient, OidcProvider
from gateway.console.operation_pages import Budgets, OperationPages, ShownSetting
from gateway.console.operations import AssistantSources, ConsoleOperations
from gateway.console.pages import PATH
from gateway.console.source_pages import SourcePages
from gateway.console.verified_pages import VerifiedPages
from gateway.console.writing_pages import WritingPages
from gateway.documents.catalog import OwnedCatalog
from gateway.documents.uploads import Uploads
from gateway.errors import GatewayError
from gateway.signing_keys import check_address
from knowledge.ingestion_report import ProgressReport
from knowledge.source_registry import (
    RegisteredSource,
)
from memory.console_state import RedisConsoleSessions, RedisVerifiedAnswers
from memory.errors import MemoryStoreError
from memory.job_reports import RedisJobReports
from records.store import RecordsUnavailableError
from records.verified import VerifiedStore
from records.verified_finder import put_answers

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from records.gaps import GapFinder
    from records.store import RecordStore

_LONGEST_VALUE = 300
HIDDEN = "[secret]"
log = structlog.get_logger("gateway")


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """The pages of the console and their dependencies; `gaps` is None if no records are stored."""

    frame: Frame
    pages: Sequence[ConsolePart]
    concerns: Sequence[FindConcerns]
    gaps: "GapFinder | None"
    operations: ConsoleOperations


@asynccontextmanager
async def operating(runtime: Runtime, catalog: OwnedCatalog) -> AsyncIterator[ConsoleOperations]:
    """Provide the operations of owners on sources. If the process stops while a source is being
    ingested, that ingestion is repeated later.
    """
    settings = {
        assistant.assistant_key: assistant for assistant in runtime.settings.of_assistants()
    }
    sources = {
        name: AssistantSources(
            open_source_registry(setting.data_place),
            Uploads(*setting.data_place),
            setting.sources_over_http,
        )
        for name, setting in settings.items()
    }

    async def refresh(
        assistant: Assistant, source: RegisteredSource, report: ProgressReport
    ) -> None:
        await refresh_source(replace(runtime, settings=settings[assistant]), source, report)

    async with asyncio.TaskGroup() as tasks:
        operations = ConsoleOperations(
            sources,
            catalog,
            refresh,
            partial(list_settings, runtime.settings),
            runtime.jobs,
            tasks,
        )
        try:
            yield operations
        finally:
            await operations.stop()


def list_settings(settings: Settings) -> list[ShownSetting]:
    """Return every setting with its current value and its origin, without secrets."""
    file = find_env_file()
    held = {} if file is None else read_names(Settings, file)
    environment = {name.upper() for name in os.environ}
    secrets = sorted(secrets_of(settings), key=len, reverse=True)
    shown = []
    for name, about in Settings.model_fields.items():
        upper = name.upper()
        origin = "default"
        if upper in environment:
            origin = "environment"
        elif file is not None and upper in held:
            origin = str(file.path)
        value = _describe_value(getattr(settings, name), secrets)
        shown.append(ShownSetting(upper, value, origin, about.description or ""))
    return sorted(shown, key=lambda item: item.name)


@asynccontextmanager
async def open_parts(
    runtime: Runtime, client: "Redis", records: "RecordStore | None", catalog: OwnedCatalog
) -> AsyncIterator["ConsoleParts"]:
    """Provide the pages for the owner, including the gaps."""
    settings, broker = runtime.settings, runtime.broker
    frame = Frame(records, settings.records_days, find_zone(settings.time_zone))

    async def retry(letter: DeadLetter) -> str:
        try:
            return await dead_letters(runtime).retry(letter, deliver=False)
        except GatewayError as error:
            raise ValueError(str(error)) from error

    async def publish(assistant: Assistant, answers: Sequence[VerifiedAnswer]) -> None:
        await RedisVerifiedAnswers(client).put(*assistant, put_answers(answers))

    async with AsyncExitStack() as stack:
        operations = await stack.enter_async_context(operating(runtime, catalog))
        budgets = Budgets(settings.budget_usd, settings.budget_tenant_usd)
        own = OperationPages(
            frame,
            operations,
            catalog,
            broker.admin,
            retry,
            budgets,
            time.time,
            RedisJobReports(client).list_reports,
        )
        pages: list[ConsolePart] = [own, SourcePages(frame, operations)]
        concerns: list[FindConcerns] = [own.find_concerns]
        gaps = None
        if records is not None:
            embedder = None if runtime.knowledge is None else runtime.knowledge.embedder
            gaps = await stack.enter_async_context(finding_gaps(settings, records, embedder))
            again = Again(desks(runtime, CONSOLE), broker.replies)
            gap_pages = GapPages(frame, gaps, again)
            verified = VerifiedPages(frame, VerifiedStore(records), catalog, publish)
            checks = CheckPages(frame, operations.list_sources)
            pages += [gap_pages, verified, checks]
            concerns += [part.find_concerns for part in (gap_pages, verified, checks)]
            await _publish_all(frame, verified, list_roles(settings))
        pages.append(WritingPages(frame, catalog, make_library(runtime), operations, gaps))
        yield ConsoleParts(frame, pages, concerns, gaps, operations)


def make_gate(
    sessions: RedisConsoleSessions,
    roles: Mapping[Assistant, Mapping[str, ConsoleRole]],
    public_url: str | None,
) -> Gate:
    """Return the access control, which verifies sessions and roles."""
    parts = urlsplit(public_url or "")
    origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
    return Gate(sessions, tuple(roles), roles, origin)


def list_roles(settings: Settings) -> Mapping[Assistant, Mapping[str, ConsoleRole]]:
    """Return the highest role of each person, by assistant."""
    roles: dict[Assistant, dict[str, ConsoleRole]] = {}
    for own in settings.of_assistants():
        assistant = own.assistant_key
        people = roles[assistant] = {}
        for person, name in settings.console_people_of(*assistant):
            people[person] = max(people.get(person, ConsoleRole.VIEWER), ConsoleRole[name.upper()])
    return roles


def make_provider(settings: Settings) -> OidcProvider | None:
    """Return the identity provider for the sign-in, or None if none is configured.

    Raises `CommandError` for invalid settings.
    """
    issuer = settings.oidc_issuer
    if issuer is None:
        return None
    try:
        check_address(issuer)
    except ValueError as error:
        raise CommandError(f"OIDC_ISSUER: {error}") from error
    if not settings.oidc_client_id or settings.public_url is None:
        raise CommandError(
            "OIDC_ISSUER requires OIDC_CLIENT_ID, and PUBLIC_URL, the address to which the "
            "provider "
            f"redirects people after the sign-in (register PUBLIC_URL{PATH}/login/return there)"
        )
    if "openid" not in settings.oidc_scopes:
        raise CommandError('OIDC_SCOPES must contain "openid"')
    secret = settings.oidc_client_secret
    return OidcProvider(
        OidcClient(
            issuer=issuer,
            client_id=settings.oidc_client_id,
            client_secret="" if secret is None else secret.get_secret_value(),
            return_address=f"{settings.public_url.rstrip('/')}{PATH}/login/return",
            scopes=settings.oidc_scopes,
            groups_claim=settings.oidc_groups_claim,
            names=frozenset(name for people in list_roles(settings).values() for name in people),
        )
    )


def _describe_value(value: object, secrets: Sequence[str]) -> str:
    if isinstance(value, SecretStr):
        return HIDDEN
    text = "–" if value in (None, "", {}, [], ()) else str(value)
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


async def _publish_all(frame: Frame, pages: VerifiedPages, assistants: Iterable[Assistant]) -> None:
    """Publish all verified answers to the agents, because Redis may have lost them."""
    try:
        await frame.query(lambda store: store.prepare())
        for assistant in assistants:
            await pages.publish(assistant)
    except (RecordsUnavailableError, MemoryStoreError) as error:
        # Questions are answered without them; they are published at the next change or start.
        log.warning("verified_answers_unavailable", error=str(error))
