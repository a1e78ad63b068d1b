"""Ingests documents, either in this process or in the process that owns the index."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from broker.ports import Broker, DraftWriter
from broker.values import Fields
from config.settings import Settings
from deploy.assembly.check_questions import checking
from deploy.assembly.knowledge import (
    Knowledge,
    close_embedder,
    identify_vectors,
    make_embedder,
)
from deploy.assembly.languages import language_of, make_detector
from envelope.role import Role
from gateway.documents.index_owner import ask_owner
from knowledge.calibration.calibrating import calibrate
from knowledge.embedding import Embedder
from knowledge.ingestion_report import (
    IngestionResult,
    LimitWaits,
    Report,
)
from knowledge.open_index import OpenIndex
from knowledge.owner_requests import COUNTS, RESULT, SOURCES
from knowledge.source_registry import (
    STORES,
    WEBSITES,
    FetchedSource,
    locate_copy,
    spec_of,
)
from llm.quotas import Limiter, PatientLimiter
from memory.ingestion_exchange import RedisExchange, RedisKeptAnswers
from memory.presence import RedisPresence
from worker.ingestion import IngestionHandler
from worker.paid_embedder import PaidEmbedder

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from knowledge.index.listing import ListedDocument
    from knowledge.index.overlap import SurveySource
    from knowledge.ingestion import BeforeChange
    from knowledge.isolation.messages import ReadingLimits
    from knowledge.rule_descriptions import RuleDescriber
    from worker.descriptions import ModelDescriber
    from worker.distributed_ingestion import Orders, ReadHandler, WriteHandler

_COUNTS = TypeAdapter(tuple[int, int, int, int])
MOST_READERS = 8
"""The maximum number of readers; further ones would wait for the single process that embeds and
writes.
"""
OFTEN_LINKED = 5
"""The number of documents that must link to a host before it is suggested for `LINK_HOSTS`."""


def count_processors(control_groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many processors this process may use, considering the quota of its container."""
    # macOS has no such function.
    listed = getattr(os, "sched_getaffinity", None)
    processors = (os.cpu_count() or 1) if listed is None else len(listed(0))
    quota = _read_quota(control_groups)
    return processors if quota is None else max(1, min(processors, round(quota)))


def count_readers(settings: Settings) -> int:
    """Return how many documents this process reads in parallel."""
    return settings.ingestion_readers or min(count_processors(), MOST_READERS)


def limit_reading(settings: Settings) -> "ReadingLimits":
    """Return the limits for reading one document."""
    from knowledge.isolation.messages import ReadingLimits

    return ReadingLimits(
        seconds=settings.ingestion_file_seconds, memory_mb=settings.ingestion_file_memory_mb
    )


def make_waiting_embedder(
    settings: Settings, patient: PatientLimiter | None
) -> "Callable[[OpenIndex], Embedder]":
    """Return a function that returns the embedder for an index. The embedder waits for the rate
    limits of its vendor.

    If the vectors of the index were created with other settings, the embedder of the index is
    returned unchanged.
    """
    if patient is None or not settings.has_vendor_embedding:
        return lambda opened: opened.embedder
    waiting = make_embedder(settings, patient)

    def choose(opened: OpenIndex) -> Embedder:
        same = identify_vectors(waiting) == identify_vectors(opened.embedder)
        return waiting if same else opened.embedder

    return choose


def make_patient(limits: Limiter | None) -> PatientLimiter | None:
    """Return the limiter for an ingestion, which waits as long as necessary."""
    return None if limits is None else PatientLimiter(limits)


def count_waits(patient: PatientLimiter | None) -> LimitWaits | None:
    """Return how long an ingestion waited because of rate limits, or None if it did not have to
    wait.
    """
    if patient is None or not patient.waits:
        return None
    return LimitWaits(patient.waits, patient.seconds)


async def ingest_here(
    settings: Settings,
    knowledge: OpenIndex,
    sources: "Sequence[Path | FetchedSource | SurveySource]",
    report: Report,
    replaced: "Sequence[ListedDocument]" = (),
    *,
    limits: "Limiter | None" = None,
    describes_by_rules: bool = False,
    before_change: "BeforeChange | None" = None,
    orders: "Orders | None" = None,
) -> IngestionResult:
    """Ingest sources into an index that this process owns; `replaced` is passed to `ingest`.

    `limits` are the rate limits of the embedding vendor. If `describes_by_rules` is true, no model
    is called to describe changed documents; existing descriptions of other documents are kept.
    `before_change` is passed to `ingest`. If `orders` is given, other processes read and write the
    documents.
    """
    # Imported here: it loads every reader of documents, which most commands do not need.
    from knowledge.ingestion import ingest
    from knowledge.isolation.reader_process import ReaderProcess
    from knowledge.kept_answers import MOST_VECTORS, VECTORS, KeptAnswers
    from knowledge.rule_descriptions import RuleDescriber
    from worker.distributed_ingestion import DistributedReading, DistributedWriting

    patient = make_patient(limits)
    describer = make_describer(settings, report, limiter=patient)
    if describes_by_rules and not isinstance(describer, RuleDescriber):
        name, close = describer.name, describer.close
        await close()
        describer = RuleDescriber(name)
    chosen = make_waiting_embedder(settings, patient)(knowledge)
    kept = KeptAnswers(settings.refdesk_data, VECTORS, most=MOST_VECTORS)
    embedder = PaidEmbedder(chosen, kept if settings.has_vendor_embedding else None)
    async with AsyncExitStack() as closing:
        if chosen is not knowledge.embedder:
            closing.push_async_callback(close_embedder, chosen)
        if not isinstance(describer, RuleDescriber):
            closing.push_async_callback(describer.close)
        stack = closing.enter_context(ExitStack())
        readers = [
            closing.enter_context(ReaderProcess(limit_reading(settings)))
            for _ in range(1 if orders is not None else count_readers(settings))
        ]
        writing = None if orders is None else DistributedWriting(orders)
        result = await ingest(
            [_open_source(settings.data_place, source, stack) for source in sources],
            knowledge.index,
            embedder,
            describer,
            readers,
            report,
            language_of=language_of(
                make_detector(settings.refdesk_data), settings.default_language
            ),
            default_language=settings.default_language,
            replaced=replaced,
            before_change=before_change,
            reading=None if orders is None else DistributedReading(orders),
            writing=writing,
        )
        if not isinstance(describer, RuleDescriber):
            await describer.finish()
            result = replace(result, descriptions=describer.usage)
        await kept.clear()
        notes = await calibrate(knowledge.index, embedder)
    notes = [*notes, *_suggest_link_hosts(result, settings.link_hosts)]
    usages = [
        usage
        for usage in (embedder.usage, None if writing is None else writing.usage)
        if usage is not None
    ]
    return replace(
        result,
        warned=(*notes, *result.warned),
        embedding=sum(usages[1:], usages[0]) if usages else None,
        waits=count_waits(patient),
    )


async def ingest_alone(
    settings: Settings,
    knowledge: Knowledge,
    sources: Sequence[Path | FetchedSource],
    report: Report,
    replaced: "Sequence[ListedDocument]" = (),
    orders: "Orders | None" = None,
) -> IngestionResult:
    """Ingest in a process that does not run searches, and then build the search index, which blocks
    the process.
    """
    knowledge.index.optimize_regularly()
    async with checking(settings, knowledge, _name_sources(sources)) as begin_check:
        result = await ingest_here(
            settings,
            knowledge,
            sources,
            report,
            replaced,
            limits=knowledge.limits,
            before_change=begin_check,
            orders=orders,
        )
    await knowledge.index.optimize()
    return result


def make_describer(
    settings: Settings,
    report: Report | None = None,
    *,
    pauses: tuple[float, ...] | None = None,
    limiter: "Limiter | None" = None,
) -> "RuleDescriber | ModelDescriber":
    """Return the describer of pages, which uses rules or the model in `DESCRIPTION_MODEL`.

    `pauses` overrides the seconds between requests to an unavailable model; `limiter` limits the
    requests.
    """
    if settings.description_model == "offline":
        from knowledge.rule_descriptions import RuleDescriber

        return RuleDescriber()
    from deploy.assembly.assistant_prompts import load_overriding_prompts
    from deploy.assembly.models import make_registry
    from knowledge.kept_answers import DESCRIPTIONS, MOST_DESCRIPTIONS, KeptAnswers
    from worker.descriptions import PAUSE_SECONDS, ModelDescriber

    prompts = load_overriding_prompts(settings.prompts_folder)
    registry = make_registry(settings, prompts=prompts, limiter=limiter)
    return ModelDescriber(
        registry.model(settings.description_model),
        prompts,
        KeptAnswers(settings.refdesk_data, DESCRIPTIONS, most=MOST_DESCRIPTIONS),
        concurrency=settings.description_concurrency,
        report=report,
        pauses=PAUSE_SECONDS if pauses is None else pauses,
        close=registry.close,
    )


async def ingest_by_owner(
    broker: Broker,
    assistant_key: tuple[str, str],
    sources: Sequence[FetchedSource],
    report: Report,
) -> IngestionResult:
    """Have the process that owns the index run the ingestion, and wait for it; raises
    `IndexUnavailable`.
    """
    payload: Fields = {SOURCES: [source.model_dump(mode="json") for source in sources]}
    shown = ""

    def show(draft: Fields) -> None:
        nonlocal shown
        total, *counts = _COUNTS.validate_python(draft.get(COUNTS))
        if shown != (shown := str(draft["draft"])):
            report.start(shown, total)
        if total:
            report.advance(*counts)

    reply = await ask_owner(broker, assistant_key, payload, on_draft=show)
    return RESULT.validate_python(reply)


async def find_orders(
    settings: Settings, assistant_key: tuple[str, str], broker: Broker, client: "Redis"
) -> "Orders | None":
    """Return an object that passes documents to other processes, or None if this process has to do
    all the work itself.

    It is None for an embedded index, and if no process works for the roles `read` and `write`.
    """
    if settings.qdrant_url is None:
        return None
    living = await RedisPresence(client).living()
    working = {role for worker in living for role in worker.roles if role not in worker.paused}
    if not {Role.READ.value, Role.WRITE.value} <= working:
        return None
    from worker.distributed_ingestion import Orders

    return Orders(broker, RedisExchange(client), assistant_key)


def make_read_handler(
    settings: Settings, client: "Redis", stack: AsyncExitStack
) -> "tuple[ReadHandler, int]":
    """Return the handler that reads documents for other processes, and how many it reads in
    parallel.
    """
    from knowledge.isolation.reader_pool import ReaderPool
    from knowledge.isolation.reader_process import ReaderProcess
    from worker.distributed_ingestion import ReadHandler

    pool = ReaderPool(
        [
            stack.enter_context(ReaderProcess(limit_reading(settings)))
            for _ in range(count_readers(settings))
        ]
    )
    return ReadHandler(pool, RedisExchange(client)), pool.at_once


def make_write_handler(
    settings: Settings, knowledge: Knowledge, client: "Redis", stack: AsyncExitStack
) -> "tuple[WriteHandler, int]":
    """Return the handler that writes documents for other processes, and how many it writes in
    parallel.
    """
    from worker.distributed_ingestion import DOCUMENTS_PER_WRITER, WriteHandler

    choose = make_waiting_embedder(settings, make_patient(knowledge.limits))
    if (chosen := choose(knowledge)) is not knowledge.embedder:
        stack.push_async_callback(close_embedder, chosen)
    handler = WriteHandler(
        settings.of_assistants()[0].assistant_key,
        knowledge,
        choose,
        RedisExchange(client),
        RedisKeptAnswers(client) if settings.has_vendor_embedding else None,
    )
    return handler, DOCUMENTS_PER_WRITER


def make_ingestion_handler(
    settings: Settings,
    knowledge: Knowledge,
    drafts: DraftWriter | None,
    broker: Broker | None,
    client: "Redis",
) -> IngestionHandler:
    """Return the handler for requests from other processes; `broker` is passed to `find_orders`."""
    first = settings.of_assistants()[0]

    async def ingest(
        opened: OpenIndex, sources: Sequence[FetchedSource], report: Report
    ) -> IngestionResult:
        own = _find_settings(settings, knowledge, opened)
        orders = (
            None if broker is None else await find_orders(own, own.assistant_key, broker, client)
        )
        async with checking(own, opened, _name_sources(sources)) as begin_check:
            return await ingest_here(
                settings,
                opened,
                sources,
                report,
                limits=knowledge.limits,
                before_change=begin_check,
                orders=orders,
            )

    return IngestionHandler(first.assistant_key, knowledge, ingest, drafts)


def _read_quota(control_groups: Path) -> float | None:
    """Return the processor quota of this process's control group, or None without one."""
    try:
        words = (control_groups / "cpu.max").read_text("ascii").split()
    except OSError:
        try:
            words = [
                (control_groups / "cpu" / f"cpu.cfs_{name}_us").read_text("ascii").strip()
                for name in ("quota", "period")
            ]
        except OSError:
            return None
    # Without a quota the first number is `max`, or -1 in the first version of control groups.
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def _suggest_link_hosts(
    result: IngestionResult, trusted: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield a note about hosts that many documents link to, but whose links are not shown in
    answers.
    """
    often = {
        host: count
        for host, count in result.linked_hosts
        if count >= OFTEN_LINKED and host not in trusted
    }
    if often:
        counted = ", ".join(f"{host} ({count})" for host, count in often.items())
        listed = json.dumps([*trusted, *often])
        yield (
            "LINK_HOSTS",
            f"documents often link to {counted}; answers show these addresses as code. If only "
            f"people whom you trust write pages there, set LINK_HOSTS='{listed}' (docs/links.md)",
        )


def _find_settings(settings: Settings, knowledge: OpenIndex, opened: OpenIndex) -> Settings:
    """Return the settings of the assistant that an index belongs to."""
    first, *further = settings.of_assistants()
    others = (
        further_settings
        for further_settings in further
        if knowledge.others.get(further_settings.assistant_key) is opened
    )
    return next(others, first)


def _name_sources(sources: Sequence[Path | FetchedSource]) -> list[str]:
    return [spec_of(source if isinstance(source, Path) else source.spec).root for source in sources]


def _open_source(
    data_place: tuple[Path, str, str],
    source: "Path | FetchedSource | SurveySource",
    stack: ExitStack,
) -> "Path | SurveySource":
    if not isinstance(source, FetchedSource):
        return source
    if source.outcome is not None:
        from deploy.assembly.source_opening import survey_website

        return survey_website(
            locate_copy(*data_place, WEBSITES, source.spec.place), source.spec.place, source.outcome
        )
    if source.copied is not None:
        from deploy.assembly.source_opening import open_copy

        return open_copy(
            locate_copy(*data_place, STORES, source.spec.place), source.spec, source.copied
        )
    from deploy.assembly.source_opening import open_local

    return open_local(data_place[0], source.spec, stack)
