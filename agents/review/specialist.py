"""The common parts of all specialists: profile, model, tools, documents, and stored results."""

import asyncio
import json
import zlib
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import structlog
from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, AgentTier, R, W
from agents.review.names import name_ids
from agents.review.verdicts import add_context
from envelope.conversation import Turn
from envelope.encoding import brief
from envelope.outcome import HopOutcome, RetryAfter, Wrote
from envelope.run import OUTSIDE, Run
from envelope.specialists import (
    PHASES,
    ErrorSeverity,
    Extracted,
    SpecialistError,
    SpecialistName,
    SpecialistProfile,
)
from llm.errors import ModelError, find_wait_seconds, is_refusal, may_depend_on_content
from llm.output_parsing import NotReadable, read
from llm.port import (
    OFFLINE,
    ConversationModel,
    I,
    Model,
    ModelMessage,
    O,
    Task,
    ToolConversation,
    ToolUse,
    UserMessage,
)
from llm.tasks.review import SpecialistInputs
from llm.tasks.search import HYDE_EXPANSION, HydeExpansionInputs
from tools.calls import ToolErrorType, ToolResult
from tools.catalog import ToolCatalog, describe_tools, inline_references
from tools.dialogue import Dialogue, DialogueLimits, describe_calls
from tools.executor import CRITICAL, shorten

if TYPE_CHECKING:
    from knowledge.library.library import Library, WholeDocument
    from memory.work_store import RedisWorkStore

EXPANSION = HYDE_EXPANSION.name
NO_RESULT = "it gave no result in time"
_MOST_WORDINGS, _LONGEST_WORDING = 4, 1_500
log = structlog.get_logger("agents")
T = TypeVar("T", bound=BaseModel)
_SHOWN_RESULTS = 12
_UNAVAILABLE = "the model is not available at the moment"
_BATCHES_AT_ONCE = 4
_MOST_CALLS_WITHOUT_OUTPUT = 6
"""Number of further calls after which a model that has answered no part of a batch is not called
again. By then, halves and quarters have been tried, so the model refuses everything, or each
quarter contains a problematic text.
"""
_MOST_FURTHER_CALLS = 24
"""Maximum number of further calls for a batch of which some parts were answered. Two failing items
of sixty are isolated by 22 calls, any number of ten by 18.
"""
_BY_REQUIREMENT = ("verdicts", "comparisons", "readings")
"""Input fields whose items belong to a requirement in the same inputs."""


@dataclass(frozen=True, slots=True)
class NoOutput:
    """There is no output yet, because the specialist calls tools first or, if there are no calls,
    because no model answered.

    `messages` contains its messages in the loop since the last hop. `depends_on_content` is true if
    a part of the same inputs may get an output, and `is_refused` if the model refused to answer.
    """

    calls: tuple[dict[str, JsonValue], ...] = ()
    messages: tuple[dict[str, JsonValue], ...] = ()
    errors: tuple[SpecialistError, ...] = ()
    depends_on_content: bool = False
    is_refused: bool = False

    def as_writes(self) -> dict[str, Any]:
        """Return the attributes that a specialist writes."""
        return {"tool_calls": self.calls, "plan_messages": self.messages, "errors": self.errors}


@dataclass(frozen=True, slots=True)
class GivenOutput(Generic[O]):
    """The typed output, the model that produced it, and the errors before it."""

    output: O
    decided_by: str
    errors: tuple[SpecialistError, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchOutputs(Generic[I, O]):
    """The result of each batch, or of each half of a batch that failed as a whole."""

    outcomes: tuple[tuple[I, NoOutput | GivenOutput[O]], ...]

    @property
    def given(self) -> list[GivenOutput[O]]:
        """The outputs, with the models that produced them."""
        return [output for _, output in self.outcomes if isinstance(output, GivenOutput)]

    @property
    def outputs(self) -> tuple[O, ...]:
        """The outputs for all inputs that a model answered."""
        return tuple(output.output for output in self.given)

    @property
    def decided_by(self) -> str:
        """The model that produced the first output, or an empty string if there is none."""
        return next((output.decided_by for output in self.given), "")

    @property
    def errors(self) -> tuple[SpecialistError, ...]:
        """All errors."""
        return tuple(error for _, outcome in self.outcomes for error in outcome.errors)

    @property
    def failed(self) -> list[tuple[I, NoOutput]]:
        """The inputs without an output."""
        return [(own, output) for own, output in self.outcomes if isinstance(output, NoOutput)]

    @property
    def calls(self) -> NoOutput | None:
        """The calls that are made before there is an output, or None."""
        return next((output for _, output in self.failed if output.calls), None)


@dataclass(frozen=True, slots=True)
class LoopTurns:
    """The tool loop so far: the messages with calls, and the results of all calls by call id."""

    messages: tuple[ModelMessage, ...] = ()
    results: tuple[ToolResult, ...] = ()

    @classmethod
    def parse(
        cls, messages: Sequence[Mapping[str, JsonValue]], results: Mapping[str, JsonValue]
    ) -> "LoopTurns":
        """Return the turns of a payload, with the results in the order of their calls."""
        parsed = tuple(ModelMessage.model_validate(message) for message in messages)
        order = [use.call_id for message in parsed for use in message.calls]
        tool_results = tuple(
            ToolResult.model_validate(results[call_id]) for call_id in order if call_id in results
        )
        return cls(parsed, tool_results)


class SpecialistReads(BaseModel, frozen=True):
    """The input of every specialist: the question, the person's groups, and the reason for the
    round.
    """

    canonical_question: str
    text: str = ""
    history: tuple[Turn, ...] = ()
    round_focus: str = ""
    language: str = "en"
    groups: tuple[str, ...] = ()

    @property
    def question(self) -> str:
        """The question; in a further round, together with the reason for the round."""
        focus = self.round_focus
        return f"{self.canonical_question}\n{focus}" if focus else self.canonical_question


class ReadsScope(BaseModel, frozen=True):
    """The documents of the review."""

    extracted: Extracted | None = None

    @property
    def scope(self) -> Extracted:
        """The output of the extractor, which is empty if it did not run."""
        return self.extracted if self.extracted is not None else Extracted()


class LoopReads(SpecialistReads, frozen=True):
    """The input of a specialist that calls tools, including the current state of the tool loop."""

    plan_messages: tuple[dict[str, JsonValue], ...] = ()
    multi_tool_results: dict[str, JsonValue] = {}

    @property
    def turns(self) -> LoopTurns:
        """The tool loop so far."""
        return LoopTurns.parse(self.plan_messages, self.multi_tool_results)


class LoopWrites(BaseModel, frozen=True):
    """The output of every specialist that calls tools: errors, or the next calls."""

    errors: tuple[SpecialistError, ...] = ()
    tool_calls: tuple[dict[str, JsonValue], ...] = ()
    plan_messages: tuple[dict[str, JsonValue], ...] = ()


async def expand_search(
    calls: Sequence[ToolUse], model: Model | None, question: str, language: str, run: Run
) -> list[ToolUse]:
    """Return the calls, with additional wordings for the first search; raises `ModelError`.

    A search that already has aspects or wordings is left unchanged.
    """
    place = next((number for number, use in enumerate(calls) if read_query(use)), None)
    if model is None or model.name == OFFLINE or place is None:
        return [*calls]
    use = calls[place]
    inputs = HydeExpansionInputs(query=read_query(use), question=question, language=language)
    output = (await model.ask(HYDE_EXPANSION, inputs, run)).output
    texts = [query.strip()[:_LONGEST_WORDING] for query in (output.passage, *output.queries)]
    wordings: list[JsonValue] = [*list(dict.fromkeys(filter(None, texts)))[:_MOST_WORDINGS]]
    if not wordings or not isinstance(use.arguments, dict):
        return [*calls]
    changed = use.model_copy(update={"arguments": {**use.arguments, "wordings": wordings}})
    return [*calls[:place], changed, *calls[place + 1 :]]


def read_query(use: ToolUse) -> str:
    """Return the query of a search if it consists of words that can be expanded, or an empty
    string.
    """
    given = use.arguments
    if use.name != "search" or not isinstance(given, dict):
        return ""
    query = given.get("query")
    is_done = given.get("aspects") or given.get("wordings")
    return query if isinstance(query, str) and not is_done else ""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The resources of a specialist in one run.

    `waits` contains the seconds after which calls that failed in this run may succeed. `known`
    contains requirements that its sentences may name in addition to those of the inputs.
    """

    profile: SpecialistProfile
    model: Model
    library: "Library"
    work: "RedisWorkStore"
    tools: ToolCatalog | None = None
    expander: Model | None = None
    run: Run = OUTSIDE
    waits: list[float] = field(default_factory=list)
    known: tuple[BaseModel, ...] = ()

    @classmethod
    def make(cls, parts: AgentParts, task: str) -> "Toolbox":
        """Return the toolbox for the specialist of a task."""
        profile = parts.settings.specialists[task]
        tools = parts.tools if profile.tools else None
        expander = parts.model(EXPANSION) if profile.expands_queries else None
        return cls(profile, parts.model(task), parts.library, parts.work, tools, expander)

    @property
    def is_offline(self) -> bool:
        """Whether there is no model, so that documents are shown as found by a search, without a
        judgement.
        """
        return self.model.name == OFFLINE

    async def store(self, value: BaseModel) -> str:
        """Store a value and return its reference."""
        return await self.store_bytes(value.model_dump_json(exclude_defaults=True).encode())

    async def store_bytes(self, value: bytes) -> str:
        """Store bytes with the conversation of the run, and return their reference."""
        return await self.work.put(self.run.find_question(), value)

    async def load(self, reference: str, kind: type[T]) -> T:
        """Return a stored value; raises `LookupError` if it expired."""
        return kind.model_validate_json(await self.work.get(self.run.find_question(), reference))

    async def read_documents(
        self, document_ids: Sequence[str], groups: Sequence[str]
    ) -> "list[WholeDocument]":
        """Return documents of the library and of the conversation that a person may read."""
        return await self.library.read(document_ids, groups, self.run)

    def make_error(
        self,
        error: object,
        severity: ErrorSeverity = ErrorSeverity.HIGH,
        *,
        specialist: SpecialistName | None = None,
    ) -> SpecialistError:
        """Return an entry of `errors`; its id is logged together with the ids of the message.

        By default it is an error of this specialist. The log does not contain the text, which
        `refdesk trace --errors` shows together with the question.
        """
        text = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else str(error)
        name = self.profile.name if specialist is None else specialist
        now = datetime.now(UTC)
        digest = zlib.crc32(f"{now.isoformat()}/{name}/{text}".encode())
        made = SpecialistError(
            error_id=f"RD-{now.date().isoformat()}-{digest % 100_000:05d}",
            specialist=name.value,
            text=brief(text),
            severity=severity,
            phase=PHASES[name].value,
        )
        log.warning(
            "specialist_failed",
            error_id=made.error_id,
            specialist=made.specialist,
            severity=severity.value,
            phase=made.phase,
        )
        return made

    async def consult(
        self,
        task: Task[I, O],
        inputs: I,
        turns: LoopTurns | None = None,
        reads: BaseModel | None = None,
    ) -> NoOutput | GivenOutput[O]:
        """Return the output of the specialist, or the tool calls that it requests first.

        When a limit of the loop is reached, the output is written from the results so far. If the
        model fails, there is no output, and an entry of `errors` states the reason; `waits` states
        when a retry may succeed.
        """
        inputs = add_context(inputs, reads)
        known = LoopTurns() if turns is None else turns
        errors = self._list_failed_tools(known)
        asked = replace(
            task,
            temperature=self.profile.temperature,
            max_output_tokens=self.profile.max_tokens,
        )
        dialogue = self._open(asked, inputs, known)
        try:
            if turns is not None and self._may_call(dialogue):
                step = await self._take_step(asked, inputs, dialogue)
                if isinstance(step, NoOutput):
                    return step
                if step is not None:
                    return replace(step, output=self._name(step.output, inputs), errors=errors)
            gathered = tuple(f"{result.tool}: {shorten(result.text)}" for result in known.results)
            complete = _update(inputs, gathered=gathered[-_SHOWN_RESULTS:])
            given = await self.model.ask(asked, complete, self.run)
        except ModelError as error:
            if (seconds := find_wait_seconds(error)) is not None:
                self.waits.append(seconds)
            text = f"the model gave no answer, so this part was not judged: {error}"
            return NoOutput(
                errors=(*errors, self.make_error(text)),
                depends_on_content=may_depend_on_content(error),
                is_refused=is_refusal(error),
            )
        return GivenOutput(self._name(given.output, inputs), given.model, errors)

    async def consult_each(
        self,
        task: Task[I, O],
        batches: Sequence[I],
        turns: LoopTurns | None,
        reads: BaseModel | None = None,
        *,
        by: str = "requirements",
    ) -> BatchOutputs[I, O]:
        """Return the outputs for batches, with limited concurrency. Tools can be called only if
        there is a single batch.

        A batch that fails because of its content is split into halves of the items in its field
        `by`, which are retried. Finished calls are stored, so that a redelivered envelope does not
        pay for them again.
        """
        limit = asyncio.Semaphore(_BATCHES_AT_ONCE)
        own_turns = turns if len(batches) == 1 else None

        async def consult(inputs: I) -> list[tuple[I, NoOutput | GivenOutput[O]]]:
            async with limit:
                given = await self.consult(task, inputs, own_turns, reads)
                return await self._consult_halves(task, inputs, given, reads, by)

        outcomes = await asyncio.gather(*map(consult, batches))
        return BatchOutputs(tuple(output for own in outcomes for output in own))

    async def _consult_halves(
        self,
        task: Task[I, O],
        inputs: I,
        given: NoOutput | GivenOutput[O],
        reads: BaseModel | None,
        by: str,
    ) -> list[tuple[I, NoOutput | GivenOutput[O]]]:
        """Return the result of a batch, or the results of its parts if it failed as a whole.

        Parts are halved until the failing items are isolated, starting with the largest part.
        """
        outcomes = list[tuple[I, NoOutput | GivenOutput[O]]]()
        open_parts = deque([(inputs, given)])
        calls, most_calls = 0, _MOST_CALLS_WITHOUT_OUTPUT
        while open_parts:
            own, outcome = open_parts.popleft()
            may_halve = isinstance(outcome, NoOutput) and outcome.depends_on_content
            halves = _halve(own, by) if may_halve and calls + 1 < most_calls else ()
            for half in halves:
                part = await self.consult(task, half, reads=reads)
                open_parts.append((half, part))
                if isinstance(part, GivenOutput):
                    most_calls = _MOST_FURTHER_CALLS
            calls += len(halves)
            if not halves:
                outcomes.append((own, outcome))
        return outcomes

    def _name(self, output: O, inputs: BaseModel) -> O:
        return name_ids(output, inputs, self.known)

    def _may_call(self, dialogue: Dialogue) -> bool:
        """Return whether the loop continues. The model decides whether it has enough results."""
        if self.tools is None or not isinstance(self.model, ConversationModel):
            return False
        return dialogue.find_end() is None

    async def _take_step(
        self, task: Task[I, O], inputs: I, dialogue: Dialogue
    ) -> "NoOutput | GivenOutput[O] | None":
        """Return the next calls, or the output if the model wrote one, or None."""
        assert isinstance(self.model, ConversationModel)  # noqa: S101 - `_may_call` has checked it
        step = await dialogue.take_step(self.model, self.run)
        if step.end is None:
            fresh = list(step.message.calls)
            # The message is not changed, because the vendor receives its own calls again.
            expanded, errors = (
                (fresh, ()) if dialogue.messages else await self._expand(fresh, inputs)
            )
            return replace(self.call_tools(expanded, step.message), errors=errors)
        try:
            return GivenOutput(read(step.message.text, task.output), step.model)
        except NotReadable:
            return None

    def call_tools(self, calls: Sequence[ToolUse], message: ModelMessage) -> NoOutput:
        """Return the calls in a message of the loop."""
        described = describe_calls(calls, self.profile.name)
        return NoOutput(described, (message.model_dump(mode="json"),))

    async def _expand(
        self, calls: list[ToolUse], inputs: BaseModel
    ) -> tuple[list[ToolUse], tuple[SpecialistError, ...]]:
        """Return the calls with the model's wordings, or the unchanged calls with the reason."""
        known = inputs if isinstance(inputs, SpecialistInputs) else SpecialistInputs(question="")
        try:
            expanded = await expand_search(
                calls, self.expander, known.question, known.language, self.run
            )
        except ModelError as error:
            text = f"searched with the words of the question only, without other wordings: {error}"
            return calls, (self.make_error(text, ErrorSeverity.LOW),)
        return expanded, ()

    def _open(self, task: Task[I, O], inputs: I, turns: LoopTurns) -> Dialogue:
        """Return the dialogue so far. When a limit is reached, the output is requested according to
        its schema.
        """
        catalog = self.tools if self.tools is not None else ToolCatalog(())
        schema = inline_references(task.output.model_json_schema())
        question = inputs.question if isinstance(inputs, SpecialistInputs) else ""
        opening = ToolConversation(
            task=task.name,
            messages=(UserMessage(text=question or task.name),),
            tools=describe_tools(catalog.select(self.profile.tools)),
            temperature=task.temperature,
            max_output_tokens=task.max_output_tokens,
            prompt=_update(inputs, output_schema=json.dumps(schema, ensure_ascii=False)),
        )
        return Dialogue(
            opening,
            turns.messages,
            {result.call_id: result for result in turns.results},
            prefix=f"{self.profile.name}-",
            limits=DialogueLimits(self.profile.max_iterations, stops_early=True, writes_last=False),
        )

    def _list_failed_tools(self, turns: LoopTurns) -> tuple[SpecialistError, ...]:
        faults = (ToolErrorType.EXECUTION, ToolErrorType.TIMEOUT)
        failed = {
            result.tool: result.error or result.error_type.value
            for result in turns.results
            if result.tool in CRITICAL and result.error_type in faults
        }
        return tuple(
            self.make_error(
                f"the tool {tool} failed ({why}), so results may be incomplete",
                ErrorSeverity.MEDIUM,
            )
            for tool, why in failed.items()
        )


def _read_date() -> date:
    return datetime.now(UTC).date()


class SpecialistAgent(Agent[R, W]):
    """An agent that works with a toolbox; its model task has the name of its role.

    If the model is temporarily unavailable, the specialist is retried for as long as the message
    has time. Finished calls are stored, so they are not paid for again. When there is no time left,
    it writes the results that it has.
    """

    needs_index = True
    tier = AgentTier.SPECIALIST

    def __init__(self, toolbox: Toolbox, today: Callable[[], date] = _read_date) -> None:
        self.toolbox = toolbox
        self._today = today

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(Toolbox.make(parts, cls.role.value))

    def in_run(self, run: Run) -> Self:
        own = super().in_run(run)
        own.toolbox = replace(self.toolbox, run=run, waits=[])
        return own

    async def work(self, reads: R) -> HopOutcome[W]:
        outcome = await self.examine(reads)
        if not self.toolbox.waits:
            return outcome
        return RetryAfter(max(self.toolbox.waits), _UNAVAILABLE, otherwise=outcome)

    @abstractmethod
    async def examine(self, reads: R) -> Wrote[W]:
        """Return the result of the specialist; it is incomplete if the model is unavailable."""


def _halve(inputs: I, by: str) -> tuple[I, ...]:
    """Return the inputs with the first and with the second half of the items in a field, or an
    empty tuple if there are fewer than two items.
    """
    items = getattr(inputs, by)
    middle = len(items) // 2
    if not middle:
        return ()
    return tuple(_keep(inputs, by, own) for own in (items[:middle], items[middle:]))


def _keep(inputs: I, by: str, items: Sequence[BaseModel]) -> I:
    """Return inputs with only some items of a field, and everything that belongs to these items."""
    if by != "requirements":
        return _update(inputs, **{by: items})
    names = {getattr(item, "id", None) for item in items}
    belonging = {
        name: tuple(entry for entry in getattr(inputs, name) if entry.requirement_id in names)
        for name in _BY_REQUIREMENT
        if hasattr(inputs, name)
    }
    return _update(inputs, requirements=items, **belonging)


def _update(inputs: I, **changes: object) -> I:
    return inputs.model_copy(update=changes)
