"""Plans the calls of a round of the tool loop; it runs none of them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts
from envelope.outcome import GaveUp, HopOutcome, Wrote
from envelope.role import Role
from envelope.ways.tool_loop import (
    AnswerAssessment,
    Intent,
    LoopEnd,
    PlanRound,
    Strategy,
)
from knowledge.library.library import NamedInText
from llm.conversations.port import ConversationModel
from llm.conversations.turns import ModelMessage, ToolConversation, ToolUse, UserMessage
from llm.errors import ModelError
from llm.offline.planning.planner import has_next
from llm.offline.planning.question_parts import find_cues
from llm.offline.planning.tool_choice import rank_naming
from llm.offline.rounds.needed_tools import list_needed_tools
from llm.offline.rounds.plan_state import (
    BASES,
    COMBINATIONS,
    DOCUMENTS,
    GAPS,
    MOST_PASSAGES,
    MOST_ROUNDS,
    NAMED_ON,
    OUTSIDE,
    VERSIONS,
)
from llm.port import Model
from llm.tasks.reason import TASK, Inputs
from tools.calls import ToolResult
from tools.catalog import ToolCatalog
from tools.dialogue import (
    MOST_STEPS,
    Dialogue,
    DialogueLimits,
    describe_calls,
    list_passages,
    read_results,
)
from tools.schemas import describe_tools

OUT_OF_SCOPE = "out_of_scope_handler"
"""The tool that a model calls for a question that is not about the documents."""
_NAMED_INTENTS = (Intent.COMPARISON, Intent.PENALTY, Intent.SUMMARY, Intent.GENERAL)
ListVersions = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Returns the versions that documents state, for a person of these groups."""
ReadTexts = Callable[[Sequence[str], Sequence[str]], Awaitable[Sequence[str]]]
"""Returns the texts of documents by their ids, for a person of these groups."""
FindNamed = Callable[[str, Sequence[str]], Awaitable[NamedInText]]
"""Returns the versions and documents that a text names, for a person of these groups."""
OFFLINE = "offline"
"""The model whose plans the rules continue."""
_MOST_NAMED = 20
_MOST_REASONING = 2_000


class ReasonSettings(Protocol):
    """The settings that the agent needs."""

    @property
    def domain_name(self) -> str: ...

    @property
    def domain_scope(self) -> str: ...

    @property
    def max_iterations(self) -> int: ...

    @property
    def search_results_limit(self) -> int: ...

    @property
    def multi_tool_enabled(self) -> bool: ...

    @property
    def max_tool_calls(self) -> int: ...


class Reads(BaseModel, frozen=True):
    """The question, the rounds before, and what the last answer lacked."""

    canonical_question: str
    language: str = "en"
    groups: tuple[str, ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}
    continues_planning: bool = False
    assessment: AnswerAssessment | None = None
    missing: str = ""
    quality_analysis: str = ""
    response: str = ""


class Writes(BaseModel, frozen=True):
    """The calls of this round; none when everything was found, or nothing more can be.

    `loop_end` is set where an answer was tried and no new call is planned.
    """

    intent: Intent
    reasoning: str
    strategy: Strategy | None
    tool_calls: tuple[dict[str, JsonValue], ...]
    continues_planning: bool
    plan_messages: tuple[dict[str, JsonValue], ...]
    plan_rounds: tuple[PlanRound, ...]
    loop_end: LoopEnd | None = None


_MOST_PASSAGES = 10
"""More are not better: the rounds of a plan share them."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What one plan may use: calls of a round, rounds, and passages of all rounds together."""

    most_calls: int = 8
    most_rounds: int = 3
    most_passages: int = _MOST_PASSAGES


def _read_clock() -> datetime:
    return datetime.now(UTC)


class ReasonAgent(Agent[Reads, Writes]):
    """Asks a model, or the rules, which tools to call next.

    A call that was made before is left out, whatever the model writes; ids are replaced, so that
    they are unique over all rounds. Names and arguments are checked by the executor, not here.
    """

    role = Role.REASON
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        model: Model,
        tools: ToolCatalog,
        list_versions: ListVersions,
        find_named: FindNamed,
        read_texts: ReadTexts | None = None,
        limits: PlanLimits = PlanLimits(),
        prompt: Inputs = Inputs(question=""),  # noqa: B008 - frozen
        now: Callable[[], datetime] = _read_clock,
    ) -> None:
        self._model = model
        self._tools = describe_tools(tools.select())
        self._combinations = tools.combinations
        self._bases = tools.list_bases()
        self._outside = tools.list_outside()
        self._list_versions = list_versions
        self._find_named = find_named
        self._read_texts = read_texts
        self._limits = limits
        self._prompt = prompt.model_copy(update={"combinations": dict(tools.combinations)})
        self._now = now

    @classmethod
    def make(cls, parts: AgentParts[ReasonSettings]) -> Self:
        settings = parts.settings
        return cls(
            model=parts.model(TASK.name),
            tools=parts.tools,
            list_versions=parts.list_versions,
            find_named=parts.find_named,
            read_texts=parts.library.read_texts,
            limits=PlanLimits(
                settings.max_tool_calls if settings.multi_tool_enabled else 1,
                settings.max_iterations,
                min(settings.search_results_limit, _MOST_PASSAGES),
            ),
            prompt=Inputs(
                question="",
                domain_name=settings.domain_name,
                domain_scope=settings.domain_scope,
            ),
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        if not isinstance(self._model, ConversationModel):
            return GaveUp(f"expected a model that calls tools, found {self._model.name!r}")
        dialogue = await self._open(reads)
        try:
            step = await dialogue.take_step(self._model)
        except ModelError as error:
            return GaveUp(f"{type(error).__name__}: {error}")
        message = step.message
        if step.end is not None and not step.model:
            message = ModelMessage(text=f"no further calls: {step.end.value}")
        if step.model != OFFLINE:
            # A model sees what its calls found before anything is written from it.
            return Wrote(_make_writes(message, reads, goes_on=True))
        extended = dialogue.converse().extend(message)
        goes_on, needed = has_next(extended), list_needed_tools(extended)
        return Wrote(_make_writes(message, reads, goes_on=goes_on, needed=needed))

    async def _open(self, reads: Reads) -> Dialogue:
        """Return the dialogue so far, and what its last answer lacked."""
        versions = tuple(await self._list_versions(reads.groups))
        named = await self._find_named(reads.canonical_question, reads.groups)
        results = read_results(reads.multi_tool_results)
        lacks = _describe_gaps(reads)
        opening = ToolConversation(
            task=TASK.name,
            messages=(UserMessage(text=reads.canonical_question),),
            tools=tuple(self._tools),
            facts={
                MOST_PASSAGES: self._limits.most_passages,
                MOST_ROUNDS: self._limits.most_rounds,
                VERSIONS: list(versions),
                DOCUMENTS: list(named.document_ids[:_MOST_NAMED]),
                COMBINATIONS: {name: [*one] for name, one in self._combinations.items()},
                BASES: {**self._bases},
                **await self._describe_outside(reads, results),
                **({GAPS: [*gaps]} if (gaps := _list_gaps(reads)) is not None else {}),
            },
            prompt=self._prompt.model_copy(
                update={
                    "question": reads.canonical_question,
                    "today": self._now().date().isoformat(),
                    "versions": versions,
                    "most_calls": self._limits.most_calls,
                }
            ),
        )
        return Dialogue(
            opening,
            tuple(ModelMessage.model_validate(one) for one in reads.plan_messages),
            results,
            prefix="r",
            limits=DialogueLimits(
                MOST_STEPS, self._limits.most_calls, must_look=True, writes_last=False
            ),
            remarks=(UserMessage(text=lacks),) if lacks else (),
        )

    async def _describe_outside(
        self, reads: Reads, results: Mapping[str, ToolResult]
    ) -> dict[str, JsonValue]:
        """Return the tools of others, and the positions of the found pages that name them."""
        if not self._outside or self._read_texts is None:
            return {}
        ids = dict.fromkeys(one.document_id for one in list_passages(list(results.values())))
        texts = await self._read_texts(list(ids), reads.groups) if ids else ()
        ranks = await asyncio.to_thread(rank_naming, self._outside, texts)
        return {OUTSIDE: [*self._outside], NAMED_ON: {**ranks}}


def _list_gaps(reads: Reads) -> tuple[str, ...] | None:
    """Return what the answer of the last round lacked; None as long as none was tried."""
    if not reads.plan_messages or reads.continues_planning:
        return None
    if reads.assessment is not None and not reads.assessment.is_enough:
        return reads.assessment.missing
    return (reads.missing,) if reads.missing else ()


def _describe_gaps(reads: Reads) -> str:
    """Return what the answer of the last round lacked, as the next message of the conversation."""
    gaps = _list_gaps(reads)
    if gaps is None:
        return ""
    parts = []
    if gaps or (reads.assessment is not None and not reads.assessment.is_enough):
        parts.append(f"The answer so far lacks: {'; '.join(gaps) or 'parts of the question'}.")
    if reads.quality_analysis:
        parts.append(f"The check of the answer says: {reads.quality_analysis}")
    return "\n".join(parts)


def _make_writes(
    message: ModelMessage,
    reads: Reads,
    *,
    goes_on: bool = False,
    needed: Sequence[str] = (),
) -> Writes:
    calls = message.calls
    before = [ModelMessage.model_validate(one) for one in reads.plan_messages]
    planned = PlanRound(
        round=len(before) + 1,
        intent=_find_intent(calls),
        strategy=_find_strategy(calls, before),
        reasoning=message.text[:_MOST_REASONING],
        tools=tuple(use.name for use in calls),
        needed=tuple(needed),
    )
    return Writes(
        intent=planned.intent,
        reasoning=planned.reasoning,
        strategy=planned.strategy,
        tool_calls=describe_calls(calls),
        continues_planning=goes_on and bool(calls),
        plan_messages=(message.model_dump(mode="json"),) if calls else (),
        plan_rounds=(planned,),
        loop_end=None if calls else _find_loop_end(reads),
    )


def _find_loop_end(reads: Reads) -> LoopEnd | None:
    """Return how far the answer is where no call is planned; None where none was tried."""
    if _list_gaps(reads) is None:
        return None
    if not reads.response:
        return LoopEnd.UNANSWERED
    lacks = reads.assessment is not None and not reads.assessment.is_enough
    return LoopEnd.JUDGED if reads.quality_analysis and not lacks else LoopEnd.ANSWERED


def _find_intent(calls: Sequence[ToolUse]) -> Intent:
    names = {use.name for use in calls}
    if names == {OUT_OF_SCOPE}:
        return Intent.OUT_OF_SCOPE
    if len(names) > 1:
        return Intent.MULTI_TOOL
    words = {word for name in names for word in name.split("_")}
    cues = words.union(*(find_cues(name.replace("_", " ")) for name in names))
    return next((one for one in _NAMED_INTENTS if one.value in cues), Intent.SEARCH)


def _find_strategy(calls: Sequence[ToolUse], before: Sequence[ModelMessage]) -> Strategy | None:
    """Return how these calls differ from those of the round before; None in the first round."""
    if not before or not calls:
        return None
    names = {use.name for use in calls}
    if len(calls) > 1:
        return Strategy.MULTI_TOOL_ORCHESTRATION
    same = names <= {use.name for use in before[-1].calls}
    return Strategy.REFINE_QUERY if same else Strategy.SWITCH_TOOL
