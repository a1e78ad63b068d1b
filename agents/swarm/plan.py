"""Plans how to divide a question among workers, or decides that a single search is enough."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Self

import structlog
from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, DeskDomain, ProgressStep, ReadsLanguage
from agents.swarm.plan_making import (
    OfferedTool,
    describe_done,
    extend_plan,
    list_risky,
    plan_listed,
    read_plan,
    repeat_failed,
)
from agents.swarm.strategies import (
    AUTO,
    StrategyRegistry,
    make_strategies,
)
from agents.swarm.swarm_plan import (
    FieldType,
    PlanCost,
    PlanRejected,
    RequiredInfoField,
    SwarmError,
    SwarmPlan,
    measure_cost,
)
from agents.swarm.workers import WorkerRegistry, make_registry, read_ends
from envelope.conversation import PauseQuestion, Turn
from envelope.outcome import GaveUp, HopOutcome, RetryAfter, Wrote
from envelope.role import Role
from envelope.swarm import PlanStep
from envelope.texts import Texts
from llm.errors import ModelError, ModelUnavailable
from llm.port import Model, ModelAnswer, Usage
from llm.tasks.question import ContextType
from llm.tasks.swarm import PLAN_SWARM, WORK_ON_TASK, MissingFact, PlanSwarmInputs, PlanSwarmOutput
from tools.catalog import ToolCatalog
from tools.passages import describe_documents, list_languages

if TYPE_CHECKING:
    from knowledge.index.listing import ListedDocument

log = structlog.get_logger("agents")
PLAN_APPROVAL = "swarm_plan"
"""The id of the question whether a risky plan may be started."""
PLANNER = "plan"
"""The key in `required_info` for the facts that the planner asks for."""
ListDocuments = Callable[[Sequence[str]], "Awaitable[Sequence[ListedDocument]]"]
"""Returns the documents that a person in these groups may read."""
REPLANNED = "planned again for the missing parts"
REPEATED = "the workers that failed were started again"
_MOST_FACTS = 5
_MOST_TURNS, _LONGEST_TURN = 6, 500
_LONGEST_NAME = 80
_MOST_PASSAGES = 10
"""Maximum number of documents that are shown to the planner."""


class Reads(ReadsLanguage, BaseModel, frozen=True):
    """The question; for a further plan, also the previous plan with its results and the missing
    parts.
    """

    canonical_question: str
    history: tuple[Turn, ...] = ()
    groups: tuple[str, ...] = ()
    chosen_strategy: str = ""
    collected_info: dict[str, JsonValue] = {}
    context_type: ContextType = "new_topic"
    swarm_plan: dict[str, JsonValue] = {}
    worker_outputs: dict[str, JsonValue] = {}
    task_ledger: dict[str, JsonValue] = {}
    missing: str = ""
    quality_analysis: str = ""


class Writes(BaseModel, frozen=True):
    """The plan and the next step, or a question if a person must approve the plan."""

    routing: dict[str, JsonValue]
    plan_step: PlanStep
    swarm_plan: dict[str, JsonValue] = {}
    required_info: dict[str, JsonValue] = {}
    needs_input: tuple[PauseQuestion, ...] = ()


class PlanAgent(Agent[Reads, Writes]):
    """Asks a model for a plan and accepts only a plan that can be executed.

    A rejected plan is sent back once with its problems. If the judge asks for more research, failed
    workers are repeated. If none has failed, a further plan adds workers for the missing parts; if
    there are none, the agent gives up. Without a model, each item listed in the question gets a
    worker.
    """

    role = Role.PLAN
    step = ProgressStep.UNDERSTAND
    model_task = PLAN_SWARM
    needs_index = True
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        tools: ToolCatalog,
        texts: Texts,
        list_documents: ListDocuments,
        strategies: StrategyRegistry | None = None,
        registry: WorkerRegistry | None = None,
        domain: DeskDomain | None = None,
        strategy: str = AUTO,
        most_workers: int = 32,
        most_passages: int = _MOST_PASSAGES,
        uses_model: bool = True,
        call_usd: Decimal | None = None,
    ) -> None:
        self._model = model
        self._texts = texts
        self._list_documents = list_documents
        self._strategies = make_strategies() if strategies is None else strategies
        self._registry = make_registry() if registry is None else registry
        self._domain = DeskDomain() if domain is None else domain
        self._configured = strategy
        self._most_workers = most_workers
        self._most_passages = most_passages
        self._uses_model = uses_model
        self._call_usd = call_usd
        known = tools.select()
        self._prices = {tool.name: tool.most_cost_micros for tool in known}
        self._offered = {
            tool.name: OfferedTool(name=tool.name, description=tool.description, effect=tool.effect)
            for tool in known
        }

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        settings = parts.settings
        return cls(
            model=parts.model(PLAN_SWARM.name),
            tools=parts.tools,
            texts=parts.texts,
            list_documents=parts.library.list_documents,
            domain=DeskDomain.of(settings),
            strategy=settings.swarm_strategy,
            most_workers=settings.swarm_workers,
            most_passages=min(settings.search_results_limit, _MOST_PASSAGES),
            uses_model=parts.uses_model,
            # A worker may fill the context before each call, and write as much as it may.
            call_usd=parts.estimate_usd(
                WORK_ON_TASK.name, Usage(parts.context_tokens, WORK_ON_TASK.max_output_tokens)
            ),
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        before = SwarmPlan.model_validate(reads.swarm_plan) if reads.swarm_plan else None
        unknown = self._find_unknown_strategy(reads)
        if unknown:
            log.warning("strategy_unknown", name=unknown)
            reads = reads.model_copy(update={"chosen_strategy": ""})
        try:
            if before is not None and (again := self._repeat_failed(reads, before)) is not None:
                return Wrote(again)
            if not self._uses_model:
                return self._plan_listed(reads, before)
            inputs = await self._make_inputs(reads, before)
            given = await self._model.ask(PLAN_SWARM, inputs, self.run)
            if before is not None:
                return await self._replan(reads, before, inputs, given)
            is_simple = given.output.action == "simple_response" and not reads.chosen_strategy
            if is_simple:
                routing = _describe_routing(given.output, given.model)
                routing["topic_change_detected"] = _has_changed_topic(reads)
                return Wrote(Writes(routing=routing, plan_step=PlanStep.SEARCH))
            plan, output = await self._plan(reads, inputs, given.output)
        except ModelUnavailable as error:
            # Only for a stated time: otherwise, a single search can call the same model sooner.
            reason, seconds = f"{error.reason}: {error}", error.retry_after_seconds
            return GaveUp(reason) if seconds is None else RetryAfter(seconds, reason)
        except (ModelError, SwarmError) as error:
            return GaveUp(f"{type(error).__name__}: {error}")
        writes = self._make_writes(reads, plan, output, given.model)
        writes.routing["strategy_reason"] = self._explain(reads, output, unknown)
        writes.routing["topic_change_detected"] = _has_changed_topic(reads)
        return Wrote(writes)

    def _repeat_failed(self, reads: Reads, before: SwarmPlan) -> Writes | None:
        """Return the plan with new workers for those that failed, or None if none failed.

        Failed workers have used up their retries, so they are repeated only if an answer was not
        good enough.
        """
        outputs = read_ends(reads.worker_outputs, reads.task_ledger, before)
        plan, repeated = repeat_failed(before, outputs)
        if not repeated or not reads.quality_analysis:
            return None
        plan = plan.model_copy(update={"notes": (*before.notes, REPEATED)})
        output = PlanSwarmOutput(reasoning=REPEATED, action="orchestrate", complexity=0.0)
        further = plan.model_copy(update={"workers": repeated})
        return self._make_writes(reads, plan, output, "", further=further)

    def _plan_listed(self, reads: Reads, before: SwarmPlan | None) -> HopOutcome[Writes]:
        if before is not None:
            return GaveUp("no model is in use, so the missing parts cannot be planned")
        plan = self._list(reads)
        decision = PlanSwarmOutput(
            reasoning="no model is in use, so each listed item is searched",
            action="orchestrate",
            complexity=0.0,
        )
        return Wrote(self._make_writes(reads, plan, decision, ""))

    def _list(self, reads: Reads) -> SwarmPlan:
        return plan_listed(
            reads.canonical_question,
            most_passages=self._most_passages,
            most_workers=self._most_workers,
        )

    def _find_unknown_strategy(self, reads: Reads) -> str:
        """Return the name in the request if there is no such strategy, else an empty string."""
        is_known = reads.chosen_strategy in {"", *self._strategies.names}
        return "" if is_known else reads.chosen_strategy[:_LONGEST_NAME]

    def _explain(self, reads: Reads, output: PlanSwarmOutput, unknown: str) -> str:
        """Return the reason for this strategy; `unknown` is a name in the request that does not
        exist.
        """
        if unknown:
            reason = self._explain(reads, output, "")
            return f"the request names {unknown!r}, which does not exist; {reason}"
        if reads.chosen_strategy:
            return "the request specifies the strategy"
        if self._configured != AUTO:
            return "the settings specify the strategy"
        if output.strategy in self._strategies.names:
            return "the planner chose the strategy"
        return "the planner chose no strategy"

    async def _make_inputs(self, reads: Reads, before: SwarmPlan | None) -> PlanSwarmInputs:
        chosen = reads.chosen_strategy or (self._configured if self._configured != AUTO else "")
        # The missing part belongs to the analysis.
        problems = (reads.quality_analysis or reads.missing,) if before is not None else ()
        outputs = (
            {} if before is None else read_ends(reads.worker_outputs, reads.task_ledger, before)
        )
        said = [turn.text for turn in reads.history if turn.speaker == "user"]
        listed = await self._list_documents(reads.groups)
        return PlanSwarmInputs(
            question=reads.canonical_question,
            active_question=_find_active_question(reads),
            language=reads.language,
            earlier_turns=tuple(turn[:_LONGEST_TURN] for turn in said[-_MOST_TURNS:]),
            domain_name=self._domain.name,
            domain_scope=self._domain.scope,
            documents=describe_documents(listed, reads.canonical_question),
            document_languages=list_languages(listed),
            tools={name: tool.description for name, tool in self._offered.items()},
            most_workers=self._most_workers,
            strategy=chosen,
            facts=reads.collected_info,
            done=() if before is None else tuple(describe_done(before, outputs)),
            problems=tuple(problem for problem in problems if problem),
        )

    async def _plan(
        self, reads: Reads, inputs: PlanSwarmInputs, output: PlanSwarmOutput
    ) -> tuple[SwarmPlan, PlanSwarmOutput]:
        """Return an accepted plan and its decision; after two rejected plans, a plan based on the
        listed items.
        """
        try:
            return self._read(reads, output), output
        except PlanRejected as error:
            output = await self._ask_again(inputs, error)
        try:
            return self._read(reads, output), output
        except PlanRejected as error:
            note = (
                "planned from the items in the question, because: "
                f"{'; '.join(error.problems)[:500]}"
            )
        plan = self._list(reads)
        return plan.model_copy(update={"notes": (*plan.notes, note)}), output

    async def _ask_again(self, inputs: PlanSwarmInputs, error: PlanRejected) -> PlanSwarmOutput:
        problems = (*inputs.problems, *error.problems)[:10]
        again = inputs.model_copy(update={"problems": problems})
        return (await self._model.ask(PLAN_SWARM, again, self.run)).output

    def _read(
        self, reads: Reads, output: PlanSwarmOutput, before: SwarmPlan | None = None
    ) -> SwarmPlan:
        strategy = self._strategies.choose(
            caller=reads.chosen_strategy, planner=output.strategy, configured=self._configured
        )
        first = 0 if before is None else len(before.workers)
        return read_plan(
            reads.canonical_question,
            output,
            strategy,
            self._registry,
            tuple(self._offered.values()),
            most_workers=max(1, self._most_workers - first),
            first=first,
        )

    async def _replan(
        self,
        reads: Reads,
        before: SwarmPlan,
        inputs: PlanSwarmInputs,
        given: ModelAnswer[PlanSwarmOutput],
    ) -> HopOutcome[Writes]:
        """Return the plan with further workers for the missing parts.

        Like a first plan, one that cannot be executed is sent back once.
        """
        output = given.output
        if not output.workers:
            return GaveUp("the plan for the missing parts contains no worker")
        try:
            further = self._read(reads, output, before)
        except PlanRejected as error:
            output = await self._ask_again(inputs, error)
            further = self._read(reads, output, before)
        plan = extend_plan(before, further)
        plan = plan.model_copy(update={"notes": (*plan.notes, REPLANNED)})
        return Wrote(self._make_writes(reads, plan, output, given.model, further=further))

    def _make_writes(
        self,
        reads: Reads,
        plan: SwarmPlan,
        output: PlanSwarmOutput,
        model: str,
        *,
        further: SwarmPlan | None = None,
    ) -> Writes:
        begun = plan if further is None else further
        risky = list_risky(begun.workers, self._offered)
        routing = _describe_routing(output, model)
        routing["strategy"] = plan.strategy
        routing["should_seek_approval"] = bool(risky)
        return Writes(
            routing=routing,
            plan_step=PlanStep.APPROVE if risky else PlanStep.WORK,
            swarm_plan=plan.model_dump(mode="json", exclude_defaults=True),
            required_info=_list_needed(output.needed),
            needs_input=(self._ask_approval(begun, risky, reads.reply_language),) if risky else (),
        )

    def _ask_approval(
        self, plan: SwarmPlan, risky: Mapping[str, Sequence[str]], language: str
    ) -> PauseQuestion:
        cost = measure_cost(plan, self._prices, call_usd=self._call_usd)
        names = sorted({name for own in risky.values() for name in own})
        text = self._texts.text(
            "approve_plan",
            language,
            workers=str(cost.workers),
            model_calls=str(cost.model_calls),
            tool_calls=str(cost.tool_calls),
            price=f" ({self._describe_price(cost, language)})",
            tools=", ".join(names)[:500],
        )
        return PauseQuestion(id=PLAN_APPROVAL, text=text[:2_000])

    def _describe_price(self, cost: PlanCost, language: str) -> str:
        if cost.model_usd is None:
            parts = [self._texts.text("plan_model_price_unknown", language)]
        else:
            usd = f"{cost.model_usd:.2g}"
            parts = [self._texts.text("plan_model_price", language, usd=usd)]
        if cost.tool_micros:
            usd = f"{cost.tool_micros / 1_000_000:g}"
            parts.append(self._texts.text("plan_tool_price", language, usd=usd))
        return "; ".join(parts)


def _find_active_question(reads: Reads) -> str:
    """Return the question that the conversation is still about, or an empty string if the topic has
    changed.
    """
    asked = [turn.meant or turn.text for turn in reads.history if turn.speaker == "user"]
    return asked[-1][:_LONGEST_TURN] if asked and not _has_changed_topic(reads) else ""


def _has_changed_topic(reads: Reads) -> bool:
    return bool(reads.history) and reads.context_type == "new_topic"


def _describe_routing(output: PlanSwarmOutput, model: str) -> dict[str, JsonValue]:
    return {
        "action": output.action,
        "reasoning": output.reasoning[:500],
        "confidence": output.confidence,
        "complexity_estimate": output.complexity,
        "decided_by": model,
    }


def _list_needed(needed: Sequence[MissingFact]) -> dict[str, JsonValue]:
    """Return the facts that a planner asks for; invalid field names are omitted."""
    fields: list[JsonValue] = []
    for fact in needed[:_MOST_FACTS]:
        name = "_".join(fact.name.lower().split())[:60]
        if not name.isascii() or not name.isidentifier() or name.startswith("_"):
            continue
        field = RequiredInfoField(
            name=name,
            question=(fact.question or name)[:300],
            type=FieldType(fact.type),
            choices=fact.choices[:20],
        )
        fields.append(field.model_dump(mode="json", exclude_defaults=True))
    return {PLANNER: fields} if fields else {}
