"""Assembles the HTTP channel, connecting keys, memory, and desks to the ports of the gateway."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from fastapi import Request
from starlette.routing import BaseRoute

from broker.errors import BrokerUnavailableError
from broker.keys import record_of
from config.channel_settings import PersonIssuer
from config.texts import load_texts
from deploy.assembly.gateways.console import list_roles, make_gate, make_provider, open_parts
from deploy.assembly.gateways.documents import (
    documents_of,
    make_attachments,
    make_catalog,
    make_library,
)
from deploy.assembly.gateways.handover import exchanging_mail, make_handover
from deploy.assembly.gateways.report_rendering import StoredReports
from deploy.assembly.model_choice import vendor_access
from deploy.assembly.models import estimate_review
from deploy.assembly.open_records import connect_records
from deploy.assembly.recording import make_conversations
from deploy.assembly.runtime import Runtime, desks
from deploy.errors import CommandError
from envelope.question import HTTP
from gateway.api_keys import KeyHistory, StoredKeys
from gateway.chat.people import PersonDigests
from gateway.console.attention import find_in_jobs, find_steps, find_turned_away
from gateway.console.people import PeoplePages
from gateway.console.routes import Console, console_router
from gateway.desk import erase
from gateway.http.access import AllowedHosts, Guard
from gateway.http.app import MakeEndpoint, make_app
from gateway.http.context import HttpChannel, HttpMeter
from gateway.http.errors import ForbiddenError, LimitedError, UnauthorizedError
from gateway.http.links import SourceLinks
from gateway.http.review_documents import NamedDocumentFinder
from gateway.http.routes.catalog import Catalog, gaps_router
from gateway.http.routes.documents import reader_router
from gateway.http.routes.people import people_router
from gateway.http.routes.review_form import ReviewEstimate
from gateway.http.routes.reviews import EstimateReview, ReviewParts, estimate_nothing
from gateway.http.routes.sources import sources_router
from gateway.http.visitors import VisitorLimits, Visitors
from gateway.people import PersonalData
from gateway.person_tokens import PersonTokens, TrustedIssuer
from gateway.port import CatalogSelection, DocumentCatalog, SearchableLibrary
from gateway.signing_keys import SigningKeys, check_address
from gateway.widget.routes import FindContents, PageContents, widget_router
from knowledge.errors import KnowledgeError
from llm.vendors.catalogue import VendorAccess
from memory.console_state import RedisConsoleSessions
from memory.conversation import RedisPeople
from memory.errors import MemoryUnavailableError
from memory.http_state import RedisRates
from memory.job_reports import RedisJobReports
from memory.work_store import RedisWorkStore

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from redis.asyncio import Redis
    from starlette.types import ASGIApp

log = structlog.get_logger("deploy")

KEPT_TURNS = 50
STORES = (MemoryUnavailableError, KnowledgeError)
"""The errors that are raised if a store does not respond."""
MCP = "mcp"
"""The channel for programs that call the desk as a tool."""
MINUTE_SECONDS = 60
EXAMPLES = 3
"""The number of example questions on the start page."""


async def make_channel(
    runtime: Runtime,
    client: "Redis",
    keys: StoredKeys,
    meter: HttpMeter,
    *,
    keyless: bool,
    has_reader: bool,
    hosts: AllowedHosts | None = None,
) -> HttpChannel:
    """Return the objects used by all routes; `has_reader` is true if this server shows cited
    documents.
    """
    settings = runtime.settings
    if hosts is None:
        hosts = AllowedHosts(settings.allowed_hosts, public_url=settings.public_url)
    secret = await keys.link_secret()
    guard = Guard(
        keys,
        RedisRates(client),
        visitors=Visitors(
            secret,
            VisitorLimits(
                requests_per_minute=settings.visitor_requests_per_minute,
                questions_per_minute=settings.visitor_questions_per_minute,
                questions_per_day=settings.visitor_questions_per_day,
                share=settings.visitor_share,
            ),
        ),
        open_tenant=settings.tenant if keyless else None,
        hosts=hosts,
        persons=PersonTokens(list_person_issuers(settings.person_issuers, settings.tenant)),
        digests=PersonDigests(secret),
    )
    conversations = make_conversations(
        settings,
        runtime.broker,
        client,
        ttl_seconds=settings.memory_seconds_of(settings.tenant, settings.assistant),
        ttl_of=lambda question: settings.memory_seconds_of(question.tenant, question.assistant),
    )
    return HttpChannel(
        replies=runtime.broker.replies,
        eraser=runtime.broker.eraser,
        find_write_fault=runtime.broker.admin.find_write_fault,
        desks=desks(runtime, HTTP),
        guard=guard,
        conversations=conversations,
        words=load_texts().text,
        meter=meter,
        link_hosts=frozenset(settings.link_hosts),
        release=settings.release,
        job_seconds=settings.job_deadline_seconds,
        links=SourceLinks(
            {
                assistant.assistant_key: assistant.documentation_url or ""
                for assistant in settings.of_assistants()
            },
            secret=secret if has_reader else None,
            address=settings.public_url or "",
        ),
        handover=await make_handover(runtime, client, keys, conversations),
    )


@asynccontextmanager
async def open_http_app(
    runtime: Runtime,
    stopping: asyncio.Event,
    *,
    registry: "CollectorRegistry | None" = None,
    keyless: bool = False,
) -> AsyncIterator["ASGIApp"]:
    """Provide the application of the HTTP channel.

    `/metrics` shows `registry`, to which the channel adds its own metrics. If `keyless` is true,
    requests do not need a key until the first one is created.
    """
    settings, meter = runtime.settings, HttpMeter(registry)
    client, opened = runtime.endpoint.client(), documents_of(runtime)
    attachments = make_attachments(settings, client)
    records = (
        connect_records(settings.records_url, settings.refdesk_data)
        if settings.keeps_records
        else None
    )
    documents = opened if settings.source_links else None
    stack = AsyncExitStack()
    try:
        history = None if settings.require_keys else KeyHistory(settings.refdesk_data)
        keys = StoredKeys(client, history)
        # If keys exist now, this process requires one even if Redis loses them later.
        await keys.any()
        channel = await make_channel(
            runtime, client, keys, meter, keyless=keyless, has_reader=documents is not None
        )
        library = make_library(runtime)
        others, stores = (
            [
                widget_router(
                    _make_find_contents(
                        settings.domain_name,
                        settings.assistant,
                        channel,
                        library,
                        has_model=settings.uses_model,
                    )
                )
            ],
            STORES,
        )
        reports = StoredReports(
            RedisWorkStore(client, shards=settings.shards, record_of=record_of(settings.shards)).get
        )
        if documents is not None:
            others.append(
                reader_router(
                    channel,
                    documents,
                    attachments=attachments,
                    reports=reports,
                    unavailable=stores,
                )
            )
        catalog = make_catalog(settings, runtime.broker, opened)
        others.append(Catalog(channel, catalog).router())
        gate = make_gate(
            RedisConsoleSessions(
                client,
                idle_seconds=int(settings.console_idle_minutes * 60),
                longest_seconds=int(settings.console_session_hours * 3600),
            ),
            list_roles(settings),
            settings.public_url,
        )
        people = PersonalData(
            records,
            RedisPeople(
                client, lambda item: settings.memory_seconds_of(item.tenant, item.assistant)
            ),
            partial(erase, channel.eraser, channel.conversations),
        )
        others.append(people_router(channel, people))
        parts = await stack.enter_async_context(open_parts(runtime, client, records, catalog))
        others.append(
            console_router(
                Console(
                    gate,
                    parts.frame,
                    provider=make_provider(settings),
                    parts=[
                        *parts.pages,
                        PeoplePages(parts.frame, people, keys),
                    ],
                    concerns=[
                        *parts.concerns,
                        find_turned_away(meter.began_at, meter.count_turned_away, parts.frame.zone),
                        find_in_jobs(RedisJobReports(client).list_reports),
                    ],
                    find_setup=find_steps(
                        partial(_count_documents, catalog), keys.any, has_model=settings.uses_model
                    ),
                    handover=channel.handover,
                    unavailable=stores,
                )
            )
        )
        others.append(sources_router(channel, parts.operations))
        if parts.gaps is not None:
            others.append(gaps_router(channel, parts.gaps))
        path = find_public_path(settings.public_url)
        made = make_app(
            channel,
            stopping=stopping,
            registry=meter.registry,
            turns=settings.history_turns,
            unavailable=stores,
            others=others,
            reviews=ReviewParts(
                attachments,
                NamedDocumentFinder(attachments, catalog),
                reports,
                _make_estimate(settings.gen_model, vendor_access(settings), client)
                if settings.uses_model
                else estimate_nothing,
            ),
            has_session=gate.has_session,
            library=library,
            mcp=_find_mcp(replace(channel, desks=desks(runtime, MCP)), library, stopping),
            path=path,
        )
        check_public_path(path, made.routes)
        async with made.running(), exchanging_mail(runtime, client, channel.handover):
            yield made.app
    finally:
        await stack.aclose()
        if records is not None:
            await asyncio.to_thread(records.close)
        await attachments.close()
        if opened is not None:
            await opened.close()
        await client.aclose()


def find_public_path(public_url: str | None) -> str:
    """Return the path of the public URL, such as `/desk`, or an empty string if it has none."""
    return urlsplit(public_url or "").path.rstrip("/")


def check_public_path(path: str, routes: Sequence[BaseRoute]) -> None:
    """Raise `CommandError` for a path that Refdesk itself uses.

    Behind a proxy that strips the path, requests below it could not be distinguished from others.
    """
    own = {str(getattr(route, "path", "")).split("/")[1] for route in routes} - {""}
    if path and path.split("/")[1] in own:
        raise CommandError(
            f"PUBLIC_URL: the path {path} conflicts with a path of Refdesk; reserved first "
            f"segments: {', '.join(sorted(own))}"
        )


def list_person_issuers(issuers: Mapping[str, PersonIssuer], tenant: str) -> list[TrustedIssuer]:
    """Return the identity providers whose tokens identify people; raises `CommandError`."""
    return [
        TrustedIssuer(
            issuer,
            person_issuer.audience,
            person_issuer.tenant or tenant,
            _keys_at(person_issuer.jwks_url),
            person_issuer.groups_claim,
        )
        for issuer, person_issuer in issuers.items()
    ]


def _make_find_contents(
    name: str, assistant: str, channel: HttpChannel, library: SearchableLibrary, *, has_model: bool
) -> FindContents:
    """Return a function that determines the contents of the start page.

    Document titles are shown only to callers who may ask without a key.
    """

    async def find_contents(request: Request) -> PageContents:
        try:
            caller = await channel.guard.caller(request)
            if caller.key is not None:
                return PageContents(name)
            documents = await library.browse(
                caller.tenant, assistant, groups=(), after="", limit=EXAMPLES
            )
        except (UnauthorizedError, ForbiddenError, LimitedError):
            return PageContents(name, "key")
        except (BrokerUnavailableError, *STORES) as error:
            log.warning("start_page_without_examples", error=str(error))
            return PageContents(name, "away")
        if not documents:
            return PageContents(name, "empty")
        titles = tuple(dict.fromkeys(document.title for document in documents))
        return PageContents(name, "ready" if has_model else "search", titles)

    return find_contents


def _find_mcp(
    channel: HttpChannel, library: SearchableLibrary, stopping: asyncio.Event
) -> MakeEndpoint | None:
    """Return a factory for the MCP endpoint, or None if the package for the protocol is not
    installed.
    """
    if find_spec("mcp") is None:
        return None
    from gateway.mcp.endpoint import make_endpoint

    return partial(make_endpoint, channel, library, stopping, version("refdesk"), STORES)


async def _count_documents(catalog: DocumentCatalog, assistant: tuple[str, str]) -> int:
    _, total = await catalog.find(*assistant, CatalogSelection(), limit=1)
    return total


def _make_estimate(
    model: str, access: Mapping[str, VendorAccess], client: "Redis"
) -> EstimateReview:
    """Return the function that estimates reviews with a model."""

    async def estimate(rules: int, documents: int) -> ReviewEstimate:
        cost = await estimate_review(model, access, client, rules, documents)
        return ReviewEstimate(
            model=model,
            calls=cost.calls,
            tokens=cost.tokens,
            cost_usd=None if cost.usd is None else float(cost.usd),
            seconds=cost.seconds,
        )

    return estimate


def _keys_at(address: str) -> SigningKeys:
    try:
        check_address(address)
    except ValueError as error:
        raise CommandError(f"PERSON_ISSUERS: jwks_url: {error}") from error

    async def find_address() -> str:
        return address

    return SigningKeys(find_address)
