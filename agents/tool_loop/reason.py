"""Plans the tool calls for a round of the tool loop; the agent `tool` runs them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, MayAsk, ProgressStep
from envelope.conversation import ClarificationReason
from envelope.outcome import GaveUp, HopOutcome, Wrote
from envelope.role import Role
from envelope.tool_loop import Intent, PlanRound, Strategy
from llm.errors import ModelError
from llm.port import (
    ConversationModel,
    Model,
    ModelMessage,
    Remark,
    ToolConversation,
    ToolDescription,
    ToolUse,
    UserMessage,
)
from llm.tasks.tool_loop import REASON, ReasonInputs
from tools.catalog import ToolCatalog, describe_tools
from tools.dialogue import (
    INTENT,
    MOST_STEPS,
    NEXT,
    Dialogue,
    DialogueLimits,
    describe_calls,
    plan_searches,
    read_results,
    remove_stated,
)
from tools.passages import describe_documents

if TYPE_CHECKING:
    from knowledge.index.listing import ListedDocument

OUT_OF_SCOPE = "out_of_scope_handler"
"""The tool that a model calls for a question that is not about the documents."""
_OF_OTHER_STEPS = frozenset({"assess_confidence", "format_report", "verify_citation"})
"""Tools that are not offered to a planner, because other steps write the answer and check it."""
_INTENTS = tuple(
    intent.value for intent in Intent if intent not in {Intent.OUT_OF_SCOPE, Intent.MULTI_TOOL}
)
_WRITE = "write"
_PROPERTIES: dict[str, JsonValue] = {
    INTENT: {"type": "string", "enum": [*_INTENTS]},
    NEXT: {"type": "string", "enum": [_WRITE, "plan"]},
}
ListVersions = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Returns the versions stated in documents, for a person in these groups."""
ListDocuments = Callable[[Sequence[str]], "Awaitable[Sequence[ListedDocument]]"]
"""Returns the documents that a person in these groups may read."""
_MOST_REASONING = 2_000
_MOST_PASSAGES = 10
"""Maximum number of documents that are shown to the model."""


class Reads(BaseModel, frozen=True):
    """The question, the rounds so far, and the parts that are missing from the last answer or were
    requested by its writer.
    """

    canonical_question: str
    language: str = "en"
    groups: tuple[str, ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}
    continues_planning: bool = False
    missing: str = ""
    quality_analysis: str = ""
    response: str = ""
    needs_clarification: bool = False
    clarification_reason: ClarificationReason | None = None
    clarification_message: str = ""


class Writes(MayAsk, frozen=True):
    """The calls for this round, or none if everything was found or nothing more can be found.

    `intent` is None if the model stated none. `plan_rounds` has an entry for each round with calls.
    If an answer was judged and no new call is planned, `is_loop_over` is true. If no answer could
    be written, the clarification attributes contain what its writer asked for.
    """

    intent: Intent | None
    reasoning: str
    strategy: Strategy | None
    tool_calls: tuple[dict[str, JsonValue], ...]
    continues_planning: bool
    plan_messages: tuple[dict[str, JsonValue], ...]
    plan_rounds: tuple[PlanRound, ...]
    is_loop_over: bool = False


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The limits of a plan: the calls per round, and the passages if no model is in use."""

    most_calls: int = 8
    most_passages: int = _MOST_PASSAGES


def _read_clock() -> datetime:
    return datetime.now(UTC)


class ReasonAgent(Agent[Reads, Writes]):
    """Asks a model which tools to call next; without a model, it plans plain searches.

    A model receives the results of its calls before an answer is written from them. The names and
    arguments of calls are checked by the executor, not here. If the model fails after something was
    found, the answer is written from the results so far.
    """

    role = Role.REASON
    step = ProgressStep.SEARCH
    model_task = REASON
    needs_index = True
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        tools: ToolCatalog,
        list_versions: ListVersions,
        list_documents: ListDocuments,
        limits: PlanLimits = PlanLimits(),
        prompt: ReasonInputs = ReasonInputs(question=""),  # noqa: B008 - frozen
        uses_model: bool = True,
        now: Callable[[], datetime] = _read_clock,
    ) -> None:
        self._model = model
        offered = [tool for tool in tools.select_distinct() if tool.name not in _OF_OTHER_STEPS]
        self._tools = tuple(map(_add_stated, describe_tools(offered)))
        self._list_versions = list_versions
        self._list_documents = list_documents
        self._limits = limits
        self._prompt = prompt.model_copy(update={"combinations": dict(tools.combinations)})
        self._uses_model = uses_model
        self._now = now

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        settings = parts.settings
        return cls(
            model=parts.model(REASON.name),
            tools=parts.tools,
            list_versions=parts.list_versions,
            list_documents=parts.library.list_documents,
            limits=PlanLimits(
                settings.max_tool_calls if settings.multi_tool_enabled else 1,
                min(settings.search_results_limit, _MOST_PASSAGES),
            ),
            prompt=ReasonInputs(
                question="",
                domain_name=settings.domain_name,
                domain_scope=settings.domain_scope,
            ),
            uses_model=parts.uses_model,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        dialogue = await self._open(reads)
        if not self._uses_model:
            return Wrote(self._plan_searches(reads, dialogue))
        if not isinstance(self._model, ConversationModel):
            return GaveUp(f"the model {self._model.name!r} does not support tool calls")
        try:
            step = await dialogue.take_step(self._model, self.run)
        except ModelError as error:
            reason = f"{type(error).__name__}: {error}"
            if not dialogue.results:
                return GaveUp(reason)
            return Wrote(self._make_writes(ModelMessage(text=f"no further calls: {reason}"), reads))
        message = step.message
        if step.end is not None and not step.model:
            message = ModelMessage(text=f"no further calls: {step.end.value}")
        return Wrote(self._make_writes(message, reads))

    def _plan_searches(self, reads: Reads, dialogue: Dialogue) -> Writes:
        """Return the next searches, whose results are shown without an assessment."""
        calls: tuple[ToolUse, ...] = ()
        if reads.continues_planning or not reads.response:
            calls = plan_searches(
                reads.canonical_question, dialogue, most_passages=self._limits.most_passages
            )
        return self._make_writes(ModelMessage(calls=calls), reads)

    async def _open(self, reads: Reads) -> Dialogue:
        """Return the dialogue so far, and the parts missing from its last answer."""
        remark = _make_remark(reads)
        opening = ToolConversation(
            task=REASON.name,
            messages=(UserMessage(text=reads.canonical_question),),
            tools=self._tools,
            prompt=await self._make_prompt(reads) if self._uses_model else None,
        )
        return Dialogue(
            opening,
            tuple(ModelMessage.model_validate(message) for message in reads.plan_messages),
            read_results(reads.multi_tool_results),
            prefix="r",
            limits=DialogueLimits(
                MOST_STEPS,
                self._limits.most_calls,
                stops_early=True,
                must_look=True,
                writes_last=False,
            ),
            remarks=() if remark is None else (UserMessage(remark=remark),),
        )

    async def _make_prompt(self, reads: Reads) -> ReasonInputs:
        return self._prompt.model_copy(
            update={
                "question": reads.canonical_question,
                "language": reads.language,
                "today": self._now().date().isoformat(),
                "versions": tuple(await self._list_versions(reads.groups)),
                "documents": describe_documents(
                    await self._list_documents(reads.groups), reads.canonical_question
                ),
                "most_calls": self._limits.most_calls,
            }
        )

    def _make_writes(self, message: ModelMessage, reads: Reads) -> Writes:
        calls = message.calls
        before = [ModelMessage.model_validate(message) for message in reads.plan_messages]
        planned = PlanRound(
            round=len(before) + 1,
            intent=_find_intent(calls) if self._uses_model else Intent.SEARCH,
            is_multi_tool=len({use.name for use in calls}) > 1,
            strategy=_find_strategy(calls, before),
            reasoning=message.text[:_MOST_REASONING],
            tools=tuple(use.name for use in calls),
        )
        is_further = not calls and _list_gaps(reads) is not None
        asked = _ask_again(reads) if is_further and not reads.response else {}
        return Writes(
            intent=planned.intent,
            reasoning=planned.reasoning,
            strategy=planned.strategy,
            tool_calls=describe_calls([remove_stated(use) for use in calls]),
            continues_planning=any(_read_stated(use, NEXT) != _WRITE for use in calls),
            plan_messages=(message.model_dump(mode="json"),) if calls else (),
            plan_rounds=(planned,) if calls else (),
            is_loop_over=is_further and not asked,
            **asked,
        )


def _add_stated(tool: ToolDescription) -> ToolDescription:
    """Return a tool with arguments in which the model states the purpose of a call.

    The tool that ends the question, and a tool that has an argument with the same name, are
    unchanged.
    """
    properties, required = tool.input_schema["properties"], tool.input_schema["required"]
    if not isinstance(properties, dict) or not isinstance(required, list):
        return tool
    if tool.name == OUT_OF_SCOPE or not _PROPERTIES.keys().isdisjoint(properties):
        return tool
    stated: dict[str, JsonValue] = {
        **tool.input_schema,
        "properties": {**properties, **_PROPERTIES},
        "required": [*required, *_PROPERTIES],
    }
    return tool.model_copy(update={"input_schema": stated})


def _read_stated(use: ToolUse, name: str) -> str:
    value = use.arguments.get(name) if isinstance(use.arguments, dict) else None
    return value if isinstance(value, str) else ""


def _find_intent(calls: Sequence[ToolUse]) -> Intent | None:
    """Return the intent that the model states for the calls, or None if it states no known intent.

    If the calls have several intents, it is `MULTI_TOOL`. A question is out of scope if the model
    calls only the tool for that purpose.
    """
    if calls and {use.name for use in calls} == {OUT_OF_SCOPE}:
        return Intent.OUT_OF_SCOPE
    stated = {intent for use in calls if (intent := _read_stated(use, INTENT)) in _INTENTS}
    if len(stated) > 1:
        return Intent.MULTI_TOOL
    return Intent(stated.pop()) if stated else None


def _list_gaps(reads: Reads) -> tuple[str, ...] | None:
    """Return the parts missing from the answer of the last round, or None if there was no answer
    yet.
    """
    if not reads.plan_messages or reads.continues_planning:
        return None
    if reads.needs_clarification and reads.clarification_message:
        return (reads.clarification_message,)
    return (reads.missing,) if reads.missing else ()


def _make_remark(reads: Reads) -> Remark | None:
    """Return a remark about the parts missing from the last answer, or None if nothing was
    missing.
    """
    gaps = _list_gaps(reads)
    if gaps is None:
        return None
    remark = Remark(is_incomplete=bool(gaps), lacks=gaps, analysis=reads.quality_analysis)
    return None if remark == Remark() else remark


def _ask_again(reads: Reads) -> dict[str, Any]:
    """Return what the writer asked for, or that the passages contain no answer."""
    reason = reads.clarification_reason if reads.needs_clarification else None
    return {
        "needs_clarification": True,
        "clarification_reason": reason or ClarificationReason.INSUFFICIENT_CONTEXT,
        "clarification_message": reads.clarification_message,
    }


def _find_strategy(calls: Sequence[ToolUse], before: Sequence[ModelMessage]) -> Strategy | None:
    """Return how these calls differ from those in the previous round, or None in the first
    round.
    """
    if not before or not calls:
        return None
    names = {use.name for use in calls}
    if len(names) > 1:
        return Strategy.MULTI_TOOL_ORCHESTRATION
    same = names <= {use.name for use in before[-1].calls}
    return Strategy.REFINE_QUERY if same else Strategy.SWITCH_TOOL
