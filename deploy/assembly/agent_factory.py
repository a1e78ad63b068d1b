"""Creates the handlers of the roles: the manager, and each agent with its dependencies.

`HandlerPipeline.make` is the only place where a handler is assembled.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agents.agent import Agent
from agents.roster import SPECS
from broker.ports import Broker, DraftWriter
from broker.values import Delivery
from config.settings import Settings
from config.texts import FixedTexts, load_texts
from deploy.assembly.languages import language_of, make_detector, read_corpus_languages
from deploy.assembly.model_choice import find_context_tokens, vendor_access
from deploy.assembly.role_slots import CONCURRENCY, INSTANCES
from deploy.assembly.tool_access import (
    NO_ACCESS,
    ToolAccess,
    open_tool_access,
)
from envelope.evidence import INDEX_READERS, name_index_version
from envelope.role import INGESTING, Role
from envelope.run import Run
from knowledge.errors import KnowledgeError
from knowledge.language.port import Detector
from knowledge.search.findings_cache import CachedSearcher, FindingsCache
from llm.missing_model import MissingModel
from llm.port import Model
from manager.evidence_checks import OnFault, ignore_fault
from manager.flow import Flow
from manager.flows import FLOWS, NEWEST
from manager.machine import Limits
from manager.manager import ManagerAgent, OnRouted, ignore_routing
from memory.console_state import RedisVerifiedAnswers
from memory.conversation import RedisMemory, RedisPeople
from memory.errors import MemoryStoreError
from memory.work_store import RedisAttachments, RedisWorkStore
from worker.agent_handler import AgentHandler, Assistant
from worker.call_recording import HopCalls
from worker.drafts import RunDrafts
from worker.isolation import IsolatedHandler, Quarantine
from worker.lazy_handler import LazyHandler
from worker.port import Handler, SilentMeter, WorkerMeter
from worker.process import WorkerSpec

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from deploy.assembly.assistant_prompts import PromptFolders
    from deploy.assembly.knowledge import Knowledge
    from knowledge.index.port import Index
    from knowledge.library.library import Library, NamedInText
    from knowledge.open_index import OpenIndex
    from knowledge.port import Searcher
    from knowledge.search.question_vectors import EarlyEmbedding
    from llm.port import Usage
    from records.verified_finder import VerifiedFinder
    from tools.calls import ToolReceipts
    from tools.catalog import ToolCatalog
    from tools.executor import ToolBudget
    from worker.metrics import PrometheusMeter

AnyAgent = Agent[Any, Any]
PromptPlaces = tuple[Path | None, Path | None]
"""The folder of an assistant's prompts, and the folder of its specialists."""
MANAGER = Role.MANAGER.value
MODEL_RESERVE_SECONDS = 5.0
INGESTION_SLOTS = 4
"""The number of concurrent ingestion requests. Documents can be listed and removed during an
ingestion, but sources are ingested one after the other.
"""
_PROCESS = uuid4().hex[:8]
"""The id of this process, which is part of the version of an embedded index, because such an index
counts only the changes made by its own process.
"""


@dataclass(frozen=True, slots=True)
class AgentFactory:
    """Creates the agents of one assistant; `agents.agent.AgentParts` lists their dependencies."""

    settings: Settings
    knowledge: "OpenIndex | None"
    model: Callable[[str], Model]
    detector: Detector
    read_languages: Callable[[tuple[str, ...]], Awaitable[Mapping[str, float]]]
    shows_drafts: bool = False
    findings: FindingsCache | None = None
    early_embedding: "EarlyEmbedding | None" = None
    tool_access: ToolAccess = NO_ACCESS
    verified: "RedisVerifiedAnswers | None" = None

    def agent(self, role: str) -> AnyAgent:
        """Return the agent of a role; imports the agent's module."""
        return SPECS[role].load_class().make(self)

    @property
    def uses_model(self) -> bool:
        return self.settings.uses_model

    def estimate_usd(self, task: str, usage: "Usage") -> Decimal | None:
        # Imported here, like everything that is needed only for model calls.
        from llm.registry import estimate_call_usd

        return estimate_call_usd(self.settings.model_of(task), usage, vendor_access(self.settings))

    @property
    def context_tokens(self) -> int:
        return find_context_tokens(self.settings)

    @property
    def searcher(self) -> "Searcher":
        knowledge = self._find_knowledge()
        if self.findings is None:
            return knowledge
        return CachedSearcher(
            knowledge,
            self.findings,
            index=self.settings.assistant_key,
            read_revision=knowledge.read_revision,
        )

    @property
    def tools(self) -> "ToolCatalog":
        # Imported here, because processes without an index do not need the search.
        from deploy.assembly.tool_access import make_tools

        return make_tools(self.settings.tool_set, self._find_knowledge(), self.tool_access.outside)

    @property
    def open_budget(self) -> "Callable[[Run], ToolBudget] | None":
        return self.tool_access.open_budget

    @property
    def open_receipts(self) -> "Callable[[Run], ToolReceipts] | None":
        return self.tool_access.open_receipts

    @property
    def library(self) -> "Library":
        return self._find_knowledge().library

    @property
    def work(self) -> RedisWorkStore:
        if self.tool_access.work is None:
            raise LookupError("a store of interim results is required")
        return self.tool_access.work

    @property
    def find_named(self) -> "Callable[[str, Sequence[str]], Awaitable[NamedInText]]":
        return self._find_knowledge().library.find_named

    @property
    def find_verified(self) -> "VerifiedFinder | None":
        if self.knowledge is None or self.verified is None:
            return None
        from knowledge.calibration.queries import find_foreign_questions
        from records.verified_finder import VerifiedFinder

        knowledge, settings = self.knowledge, self.settings
        unrelated = find_foreign_questions(settings.default_language)
        return VerifiedFinder(
            partial(self.verified.get, settings.tenant, settings.assistant),
            lambda: knowledge.embedder,
            unrelated or find_foreign_questions("en"),
            knowledge.library.find_readable,
        )

    @property
    def list_versions(self) -> Callable[[Sequence[str]], Awaitable[Sequence[str]]]:
        return self._find_knowledge().library.list_versions

    def _find_knowledge(self) -> "OpenIndex":
        if self.knowledge is None:
            raise LookupError("this role requires an open index")
        return self.knowledge

    @property
    def language_of(self) -> Callable[[str], str]:
        return language_of(self.detector, self.settings.default_language)

    @property
    def texts(self) -> FixedTexts:
        return load_texts()


@dataclass(frozen=True, slots=True)
class HandlerPipeline:
    """Creates the handlers of the roles in one process."""

    factories: Mapping[Assistant, AgentFactory]
    manager: ManagerAgent | None
    limit_seconds: float
    calls: HopCalls
    meter: WorkerMeter
    quarantine: Quarantine | None
    drafts: DraftWriter | None = None

    def make(self, role: str) -> Handler:
        """Return the handler of a role.

        A suspect (an entry whose worker died) is passed to a child process, which creates this
        handler again. All other entries are passed to the manager, or to the agent of their
        assistant; the steps of a run are described in `AgentHandler.handle`.
        """
        if role == MANAGER and self.manager is not None:
            return self.isolate(self.manager)
        agents = {assistant: factory.agent(role) for assistant, factory in self.factories.items()}
        handler = AgentHandler(
            next(iter(agents.values())),
            assistants=agents,
            limit_seconds=self.limit_seconds,
            recorded=self.calls,
            on_written=self.calls.count_fallbacks,
            read_index=self._read_index if role in INDEX_READERS else None,
            open_drafts=None if self.drafts is None else self._open_drafts,
        )
        return self.isolate(handler)

    def _open_drafts(self, delivery: Delivery) -> RunDrafts:
        assert self.drafts is not None  # noqa: S101 - `make` has checked it
        return RunDrafts(self.drafts, self.meter.count_fallback, delivery)

    async def _read_index(self, assistant: Assistant) -> str:
        """Return the version of an assistant's index, or "" if it cannot be read."""
        factory = self.factories.get(assistant)
        knowledge = None if factory is None else factory.knowledge
        if knowledge is None:
            return ""
        try:
            revision = await knowledge.read_revision()
        except KnowledgeError:
            # The hop itself reads the index next, and reports the fault.
            return ""
        is_own = knowledge.follow_server is None
        return name_index_version(revision, counted_by=_PROCESS if is_own else "")

    def isolate(self, handler: Handler) -> Handler:
        """Return a handler that runs suspects in quarantine, if there is a quarantine for its
        role.
        """
        if self.quarantine is None or handler.role.value not in self.quarantine.roles:
            return handler
        return IsolatedHandler(handler, self.quarantine, self.calls.count_isolated_calls)


async def make_worker_specs(
    settings: Settings,
    roles: Sequence[str],
    client: "Redis",
    knowledge: "Knowledge | None",
    stack: AsyncExitStack,
    *,
    meter: "PrometheusMeter | None",
    models: Callable[[str], Model] | None = None,
    quarantine: Quarantine | None = None,
    drafts: DraftWriter | None = None,
    broker: Broker | None = None,
    prompts: "PromptFolders | None" = None,
    lazily: bool = False,
) -> list[WorkerSpec]:
    """Return the worker specifications of these roles, and of ingestion if there is an index.

    `models` returns the model for a task; by default, the configured models are used, and closed
    with `stack`. Suspects run in `quarantine` if it covers their role. If `drafts` is false, no
    part of an answer is shown before the whole answer is approved. Without a `broker`, ingestions
    are not distributed across processes. `prompts` can be reloaded while the workers are running.
    If `lazily` is true, the agents of ways other than the configured one are created on first use.
    This lets a command that answers a single question start sooner, whereas a long-running process
    should report at startup what it cannot create.
    """
    from deploy.assembly.assistant_prompts import check_prompts

    served = settings.of_assistants()
    check_prompts((assistant.prompts_folder, assistant.specialists_folder) for assistant in served)
    if knowledge is not None:
        knowledge.share_vectors(client, settings.shards, settings.model_limits)
        knowledge.attach(
            RedisAttachments(client, shards=settings.shards, ttl_of=settings.find_memory_seconds)
        )

    counted = SilentMeter() if meter is None else meter
    calls = HopCalls(meter, settings.model_aliases)
    manager = None
    if MANAGER in roles:
        on_routed = ignore_routing if meter is None else meter.count_routing
        on_fault = ignore_fault if meter is None else meter.count_fault
        people = RedisPeople(client, settings.find_memory_seconds)
        memory = RedisMemory(
            client,
            shards=settings.shards,
            window=settings.history_turns,
            ttl_of=settings.find_memory_seconds,
        )
        manager = make_manager(settings, memory, on_routed, on_fault, people)
    findings = None
    if settings.search_cache_seconds:
        findings = FindingsCache(settings.search_cache_seconds, on_lookup=calls.count_search)
    models_of = {
        (assistant.prompts_folder, assistant.specialists_folder): _models(
            assistant, client, stack, prompts
        )
        if models is None
        else models
        for assistant in reversed(served)
    }
    pipeline = HandlerPipeline(
        factories=_make_factories(
            served,
            knowledge,
            models_of,
            drafts is not None,
            client,
            findings,
            _make_early_embedding(settings, knowledge, client),
            await open_tool_access(settings, roles, client, stack),
            RedisVerifiedAnswers(client),
        ),
        manager=manager,
        limit_seconds=settings.agent_timeout_seconds,
        calls=calls,
        meter=counted,
        quarantine=quarantine,
        drafts=drafts,
    )
    if any(assistant.tool_set is not None for assistant in served):
        lazily = False  # An invalid tool set stops the startup even if it is not used.
    usual = {stage.role.value for flow in _list_flows(served) for stage in flow.stages.values()}
    specs = [
        WorkerSpec(
            LazyHandler(Role(role), partial(pipeline.make, role))
            if lazily and role not in usual
            else pipeline.make(role),
            settings.concurrency.get(role, CONCURRENCY[role]),
            settings.instances.get(role, INSTANCES[role]),
        )
        for role in roles
        if role not in INGESTING
    ]
    if not INGESTING.isdisjoint(roles):
        specs += _make_ingesting(settings, roles, knowledge, client, stack)
    # Processes that only read and write documents for others do not ingest themselves.
    if knowledge is not None and not (roles and INGESTING.issuperset(roles)):
        make_ingestion = partial(_make_ingestion, settings, knowledge, drafts, broker, client)
        ingestion = LazyHandler(Role.INGESTION, make_ingestion) if lazily else make_ingestion()
        specs.append(WorkerSpec(pipeline.isolate(ingestion), slots=INGESTION_SLOTS))
    return specs


def make_manager(
    settings: Settings,
    memory: RedisMemory,
    on_routed: OnRouted,
    on_fault: OnFault = ignore_fault,
    people: RedisPeople | None = None,
) -> ManagerAgent:
    """Return the manager for the assistant's flow, which counts decisions and faults."""
    return ManagerAgent(
        FLOWS,
        memory,
        load_texts(),
        limits=Limits(
            research=settings.max_research,
            regenerate=settings.max_regenerate,
            rounds=settings.max_clarification_rounds,
            pause_seconds=settings.pause_seconds,
            process_count=settings.max_process_count,
            total_time_seconds=settings.deadline_seconds - MODEL_RESERVE_SECONDS,
            total_time_reserve_seconds=MODEL_RESERVE_SECONDS,
            retries=settings.swarm_retries,
            iterations=settings.max_iterations - 1,
            parallel_tools=settings.max_parallel_tools,
            enough_share=settings.swarm_enough_share,
        ),
        quality_threshold=settings.quality_score_threshold,
        topics={assistant.assistant_key: assistant.topic for assistant in settings.of_assistants()},
        contact=settings.contact,
        on_routed=on_routed,
        on_fault=on_fault,
        people=people,
    )


async def open_own_index(settings: Settings) -> "Index":
    """Return the index of an assistant for a process that did not open it; the caller must close
    it.
    """
    from deploy.assembly.knowledge import make_embedder, open_index

    return await open_index(settings, make_embedder(settings))


def _list_flows(served: Sequence[Settings]) -> list[Flow]:
    """Return the flows of the ways of answering that the assistants use."""
    return [FLOWS[NEWEST[settings.way.value]] for settings in served]


def _make_ingestion(
    settings: Settings,
    knowledge: "Knowledge",
    drafts: DraftWriter | None,
    broker: Broker | None,
    client: "Redis",
) -> Handler:
    from deploy.assembly.ingestion import make_ingestion_handler

    return make_ingestion_handler(settings, knowledge, drafts, broker, client)


def _make_ingesting(
    settings: Settings,
    roles: Sequence[str],
    knowledge: "Knowledge | None",
    client: "Redis",
    stack: AsyncExitStack,
) -> list[WorkerSpec]:
    """Return the specifications of the roles that read and write documents for other processes."""
    from deploy.assembly.ingestion import make_read_handler, make_write_handler

    specs = []
    if Role.READ in roles:
        handler, slots = make_read_handler(settings, client, stack)
        specs.append(WorkerSpec(handler, settings.concurrency.get(Role.READ, slots)))
    if Role.WRITE in roles and knowledge is not None:
        writing, slots = make_write_handler(settings, knowledge, client, stack)
        specs.append(WorkerSpec(writing, settings.concurrency.get(Role.WRITE, slots)))
    return specs


def _make_early_embedding(
    settings: Settings, knowledge: "Knowledge | None", client: "Redis"
) -> "EarlyEmbedding | None":
    """Return the early embedding by a vendor, or None for a model on this machine.

    A process without an index shares the vectors, through Redis, with the processes that search.
    """
    if not settings.has_vendor_embedding:
        return None
    from deploy.assembly.knowledge import make_embedder
    from deploy.assembly.models import share_vectors
    from knowledge.search.question_vectors import EarlyEmbedding, QuestionVectors

    embedder = make_embedder(settings) if knowledge is None else knowledge.embedder
    if not isinstance(embedder, QuestionVectors):
        return None
    if knowledge is None:
        share_vectors(embedder, client, settings.shards)
    return EarlyEmbedding(embedder, store_errors=(MemoryStoreError,))


def _make_factories(
    served: Sequence[Settings],
    knowledge: "Knowledge | None",
    models: Mapping[PromptPlaces, Callable[[str], Model]],
    shows_drafts: bool,
    client: "Redis",
    findings: FindingsCache | None,
    early_embedding: "EarlyEmbedding | None",
    tool_access: ToolAccess,
    verified: "RedisVerifiedAnswers | None" = None,
) -> dict[Assistant, AgentFactory]:
    """Return a factory for each assistant, which can access only the assistant's own documents.

    `models` contains the models for each folder of prompts; assistants with the same folders share
    the models and their connections.
    """
    own = served[0]
    detector = make_detector(own.refdesk_data)
    factories: dict[Assistant, AgentFactory] = {}
    for settings in served:
        known = None
        if knowledge is not None:
            known = knowledge.of(settings.tenant, settings.assistant, own=own.assistant_key)
        factories[settings.assistant_key] = AgentFactory(
            settings,
            known,
            models[settings.prompts_folder, settings.specialists_folder],
            detector,
            read_corpus_languages(settings, known, client),
            shows_drafts and settings.release != "approved",
            findings,
            early_embedding,
            tool_access,
            verified,
        )
    return factories


def _models(
    settings: Settings, client: "Redis", stack: AsyncExitStack, prompts: "PromptFolders | None"
) -> Callable[[str], Model]:
    """Return a function that returns the model for a task; with only `offline`, no vendor library
    is loaded.
    """
    offline: Model = MissingModel()
    made: list[Callable[[str], Model]] = []

    def model(task: str) -> Model:
        if settings.model_of(task) == MissingModel.name:
            return offline
        if not made:
            from deploy.assembly.models import make_registry, make_stored_models

            folders = (settings.prompts_folder, settings.specialists_folder)
            own = None if prompts is None else prompts.of(*folders)
            registry = make_registry(settings, client, prompts=own)
            stack.push_async_callback(registry.close)
            made.append(
                make_stored_models(
                    registry,
                    client,
                    settings.model_of,
                    shards=settings.shards,
                    cache_seconds=settings.model_cache_seconds,
                )
            )
        return made[0](task)

    return model
