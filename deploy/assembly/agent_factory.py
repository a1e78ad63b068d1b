"""Makes the handlers of the roles: the manager, and each agent with what it needs."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agents.agent import Agent
from config.settings import Settings
from config.texts import load_texts
from deploy.assembly.assistants import ByAssistant, UnservedAgent
from deploy.assembly.call_recording import HopCalls
from deploy.assembly.languages import language_of, make_detector
from envelope.role import Role
from knowledge.language.port import Detector
from llm.offline.model import OfflineModel
from llm.port import Model
from manager.flow import ASSISTANT, Flow
from manager.machine import Limits
from manager.manager import Manager
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler
from worker.inline_manager import InlineManager
from worker.port import Handler, SilentMeter
from worker.process import WorkerSpec

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from deploy.assembly.knowledge import Knowledge
    from worker.monitoring.metrics import PrometheusMeter

AnyAgent = Agent[Any, Any]
MODEL_RESERVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class AgentFactory:
    """What agents are made of; an agent's libraries load only where its role is worked."""

    settings: Settings
    knowledge: "Knowledge | None"
    model: Callable[[str], Model]
    detector: Detector

    def agent(self, role: str) -> AnyAgent:
        """Return the agent of a role."""
        make: Callable[[], AnyAgent] = getattr(self, f"_{role}")
        return make()

    def _lang(self) -> AnyAgent:
        from agents.lang import LangAgent

        return LangAgent(detector=self.detector, default_language=self.settings.default_language)

    def _translation(self) -> AnyAgent:
        from agents.translation import TranslationAgent

        return TranslationAgent(
            model=self.model("translate"), product_names=self.settings.product_names
        )

    def _essence(self) -> AnyAgent:
        from agents.essence import EssenceAgent

        return EssenceAgent(model=self.model("essence"))

    def _guardrails(self) -> AnyAgent:
        from agents.guardrails import GuardrailsAgent

        return GuardrailsAgent(
            model=self.model("scope"),
            searcher=self._require_knowledge().searcher,
            domain_name=self.settings.domain_name,
            domain_scope=self.settings.domain_scope,
            strictness=self.settings.guardrails_strictness,
        )

    def _search(self) -> AnyAgent:
        from agents.search import SearchAgent

        return SearchAgent(
            searcher=self._require_knowledge().searcher,
            max_context_length=self.settings.max_context_length,
            limit=self.settings.search_results_limit,
        )

    def _clarification(self) -> AnyAgent:
        from agents.clarification import ClarificationAgent

        return ClarificationAgent(
            model=self.model("clarify"),
            texts=load_texts(),
            domain_name=self.settings.domain_name,
        )

    def _augmentation(self) -> AnyAgent:
        from agents.augmentation import AugmentationAgent

        return AugmentationAgent()

    def _response(self) -> AnyAgent:
        from agents.response import DeskDomain, ResponseAgent

        settings = self.settings
        domain = DeskDomain(settings.domain_name, settings.domain_scope, settings.product_names)
        return ResponseAgent(model=self.model("respond"), texts=load_texts(), domain=domain)

    def _quality(self) -> AnyAgent:
        from agents.quality import QualityAgent

        told = language_of(self.settings, self.detector)
        return QualityAgent(model=self.model("judge"), texts=load_texts(), language_of=told)

    def _command(self) -> AnyAgent:
        from agents.command import CommandAgent

        return CommandAgent(texts=load_texts())

    def _require_knowledge(self) -> "Knowledge":
        if self.knowledge is None:
            raise LookupError("expected an open index for this role, found none")
        return self.knowledge


async def handlers(
    settings: Settings,
    roles: Sequence[str],
    client: "Redis",
    knowledge: "Knowledge | None",
    stack: AsyncExitStack,
    *,
    meter: "PrometheusMeter | None",
    models: Callable[[str], Model] | None = None,
) -> list[WorkerSpec]:
    """Return the worker specifications of these roles.

    `models` gives the model of a task; without it they are those that settings name, which are
    closed when `stack` is left.
    """
    memory = _memory(settings, client)
    if models is None:
        models = _models(settings, client, stack)
    factories = _make_factories(settings, knowledge, models)
    recorded = HopCalls(meter)
    worker_specs: list[WorkerSpec] = []
    decides = manager(settings, memory) if Role.MANAGER.value in roles else None
    beside = InlineManager(decides, meter or SilentMeter()) if decides is not None else None
    for role in roles:
        handler: Handler
        if decides is not None and role == Role.MANAGER.value:
            handler = decides
        else:
            handled = partial(
                AgentHandler,
                limit_seconds=settings.agent_timeout_seconds,
                recorded=recorded,
                on_written=recorded.count_fallbacks,
                manager=beside,
            )
            agents = {name: handled(member.agent(role)) for name, member in factories.items()}
            handler = ByAssistant(agents, handled(UnservedAgent(Role(role))))
        slots, instances = settings.concurrency_of(role), settings.instances_of(role)
        worker_specs.append(WorkerSpec(handler, slots, instances))
    if knowledge is not None:
        from deploy.assembly.ingestion import IngestionHandler

        worker_specs.append(WorkerSpec(IngestionHandler(settings, knowledge), 1))
    return worker_specs


def _make_factories(
    settings: Settings, knowledge: "Knowledge | None", models: Callable[[str], Model]
) -> dict[tuple[str, str], AgentFactory]:
    """Return a factory for each assistant: each knows its own documents only."""
    detector = make_detector(settings)
    own, *_ = every = settings.of_assistants()
    return {
        (one.tenant, one.assistant): AgentFactory(
            one,
            knowledge.of(one.tenant, one.assistant, own=(own.tenant, own.assistant))
            if knowledge is not None
            else None,
            models,
            detector,
        )
        for one in every
    }


def _memory(settings: Settings, client: "Redis") -> RedisMemory:
    return RedisMemory(
        client,
        shards=settings.shards,
        window=settings.history_turns,
        ttl_of=lambda question: settings.memory_seconds_of(question.tenant, question.assistant),
    )


def manager(settings: Settings, memory: RedisMemory) -> Manager:
    """Return the manager of the assistant's flow."""
    return Manager(
        Flow(ASSISTANT),
        memory,
        load_texts(),
        limits=Limits(
            research=settings.max_research,
            regenerate=settings.max_regenerate,
            rounds=settings.max_clarification_rounds,
            process_count=settings.max_process_count,
            total_time_seconds=settings.deadline_seconds - MODEL_RESERVE_SECONDS,
        ),
        quality_threshold=settings.quality_score_threshold,
    )


def _models(settings: Settings, client: "Redis", stack: AsyncExitStack) -> Callable[[str], Model]:
    """Return what makes a task's model; `offline` alone loads nothing of the vendors."""
    offline: Model = OfflineModel()
    made: list[Callable[[str], Model]] = []

    def model(task: str) -> Model:
        if settings.model_of(task) == OfflineModel.name:
            return offline
        if not made:
            from deploy.assembly.models import make_registry, make_stored_models

            registry = make_registry(settings, client)
            stack.push_async_callback(registry.close)
            made.append(make_stored_models(settings, registry, client))
        return made[0](task)

    return model
