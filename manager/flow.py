"""The flow of the assistant as one table: stage, event of the hop, next role.

The first row of each stage is the one of an answered question.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from envelope.conversation import ClarificationReason as Reason
from envelope.role import Role


class Stage(StrEnum):
    """The position of a message in the flow, named after the role that processes it."""

    START = "start"
    LANG = "lang"
    TRANSLATION = "translation"
    ESSENCE = "essence"
    GUARDRAILS = "guardrails"
    SEARCH = "search"
    AUGMENTATION = "augmentation"
    RESPONSE = "response"
    QUALITY = "quality"
    CLARIFICATION = "clarification"
    COMMAND = "command"


class StageEvent(StrEnum):
    """The event of a hop, derived only from the attributes that this hop wrote.

    The value is the slug that the journal holds; `description` is the sentence for people.
    """

    DONE = "completed"
    FAILED = "failed"
    ASKS = "needs_clarification"
    COMMAND = "command"
    QUESTION = "question"
    EXIT = "exit"
    COURTESY = "courtesy"
    CAPABILITIES = "capabilities"
    NO_QUESTION = "no_question"
    WHY = "why"
    REPHRASE = "rephrase"
    CORRECTION = "correction"
    WITHIN = "within_scope"
    OUTSIDE = "out_of_scope"
    FOUND = "sufficient_results"
    MANY = "ambiguous_results"
    NOTHING = "insufficient_results"
    GENERATION_ERROR = "generation_error"
    APPROVED = "approved"
    LOW = "approved_below_threshold"
    RESEARCH = "research"
    REGENERATE = "regenerate"

    @property
    def description(self) -> str:
        """Return how the documentation and `refdesk trace` describe this event to people."""
        return _DESCRIPTIONS.get(self) or self.value.replace("_", " ")


_DESCRIPTIONS = {
    StageEvent.COMMAND: "a command",
    StageEvent.QUESTION: "a question",
    StageEvent.EXIT: "the user leaves",
    StageEvent.COURTESY: "thanks, a greeting or the like",
    StageEvent.CAPABILITIES: "what the assistant can do",
    StageEvent.NO_QUESTION: "nothing to choose or to repeat",
    StageEvent.WHY: "why it asked or refused",
    StageEvent.REPHRASE: "the last answer in other words",
    StageEvent.CORRECTION: "a correction of the last question",
    StageEvent.OUTSIDE: "not within scope",
    StageEvent.FOUND: "excellent or good results",
    StageEvent.MANY: "poor results: several topics match",
    StageEvent.NOTHING: "poor results: no topic matches",
    StageEvent.LOW: "approved below the threshold",
    StageEvent.RESEARCH: "search again",
    StageEvent.REGENERATE: "write again",
}


class Counter(StrEnum):
    """A counter of rows; its limit ends every cycle of the flow."""

    RESEARCH = "research"
    REGENERATE = "regenerate"
    NEXT_MODEL = "next_model"
    ROUND = "round"


class Ending(StrEnum):
    """The kind of final reply."""

    ANSWER = "the answer"
    BEST = "the best scored answer, else an apology"
    EXIT = "the fixed text of leaving"
    ACT = "the fixed text of what the user did"
    REPLY = "the agent's own words"
    FIXED = "the fixed text of the reason"


@dataclass(frozen=True, slots=True)
class Final:
    """The end of a message."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table.

    The manager increments `counts` when it takes the row; at the limit of the counter the row leads
    to `at_limit` instead of `go_to`. `reason` is passed to the clarification agent if the hop gave
    no reason.
    """

    after: Stage
    did: StageEvent
    go_to: Role | Final
    counts: Counter | None = None
    at_limit: Role | Final | None = None
    reason: Reason | None = None
    name: str = field(init=False, compare=False)
    """The slug of this row in the journal: stage and event, such as `search.ambiguous_results`."""

    def __post_init__(self) -> None:
        """Compute the name once, because every hop takes a row."""
        object.__setattr__(self, "name", f"{self.after}.{self.did}")


S, R, F = Stage, Role, Final
ANSWER, BEST, EXIT = F(Ending.ANSWER), F(Ending.BEST), F(Ending.EXIT)
REPLY, FIXED, ACT = F(Ending.REPLY), F(Ending.FIXED), F(Ending.ACT)

# fmt: off
ASSISTANT: tuple[Row, ...] = (
    #   stage            event                         next role        counter             at its limit     reason
    Row(S.START,         StageEvent.QUESTION,          R.LANG),
    Row(S.START,         StageEvent.COMMAND,           R.COMMAND),
    Row(S.START,         StageEvent.FAILED,            BEST),
    Row(S.COMMAND,       StageEvent.DONE,              REPLY),
    Row(S.COMMAND,       StageEvent.FAILED,            BEST),
    Row(S.LANG,          StageEvent.DONE,              R.TRANSLATION),
    Row(S.LANG,          StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.LANG,          StageEvent.FAILED,            BEST),
    Row(S.TRANSLATION,   StageEvent.DONE,              R.ESSENCE),
    Row(S.TRANSLATION,   StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.TRANSLATION,   StageEvent.FAILED,            R.ESSENCE),
    Row(S.ESSENCE,       StageEvent.DONE,              R.GUARDRAILS),
    Row(S.ESSENCE,       StageEvent.EXIT,              EXIT),
    Row(S.ESSENCE,       StageEvent.COURTESY,          ACT),
    Row(S.ESSENCE,       StageEvent.CAPABILITIES,      ACT),
    Row(S.ESSENCE,       StageEvent.NO_QUESTION,       ACT),
    Row(S.ESSENCE,       StageEvent.WHY,               ACT),
    Row(S.ESSENCE,       StageEvent.REPHRASE,          R.SEARCH),
    Row(S.ESSENCE,       StageEvent.CORRECTION,        R.GUARDRAILS),
    Row(S.ESSENCE,       StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.ESSENCE,       StageEvent.FAILED,            BEST),
    Row(S.GUARDRAILS,    StageEvent.WITHIN,            R.SEARCH),
    Row(S.GUARDRAILS,    StageEvent.OUTSIDE,           R.CLARIFICATION, None,               None,            Reason.OUT_OF_SCOPE),
    Row(S.GUARDRAILS,    StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.GUARDRAILS,    StageEvent.FAILED,            R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION, Reason.SCOPE_UNCLEAR),
    Row(S.SEARCH,        StageEvent.FOUND,             R.AUGMENTATION),
    Row(S.SEARCH,        StageEvent.MANY,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION, Reason.AMBIGUOUS_QUERY),
    Row(S.SEARCH,        StageEvent.NOTHING,           R.CLARIFICATION, None,               None,            Reason.INSUFFICIENT_CONTEXT),
    Row(S.SEARCH,        StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.SEARCH,        StageEvent.FAILED,            BEST),
    Row(S.AUGMENTATION,  StageEvent.DONE,              R.RESPONSE),
    Row(S.AUGMENTATION,  StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.AUGMENTATION,  StageEvent.FAILED,            BEST),
    Row(S.RESPONSE,      StageEvent.DONE,              R.QUALITY),
    Row(S.RESPONSE,      StageEvent.GENERATION_ERROR,  R.RESPONSE,      Counter.NEXT_MODEL, BEST),
    Row(S.RESPONSE,      StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.RESPONSE,      StageEvent.FAILED,            R.RESPONSE,      Counter.NEXT_MODEL, BEST),
    Row(S.QUALITY,       StageEvent.APPROVED,          ANSWER),
    Row(S.QUALITY,       StageEvent.LOW,               R.RESPONSE,      Counter.REGENERATE, R.CLARIFICATION),
    Row(S.QUALITY,       StageEvent.REGENERATE,        R.RESPONSE,      Counter.REGENERATE, R.CLARIFICATION),
    Row(S.QUALITY,       StageEvent.RESEARCH,          R.SEARCH,        Counter.RESEARCH,   R.CLARIFICATION),
    Row(S.QUALITY,       StageEvent.ASKS,              R.CLARIFICATION, Counter.ROUND,      R.CLARIFICATION),
    Row(S.QUALITY,       StageEvent.FAILED,            R.RESPONSE,      Counter.REGENERATE, BEST),
    Row(S.CLARIFICATION, StageEvent.DONE,              REPLY),
    Row(S.CLARIFICATION, StageEvent.FAILED,            FIXED),
)
# fmt: on


class FlowError(Exception):
    """The flow table has no row, or two rows, for a stage and an event."""


class Flow:
    """A flow table with lookup by stage and event; raises `FlowError` if two rows have both equal."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = tuple(rows)
        self._by_pair: dict[tuple[Stage, StageEvent], Row] = {}
        for row in self.rows:
            if (row.after, row.did) in self._by_pair:
                raise FlowError(f"expected one row for {row.name!r}, found two")
            self._by_pair[row.after, row.did] = row

    @property
    def main_path(self) -> tuple[Stage, ...]:
        """The stages of a question that is answered at the first attempt, `start` first.

        Each stage leads on by its first row; raises `FlowError` where the first rows lead back.
        """
        first = {row.after: row.go_to for row in reversed(self.rows)}
        stages = [Stage.START]
        while isinstance(target := first[stages[-1]], Role):
            stage = Stage(target.value)
            if stage in stages:
                raise FlowError(f"expected the first rows to end, found {stage.value!r} twice")
            stages.append(stage)
        return tuple(stages)

    def row(self, stage: Stage, did: StageEvent) -> Row:
        """Return the row for this stage and event; raise `FlowError` if there is none."""
        found = self._by_pair.get((stage, did))
        if found is None:
            raise FlowError(f"expected a row for {stage.value!r} with {did.value!r}, found none")
        return found
