"""Asks a complete desk the golden questions, in this process and with a separate Redis.

Everything runs as in `refdesk ask`, with three differences: the desk's memory is lost at the end of
the run, no two questions share a model's answer, and questions are asked one after the other, so
that durations can be compared.
"""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from broker.values import Fields, JournalEntry
from cli.evaluation.golden import GoldenCase
from config.settings import Settings
from deploy.assembly.assistant_prompts import load_overriding_prompts
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, open_knowledge
from deploy.assembly.models import make_registry
from deploy.assembly.runtime import (
    ROLES,
    Runtime,
    connect_runtime,
    desk,
    run_workers,
)
from deploy.errors import CommandError
from envelope.json_values import read_objects, read_whole
from envelope.sources import SourceReference
from gateway.desk import Desk, Message
from knowledge.errors import IndexOwned
from knowledge.ingestion_report import PlainReport

_REFERENCES = TypeAdapter(tuple[SourceReference, ...])
OFFLINE = "offline"
CHANNEL = "evaluate"
OwnSettings = Mapping[str, object]
Progress = Callable[[str], None]
_ISOLATED: dict[str, object] = {"redis_url": None, "assistants": ()}
"""These settings, together with a different data folder, prevent the Redis of the desk from being
used.
"""
_ONE_MODEL: OwnSettings = {
    "guardrails_model": "",
    "quality_model": "",
    "translation_model": "",
    "essence_model": "",
    "clarification_model": "",
}
REMOVAL_SECONDS = 20.0
"""How long to wait for the folder's server, which exits after the command that used it."""
_RETRY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class CallTotals:
    """The model calls for one question.

    `cost_usd` is the sum of the known costs; `unknown_costs` counts the calls whose cost is
    unknown.
    """

    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    unknown_costs: int = 0


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the desks that are compared, given by a model for every task and a folder of prompts.

    Without a model, the models in the settings are used; without a folder, the built-in prompts are
    used.
    """

    model: str | None = None
    prompts: Path | None = None

    @property
    def name(self) -> str:
        """The name of the variant in the tables."""
        model = "as configured" if self.model is None else self.model
        return model if self.prompts is None else f"{model} + {self.prompts.name}"

    @property
    def changes(self) -> dict[str, object]:
        """The changes to the settings that make every task use this variant's model."""
        return {} if self.model is None else {**_ONE_MODEL, "gen_model": self.model}


@dataclass(frozen=True, slots=True)
class AskedCase:
    """A golden question with its reply, calls, and duration; `evidence` contains source texts by
    source number.
    """

    case: GoldenCase
    reply: Fields
    evidence: Mapping[int, str]
    totals: CallTotals
    seconds: float


@dataclass(frozen=True, slots=True)
class VariantRun:
    """The replies of one variant, in the order of the questions."""

    variant: Variant
    asked: tuple[AskedCase, ...]


def count_calls(journal: Sequence[JournalEntry]) -> CallTotals:
    """Return the model calls in a journal, including failed ones."""
    calls = [
        entry.fields
        for entry in journal
        if entry.kind == "model_call" and entry.fields.get("model") != OFFLINE
    ]
    asked = [call for call in calls if not call.get("from_store") and not call.get("from_cache")]
    costs = [_parse_cost(call.get("cost_usd")) for call in asked]
    return CallTotals(
        calls=len(asked),
        failed=sum("error" in call for call in asked),
        input_tokens=sum(read_whole(call.get("input_tokens")) for call in asked),
        output_tokens=sum(read_whole(call.get("output_tokens")) for call in asked),
        cost_usd=sum((cost for cost in costs if cost is not None), Decimal(0)),
        unknown_costs=costs.count(None),
    )


def collect_evidence(journal: Sequence[JournalEntry], reply: Fields) -> dict[int, str]:
    """Return the text of each source that a reply cites, by its number in the reply.

    This is the text from which the answer was written, by a model or by rules. A source whose text
    is not in the journal is omitted.
    """
    texts = _collect_texts(journal)
    evidence: dict[int, str] = {}
    for source in read_objects(reply.get("sources")):
        number, text = source.get("number"), texts.get(str(source.get("chunk_id")))
        if isinstance(number, int) and text is not None:
            evidence[number] = text
    return evidence


@asynccontextmanager
async def open_documents(settings: Settings, documents: Sequence[Path]) -> AsyncIterator[Knowledge]:
    """Open the desk's documents, or these paths in a temporary index.

    Raises `CommandError` if there are no documents, or if another process owns the desk's index.
    """
    async with AsyncExitStack() as stack:
        if documents:
            folder = await stack.enter_async_context(open_scratch_folder())
            settings = settings.model_copy(
                update={**_ISOLATED, "refdesk_data": folder, "qdrant_url": None}
            )
            result = await run_ingestion(settings, documents, PlainReport(lambda _line: None))
            if result.failed:
                source, reason = result.failed[0]
                raise CommandError(f"{source} cannot be read: {reason}")
        try:
            knowledge = await stack.enter_async_context(open_knowledge(settings, alone=True))
        except IndexOwned as error:
            raise CommandError(
                f"{error}; stop it for the run, or specify the documents with --documents"
            ) from error
        if not await knowledge.has_documents():
            raise CommandError(
                "there are no documents: specify them with --documents PATH, put them in the "
                "`documents` folder of the --data directory, or run: refdesk ingest PATH..."
            )
        yield knowledge


async def run_variant(
    settings: Settings,
    knowledge: Knowledge,
    variant: Variant,
    cases: Sequence[GoldenCase],
    report: Progress,
) -> VariantRun:
    """Return the replies of one variant to all questions."""
    folder = variant.prompts or settings.prompts_folder
    prompts = load_overriding_prompts(folder, settings.specialists_folder)
    async with AsyncExitStack() as stack:
        scratch = await stack.enter_async_context(open_scratch_folder())
        own = settings.model_copy(
            update={
                **variant.changes,
                **_ISOLATED,
                "refdesk_data": scratch,
                "model_cache_seconds": 0,
            }
        )
        runtime = await stack.enter_async_context(connect_runtime(own))
        client = runtime.endpoint.client()
        stack.push_async_callback(client.aclose)
        registry = make_registry(own, client, prompts=prompts)
        stack.push_async_callback(registry.close)
        await stack.enter_async_context(
            run_workers(
                runtime, ROLES, knowledge, models=lambda task: registry.model(own.model_of(task))
            )
        )
        asked = await _ask_all(runtime, desk(runtime, CHANNEL), cases, variant, report)
    return VariantRun(variant, asked)


@asynccontextmanager
async def open_scratch_folder() -> AsyncIterator[Path]:
    """Provide a new folder inside the context; raises `OSError` if the folder cannot be removed
    within 20 seconds.
    """
    folder = Path(tempfile.mkdtemp(prefix="refdesk-evaluate-"))
    try:
        yield folder
    finally:
        await _remove(folder)


def _collect_texts(journal: Sequence[JournalEntry]) -> dict[str, str]:
    context = ""
    texts: dict[str, str] = {}
    for entry in journal:
        writes = entry.fields.get("writes")
        if not isinstance(writes, dict):
            continue
        written = writes.get("search_context")
        context = written if isinstance(written, str) and written else context
        for reference in _parse_references(writes):
            start, end = reference.span
            place = " > ".join((reference.title, *reference.crumbs, *reference.heading_path))
            texts[reference.chunk_id] = f"{place}\n{context[start:end]}"
    return texts


def _parse_references(writes: Mapping[str, JsonValue]) -> tuple[SourceReference, ...]:
    try:
        return _REFERENCES.validate_python(writes.get("source_references") or ())
    except ValidationError:
        return ()  # the sources are then reported as unknown, not as supporting anything


def _parse_cost(value: JsonValue) -> Decimal | None:
    try:
        return None if value is None else Decimal(str(value))
    except InvalidOperation:
        return None


async def _ask_all(
    runtime: Runtime,
    asks: Desk,
    cases: Sequence[GoldenCase],
    variant: Variant,
    report: Progress,
) -> tuple[AskedCase, ...]:
    asked: list[AskedCase] = []
    for number, case in enumerate(cases, start=1):
        report(f"{variant.name}: question {number} of {len(cases)}")
        asked.append(await _ask_case(runtime, asks, case, number))
    return tuple(asked)


async def _ask_case(runtime: Runtime, asks: Desk, case: GoldenCase, number: int) -> AskedCase:
    conversation = f"golden-{number}"
    for turn, text in enumerate(case.turns, start=1):
        await asks.ask(Message(text, conversation, f"turn-{turn}"))
    message = Message(case.question, conversation, "question")
    began = time.perf_counter()
    reply = await asks.ask(message)
    seconds = time.perf_counter() - began
    journal = await runtime.broker.replies.read_journal(asks.question(message))
    return AskedCase(
        case=case,
        reply=reply,
        evidence=collect_evidence(journal, reply),
        totals=count_calls(journal),
        seconds=seconds,
    )


async def _remove(folder: Path) -> None:
    until = time.monotonic() + REMOVAL_SECONDS
    while True:
        try:
            await asyncio.to_thread(_remove_now, folder)
        except OSError:
            if time.monotonic() > until:
                raise
            await asyncio.sleep(_RETRY_SECONDS)
        else:
            return


def _remove_now(folder: Path) -> None:
    # A server that is still exiting changes files, so `rmtree` raises an error and is repeated.
    if folder.exists():
        shutil.rmtree(folder)
