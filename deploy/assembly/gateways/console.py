"""Assembles the console: its access control, and the data of its pages."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from broker.values import DeadLetter
from config.settings import Settings
from deploy.assembly.dead_letters import retry_letter
from deploy.assembly.gap_finding import finding_gaps
from deploy.assembly.gateways.console_operations import operating
from deploy.assembly.gateways.document_catalog import OwnedCatalog
from deploy.assembly.runtime import Runtime, desks
from deploy.assembly.verified_answers import put_answers
from deploy.errors import CommandError
from envelope.question import CONSOLE
from envelope.verified import VerifiedAnswer
from gateway.console.access import Assistant, Gate, Role
from gateway.console.again import Again
from gateway.console.attention import FindConcerns, find_in_gaps, find_in_operations
from gateway.console.frame import Frame
from gateway.console.gap_pages import GapPages
from gateway.console.oidc import OidcClient, OidcProvider
from gateway.console.operation_pages import Budgets, OperationPages
from gateway.console.pages import PATH
from gateway.console.routes import ConsolePart
from gateway.console.verified_pages import VerifiedPages, find_in_answers
from gateway.signing_keys import check_address
from memory.console_state import RedisConsoleSessions
from memory.errors import MemoryStoreError
from memory.verified_answers import RedisVerifiedAnswers
from records.store import RecordsUnavailableError
from records.verified import VerifiedStore

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from records.gaps import GapFinder
    from records.store import RecordStore

log = structlog.get_logger("gateway")


@asynccontextmanager
async def open_parts(
    runtime: Runtime, client: "Redis", records: "RecordStore | None", catalog: OwnedCatalog
) -> AsyncIterator["ConsoleParts"]:
    """Provide the pages that the owner works with, and the gaps."""
    settings, broker = runtime.settings, runtime.broker
    frame = Frame(records, settings.records_days)

    async def retry(letter: DeadLetter) -> str:
        try:
            return await retry_letter(broker, letter, settings, deliver=False)
        except CommandError as error:
            raise ValueError(str(error)) from error

    async def publish(assistant: Assistant, answers: Sequence[VerifiedAnswer]) -> None:
        await RedisVerifiedAnswers(client).put(*assistant, put_answers(answers))

    async with AsyncExitStack() as stack:
        operations = await stack.enter_async_context(operating(runtime, catalog))
        budgets = Budgets(settings.budget_usd, settings.budget_tenant_usd)
        own = OperationPages(frame, operations, catalog, broker.admin, retry, budgets, time.time)
        pages: list[ConsolePart] = [own]
        concerns, gaps = [find_in_operations(own, operations)], None
        if records is not None:
            embedder = None if runtime.knowledge is None else runtime.knowledge.embedder
            gaps = await stack.enter_async_context(finding_gaps(settings, records, embedder))
            again = Again(desks(runtime, CONSOLE), broker.replies)
            gap_pages = GapPages(frame, gaps, again)
            pages.append(gap_pages)
            concerns.append(find_in_gaps(gap_pages))
            verified = VerifiedPages(frame, VerifiedStore(records), catalog, publish)
            pages.append(verified)
            concerns.append(find_in_answers(verified))
            await _publish_all(frame, verified, settings)
        yield ConsoleParts(pages, concerns, gaps)


async def _publish_all(frame: Frame, pages: VerifiedPages, settings: Settings) -> None:
    """Give all verified answers to the agents: Redis may have lost them."""
    try:
        await frame.query(lambda store: store.prepare())
        for one in settings.of_assistants():
            await pages.publish((one.tenant, one.assistant))
    except (RecordsUnavailableError, MemoryStoreError) as error:
        # Questions are answered without them; they are published at the next change or start.
        log.warning("verified_answers_unavailable", error=str(error))


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """Pages of the console, and what finds the gaps; None where no records are kept."""

    pages: Sequence[ConsolePart]
    concerns: Sequence[FindConcerns]
    gaps: "GapFinder | None"


def make_gate(settings: Settings, client: "Redis") -> Gate:
    """Return the access control, which verifies sessions and roles."""
    parts = urlsplit(settings.public_url or "")
    sessions = RedisConsoleSessions(
        client,
        idle_seconds=int(settings.console_idle_minutes * 60),
        longest_seconds=int(settings.console_session_hours * 3600),
    )
    roles = list_roles(settings)
    origin = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
    return Gate(sessions, tuple(roles), roles, origin)


def list_roles(settings: Settings) -> Mapping[Assistant, Mapping[str, Role]]:
    """Return the highest role of each person, by served assistant."""
    found: dict[Assistant, dict[str, Role]] = {}
    for one in settings.of_assistants():
        assistant = (one.tenant, one.assistant)
        people = found[assistant] = {}
        for person, name in settings.console_people_of(*assistant):
            people[person] = max(people.get(person, Role.VIEWER), Role[name.upper()])
    return found


def make_provider(settings: Settings) -> OidcProvider | None:
    """Return the provider by which people sign in; None if none is set up.

    Raises `CommandError` for settings that cannot work.
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
            "OIDC_ISSUER needs OIDC_CLIENT_ID, and PUBLIC_URL, the address to which the provider "
            "redirects people after the sign-in (register PUBLIC_URL{PATH}/login/return there)"
        )
    if "openid" not in settings.oidc_scopes:
        raise CommandError('OIDC_SCOPES: expected "openid" among them')
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
