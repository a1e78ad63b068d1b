"""Assembles the HTTP channel: keys, memory and desks behind the ports of the gateway."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

import structlog

from agents.review.cost_estimate import estimate_cost
from broker.journal_reader import RecentMessage, Transcripts
from config.settings import Settings
from config.texts import load_texts
from deploy.assembly.data_folder import KeyHistory
from deploy.assembly.gateways.console import make_gate, make_provider, open_parts
from deploy.assembly.gateways.document_catalog import OwnedCatalog, OwnedLibrary, documents_of
from deploy.assembly.gateways.handover import make_handover, reading_mail_replies
from deploy.assembly.gateways.report_rendering import StoredReports, make_report_reader
from deploy.assembly.gateways.review_documents import NamedDocumentFinder, StoredAttachments
from deploy.assembly.recording import Records, connect_records, keeps_records
from deploy.assembly.runtime import Runtime, desks
from deploy.chat_channels import CHAT_CHANNELS
from deploy.errors import CommandError
from envelope.conversation import Pause, Turn
from envelope.question import HTTP, Question
from gateway.api_keys import Key
from gateway.connections.bodies import BufferBudget
from gateway.console.people import PeoplePages
from gateway.console.routes import Console, console_router
from gateway.desk import erase
from gateway.http.access import AllowedHosts, Guard
from gateway.http.app import MakeEndpoint, PrometheusHttpMeter, make_app
from gateway.http.context import HttpChannel
from gateway.http.links import SourceLinks
from gateway.http.routes.catalog import Catalog, gaps_router
from gateway.http.routes.documents import reader_router
from gateway.http.routes.people import people_router
from gateway.http.routes.review_form import ReviewEstimate
from gateway.http.routes.reviews import EstimateReview, ReviewParts, estimate_nothing
from gateway.http.routes.sources import sources_router
from gateway.http.visitors import VisitorLimits, Visitors
from gateway.people import PersonalData
from gateway.person_tokens import PersonIssuer, PersonTokens
from gateway.port import Demand, Feedback, SearchableLibrary, Shortage, VisitorSession
from gateway.signing_keys import SigningKeys, check_address
from gateway.widget.routes import widget_router
from knowledge.errors import KnowledgeError
from memory.chat_state import RedisPushMemory
from memory.conversation import RedisMemory, RedisPeople
from memory.errors import MemoryUnavailableError
from memory.http_state import (
    EMPTY_SECONDS,
    RedisApiKeys,
    RedisRates,
    RedisReplyAddresses,
    RedisSessionStore,
)
from memory.key_names import conversation_keys
from memory.learned_outcomes import RedisOutcomeLog

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from redis.asyncio import Redis
    from starlette.types import ASGIApp

log = structlog.get_logger("deploy")

KEPT_TURNS = 50
STORES = (MemoryUnavailableError, KnowledgeError)
"""Errors of stores that do not answer."""
MCP = "mcp"
"""The channel of programs that call the desk as a tool."""
MINUTE_SECONDS = 60


class StoredKeys:
    """A `gateway.port.KeyStore`."""

    def __init__(self, client: "Redis", history: KeyHistory | None = None) -> None:
        self._keys = RedisApiKeys(client)
        self._history = history
        self._has_keys = False
        self._noted: dict[str, float] = {}

    async def get(self, key_id: str) -> Key | None:
        found = await self._keys.get(key_id)
        return None if found is None else Key.model_validate_json(found)

    async def all(self) -> Sequence[Key]:
        keys = [Key.model_validate_json(found) for found in await self._keys.all()]
        return sorted(keys, key=lambda key: key.created_at)

    async def put(self, key: Key) -> None:
        await self._keys.put(key.id, key.encode())
        self._note()

    async def any(self) -> bool:
        if not self._has_keys and await self._keys.any():
            self._note()
        if not self._has_keys and self._history is not None:
            self._has_keys = self._history.has_keys
        return self._has_keys

    async def note_use(self, key: Key) -> None:
        now = time.time()
        if now - self._noted.get(key.id, 0.0) >= MINUTE_SECONDS:
            self._noted[key.id] = now
            try:
                await self._keys.note_use(key.id, now)
            except MemoryUnavailableError as error:
                # A Redis user of an earlier release may not write it; the request is answered.
                log.warning("key_use_not_noted", error=str(error))

    async def uses(self) -> Mapping[str, float]:
        return await self._keys.uses()

    def _note(self) -> None:
        """Record, here and in the data folder, that keys exist, in case Redis loses them."""
        self._has_keys = True
        if self._history is not None:
            self._history.note()

    async def link_secret(self) -> bytes:
        """Return the secret by which all HTTP processes on this Redis sign links."""
        return await self._keys.link_secret(secrets.token_bytes(32))

    async def handover_secret(self) -> bytes:
        """Return the secret by which all processes on this Redis sign where people answer."""
        return await self._keys.handover_secret(secrets.token_bytes(32))


class StoredRates:
    """A `gateway.port.Rates`."""

    def __init__(self, client: "Redis") -> None:
        self._rates = RedisRates(client)

    async def admit(
        self, owner: str, demands: Sequence[Demand], *, once: str = ""
    ) -> Shortage | None:
        limits = [
            (demand.name, _or_zero(demand.per_minute), _or_zero(demand.per_day))
            for demand in demands
        ]
        seconds, place, period = await self._rates.admit(owner, limits, once=once)
        if seconds <= 0:
            return None
        return Shortage(demands[place], "day" if period == "day" else "minute", seconds)


class StoredConversations:
    """A `gateway.port.Conversations`."""

    def __init__(
        self,
        client: "Redis",
        *,
        shards: int,
        ttl_seconds: int,
        ttl_of: Callable[[Question], int] | None = None,
        empty_seconds: int = EMPTY_SECONDS,
        records: Records | None = None,
    ) -> None:
        self._shards = shards
        self._records = records
        self._people = RedisPeople(client, lambda _question: ttl_seconds)
        self._memory = RedisMemory(
            client, shards=shards, window=KEPT_TURNS, ttl_seconds=ttl_seconds
        )
        self._transcripts = Transcripts(client, shards=shards)
        self._sessions = RedisSessionStore(
            client,
            shards=shards,
            ttl_seconds=ttl_seconds,
            empty_seconds=empty_seconds,
            ttl_of=ttl_of,
        )
        self._addresses = RedisReplyAddresses(client)
        self._outcomes = RedisOutcomeLog(client, shards=shards)
        self._pushed = [
            RedisPushMemory(
                client, spec.name, question_seconds=ttl_seconds, conversation_seconds=ttl_seconds
            )
            for spec in CHAT_CHANNELS
        ]

    async def recent_messages(self, question: Question, *, limit: int) -> Sequence[RecentMessage]:
        return await self._transcripts.of(question, limit=limit)

    async def turns(self, question: Question) -> Sequence[Turn]:
        return (await self._memory.recall(question)).history

    async def pause(self, question: Question) -> Pause | None:
        return (await self._memory.recall(question)).pause

    async def list_paused(self, question: Question, person: str) -> Sequence[str]:
        return await self._people.list_paused(question, person)

    async def put_thread(self, question: Question, digest: str) -> None:
        await self._sessions.put_thread(question, digest)

    async def thread(self, question: Question, digest: str) -> str | None:
        return await self._sessions.thread(question, digest)

    async def open_session(self, question: Question, digest: str) -> None:
        await self._sessions.open_session(question, digest)

    async def session(self, question: Question) -> VisitorSession | None:
        found = await self._sessions.session(question)
        return None if found is None else VisitorSession(*found)

    async def use_session(self, question: Question, digest: str) -> None:
        await self._sessions.use_session(question, digest)

    async def end_session(self, question: Question) -> None:
        await self._sessions.end_session(question)

    def memory_keys(self, question: Question) -> Sequence[str]:
        return conversation_keys(question, self._shards).all

    async def forget_threads(self, question: Question) -> int:
        await self._addresses.forget(question)
        return await self._sessions.forget_threads(question)

    async def forget_posts(self, question: Question) -> None:
        for memory in self._pushed:
            await memory.forget_words(question)

    async def forget_records(self, question: Question) -> int:
        return 0 if self._records is None else await self._records.forget(question)

    async def is_chat(self, question: Question) -> bool:
        return any([await memory.has_conversation(question) for memory in self._pushed])

    async def give_feedback(self, question: Question, feedback: Feedback) -> None:
        noted = feedback.model_copy(update={"at": time.time()})
        await self._sessions.put_feedback(question, noted.model_dump_json())
        await self._outcomes.rate(question, 1 if feedback.rating == "up" else -1)
        if self._records is not None:
            await self._records.announce_rating(question)

    async def feedback(self, question: Question) -> dict[str, Feedback]:
        found = await self._sessions.feedback(question)
        return {name: Feedback.model_validate_json(text) for name, text in found.items()}


async def make_channel(
    runtime: Runtime,
    client: "Redis",
    keys: StoredKeys,
    meter: PrometheusHttpMeter,
    *,
    keyless: bool,
    has_reader: bool,
    hosts: AllowedHosts | None = None,
) -> HttpChannel:
    """Return the parts that all routes use; `has_reader`: this server shows cited documents."""
    settings = runtime.settings
    if hosts is None:
        hosts = AllowedHosts(settings.allowed_hosts, public_url=settings.public_url)
    secret = await keys.link_secret()
    guard = Guard(
        keys,
        StoredRates(client),
        visitors=Visitors(secret, visitor_limits(settings)),
        open_tenant=settings.tenant if keyless else None,
        hosts=hosts,
        persons=PersonTokens(list_person_issuers(settings)),
    )
    conversations = StoredConversations(
        client,
        shards=settings.shards,
        ttl_seconds=settings.memory_seconds_of(settings.tenant, settings.assistant),
        ttl_of=lambda question: settings.memory_seconds_of(question.tenant, question.assistant),
        empty_seconds=int(settings.empty_conversation_minutes * MINUTE_SECONDS),
        records=Records(settings, runtime.broker),
    )
    return HttpChannel(
        replies=runtime.broker.replies,
        eraser=runtime.broker.eraser,
        desks=desks(runtime, HTTP),
        guard=guard,
        conversations=conversations,
        words=load_texts().text,
        meter=meter,
        release=settings.release,
        job_seconds=settings.job_deadline_seconds,
        links=SourceLinks(
            {
                (one.tenant, one.assistant): one.documentation_url or ""
                for one in settings.of_assistants()
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
    budget: BufferBudget | None = None,
) -> AsyncIterator["ASGIApp"]:
    """Provide the application of the HTTP channel.

    `/metrics` shows `registry`, to which the channel adds its own figures. `keyless`: requests need
    no key until the first one is created. `budget` bounds the bodies that are read at the same
    time.
    """
    settings, meter = runtime.settings, PrometheusHttpMeter(registry)
    client, opened = runtime.endpoint.client(), documents_of(runtime)
    attachments = StoredAttachments(settings, client)
    records = connect_records(settings) if keeps_records(settings) else None
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
        library = OwnedLibrary(runtime)
        others, stores = [widget_router()], STORES
        reports = StoredReports(make_report_reader(settings, client))
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
        catalog = OwnedCatalog(settings, runtime.broker, opened)
        others.append(Catalog(channel, catalog).router())
        gate = make_gate(settings, client)
        people = PersonalData(
            records,
            RedisPeople(client, lambda one: settings.memory_seconds_of(one.tenant, one.assistant)),
            partial(erase, channel.eraser, channel.conversations),
        )
        others.append(people_router(channel, people))
        parts = await stack.enter_async_context(open_parts(runtime, client, records, catalog))
        others.append(
            console_router(
                Console(
                    gate,
                    records,
                    records_days=settings.records_days,
                    provider=make_provider(settings),
                    parts=[
                        *parts.pages,
                        PeoplePages(people, keys),
                    ],
                    concerns=parts.concerns,
                    unavailable=stores,
                )
            )
        )
        others.append(sources_router(channel, parts.operations))
        if parts.gaps is not None:
            others.append(gaps_router(channel, parts.gaps))
        made = make_app(
            channel,
            stopping=stopping,
            registry=meter.registry,
            turns=settings.history_turns,
            unavailable=stores,
            others=others,
            budget=budget,
            reviews=ReviewParts(
                attachments,
                NamedDocumentFinder(attachments, catalog),
                reports,
                _make_estimate(settings),
            ),
            has_session=gate.has_session,
            library=library,
            mcp=_find_mcp(replace(channel, desks=desks(runtime, MCP)), library, stopping),
        )
        async with made.running(), reading_mail_replies(settings, client, channel.handover):
            yield made.app
    finally:
        await stack.aclose()
        if records is not None:
            await asyncio.to_thread(records.close)
        await attachments.close()
        if opened is not None:
            await opened.close()
        await client.aclose()


def _find_mcp(
    channel: HttpChannel, library: SearchableLibrary, stopping: asyncio.Event
) -> MakeEndpoint | None:
    """Return what makes the MCP endpoint; None if the package of the protocol is missing."""
    if find_spec("mcp") is None:
        return None
    from gateway.mcp.endpoint import make_endpoint

    return partial(make_endpoint, channel, library, stopping, version("refdesk"), STORES)


def _make_estimate(settings: Settings) -> EstimateReview:
    """Return the estimator of reviews; None without a model."""
    if not settings.uses_model:
        return estimate_nothing

    def estimate(rules: int, documents: int) -> ReviewEstimate:
        cost = estimate_cost(rules, documents, settings.gen_model)
        usd = None if cost.usd is None else float(cost.usd)
        return ReviewEstimate(
            model=settings.gen_model, calls=cost.calls, tokens=cost.tokens, cost_usd=usd
        )

    return estimate


def list_person_issuers(settings: Settings) -> list[PersonIssuer]:
    """Return the providers whose tokens state persons; raises `CommandError`."""
    return [
        PersonIssuer(
            issuer,
            one.audience,
            one.tenant or settings.tenant,
            _keys_at(one.jwks_url),
            one.groups_claim,
        )
        for issuer, one in settings.person_issuers.items()
    ]


def _keys_at(address: str) -> SigningKeys:
    try:
        check_address(address)
    except ValueError as error:
        raise CommandError(f"PERSON_ISSUERS: jwks_url: {error}") from error

    async def find_address() -> str:
        return address

    return SigningKeys(find_address)


def visitor_limits(settings: Settings) -> VisitorLimits:
    """Return the limits of one visitor of a public key."""
    return VisitorLimits(
        requests_per_minute=settings.visitor_requests_per_minute,
        questions_per_minute=settings.visitor_questions_per_minute,
        questions_per_day=settings.visitor_questions_per_day,
        openings_per_minute=settings.visitor_openings_per_minute,
        openings_per_day=settings.visitor_openings_per_day,
        failures_per_minute=settings.visitor_failures_per_minute,
        share=settings.visitor_share,
    )


def _or_zero(limit: int | None) -> int:
    return 0 if limit is None else limit
