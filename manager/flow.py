"""The elements of a flow: events of hops, stages, and rows. `Flow` is the table of rows.

The flows themselves are defined in `manager/flows/`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from envelope.conversation import ClarificationReason as Reason
from envelope.role import Role
from manager.state import BranchItem, State


class StageEvent(StrEnum):
    """The event of a hop, derived only from the attributes that this hop wrote.

    The value is the slug in the journal; `description` is the human-readable text.
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
    VERIFIED = "verified_answer"
    FOUND = "sufficient_results"
    MANY = "ambiguous_results"
    NOTHING = "insufficient_results"
    GENERATION_ERROR = "generation_error"
    APPROVED = "approved"
    LOW = "approved_below_threshold"
    RESEARCH = "research"
    REGENERATE = "regenerate"
    GATHERED = "gathered"
    MORE = "more_branches"
    SEARCHES = "one_search"
    USES_TOOLS = "tools"
    USES_SPECIALISTS = "specialists"
    SPLITS = "parts"
    USES_SWARM = "swarm"
    BEGINS = "workers_begin"
    CALLS = "tool_calls"
    CALLS_AND_PLANS = "tool_calls_then_planning"
    READY = "no_further_calls"
    NOTHING_NEW = "no_new_calls_judged"
    ENOUGH = "good_enough"
    AGAIN = "another_round"
    NEEDS_INPUT = "needs_input"
    NEEDS_APPROVAL = "needs_approval"
    REPLIED = "replied"
    DENIED = "denied"
    OTHER_TOPIC = "other_topic"
    PAUSE_OVER = "pause_over"
    PAUSE_UNANSWERED = "pause_unanswered"
    READS_REPLY = "reads_reply"
    PAUSE_FOREIGN = "pause_foreign"

    @property
    def description(self) -> str:
        """The text for this event in the documentation and in `refdesk trace`."""
        return _DESCRIPTIONS.get(self) or self.value.replace("_", " ")


_DESCRIPTIONS = {
    StageEvent.COMMAND: "a command",
    StageEvent.QUESTION: "a question",
    StageEvent.EXIT: "the user ends the question",
    StageEvent.COURTESY: "a greeting, thanks, a preference or similar",
    StageEvent.CAPABILITIES: "a question about what the assistant can do",
    StageEvent.NO_QUESTION: "a choice or request that refers to nothing",
    StageEvent.WHY: "a question about why the assistant asked or refused",
    StageEvent.REPHRASE: "a request to rephrase the last answer",
    StageEvent.CORRECTION: "a correction of the last question",
    StageEvent.OUTSIDE: "not within scope",
    StageEvent.FOUND: "excellent or good results",
    StageEvent.MANY: "poor results: several topics match",
    StageEvent.NOTHING: "poor results: no topic matches",
    StageEvent.LOW: "approved below the threshold",
    StageEvent.RESEARCH: "search again",
    StageEvent.REGENERATE: "write again",
    StageEvent.GATHERED: "the results of the branches have arrived",
    StageEvent.MORE: "branches that depend on these can start",
    StageEvent.SEARCHES: "one search is enough for this question",
    StageEvent.USES_TOOLS: "the question needs several searches",
    StageEvent.USES_SPECIALISTS: "the question asks for a review",
    StageEvent.SPLITS: "the work is split into parts",
    StageEvent.USES_SWARM: "the question is split among workers",
    StageEvent.BEGINS: "workers start at the same time",
    StageEvent.NEEDS_APPROVAL: "the user must approve the next step",
    StageEvent.CALLS: "tools are called, then an answer is written",
    StageEvent.CALLS_AND_PLANS: "tools are called, then further calls are planned",
    StageEvent.READY: "everything was found, or nothing more can be",
    StageEvent.NOTHING_NEW: "an answer was judged, and a further round adds nothing",
    StageEvent.ENOUGH: "the answer is good enough",
    StageEvent.AGAIN: "the answer lacks something",
    StageEvent.NEEDS_INPUT: "the user is asked for information or approval",
    StageEvent.REPLIED: "the user provided the values or the approval",
    StageEvent.DENIED: "the user declined, or cannot be asked",
    StageEvent.OTHER_TOPIC: "the waiting message is about something else, or asks to stop",
    StageEvent.PAUSE_OVER: "a reply to a pause that is no longer open",
    StageEvent.PAUSE_UNANSWERED: "a reply to a pause that lacks values",
    StageEvent.READS_REPLY: "a message that may answer the questions of a pause in free text",
    StageEvent.PAUSE_FOREIGN: "a reply to a pause of another user",
}

GATHER_EVENTS = frozenset({StageEvent.GATHERED, StageEvent.MORE, StageEvent.FAILED})
RESUME_EVENTS = frozenset({StageEvent.REPLIED, StageEvent.DENIED, StageEvent.FAILED})

Classifier = Callable[[State, float], StageEvent]
"""Returns the event of a hop, given its writes and the quality threshold."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A position of a message in a flow.

    `role` handles the stage, `events` are its possible results, and `classify` derives the event of
    a hop. A role may handle several stages. A stage that the manager handles, such as `start`, has
    no hop.
    """

    name: str
    role: Role
    events: frozenset[StageEvent]
    classify: Classifier

    def __str__(self) -> str:
        return self.name


class Ending(StrEnum):
    """The kind of final reply."""

    ANSWER = "the answer"
    BEST = "the best scored answer, else an apology"
    EXIT = "the fixed text for a question that the user cancelled"
    ACT = "the fixed text for the conversation act"
    REPLY = "the text of the agent"
    FIXED = "the fixed text for the reason"
    PAUSE = "the questions of the pause"
    PAUSE_OVER = "the fixed text for a pause that is no longer open"
    PAUSE_FOREIGN = "the fixed text for a pause of another user"


@dataclass(frozen=True, slots=True)
class Final:
    """The end of a message."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Join:
    """Defines when a message continues with the results of its branches.

    It continues after all branches have ended or after `at_least` successes, but at the latest
    after `seconds` or after `share` of the remaining time. At most `at_once` branches run at the
    same time.
    """

    at_least: int | None = None
    seconds: float = 60.0
    at_once: int = 3
    share: float = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """Starts a branch at the stage `branch` for each item of the plan, and continues at `gather`.

    `gather` is created by `make_gather_stage`. A branch inherits the attributes that its roles read
    and that it does not return, and those in `handed_over`, whose merge rules replace the value or
    add only new items.

    At `watch`, a branch starts for each message that waits behind the question or arrives in the
    meantime. If it succeeds, the work ends with the results so far.
    """

    branch: Stage
    gather: Stage
    plan: Callable[[State], Sequence[BranchItem]]
    join: Join = Join()
    handed_over: tuple[str, ...] = ()
    watch: Stage | None = None

    @property
    def begins(self) -> tuple[Stage, ...]:
        """The stages at which the branches start."""
        return (self.branch,) if self.watch is None else (self.branch, self.watch)


@dataclass(frozen=True, slots=True)
class Return:
    """Ends a branch, which returns these attributes.

    If `notes_failure` is true, a failure becomes an entry of `errors`. If `is_good` is false, the
    branch always counts as failed.
    """

    attributes: tuple[str, ...] = ()
    notes_failure: bool = False
    is_good: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class PauseFor:
    """Ends the message with the questions in `needs_input`; the reply continues at `resume`.

    `resume` is created by `make_resume_stage`.
    """

    kind: Literal["information", "approval"]
    resume: Stage


@dataclass(frozen=True, slots=True, eq=False)
class Next:
    """Sends to the next stage in the payload's `agent_sequence` or, after the last one, to `done`.

    Names that are not in `stages` are skipped and recorded in the journal.
    """

    stages: tuple[Stage, ...]
    done: Stage | Return


Target = Stage | Final | Scatter | Return | PauseFor | Next


class Counter(StrEnum):
    """Counts how often rows were taken, so that a limit can end cycles of the flow."""

    RESEARCH = "research"
    REGENERATE = "regenerate"
    NEXT_MODEL = "next_model"
    ROUND = "round"
    WAVE = "wave"
    STEP = "step"
    RETRY = "retry"
    ITERATION = "iteration"
    SEQUENCE = "sequence"
    TURN = "turn"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table.

    The manager increments `counts` when it takes the row; at the limit of the counter, the row
    leads to `at_limit` instead of `go_to`. `reason` is passed to the clarification agent if the hop
    has no reason. `is_fallback` means that the way of answering failed, so that a search answers
    instead, which the reply states.
    """

    after: Stage
    did: StageEvent
    go_to: Target
    counts: Counter | None = None
    at_limit: Target | None = None
    reason: Reason | None = None
    is_fallback: bool = False
    name: str = field(init=False, compare=False)
    """The slug of this row in the journal, composed of stage and event, such as
    `search.ambiguous_results`.
    """

    def __post_init__(self) -> None:
        """Compute the name once, because every hop uses it."""
        object.__setattr__(self, "name", f"{self.after}.{self.did}")

    @property
    def targets(self) -> tuple[Stage, ...]:
        """The stages that this row leads to.

        They include the gather stage of a scatter, the resume stage of a pause, and all stages of a
        sequence.
        """
        return (*_list_stages(self.go_to), *self.targets_at_limit)

    @property
    def targets_at_limit(self) -> tuple[Stage, ...]:
        """The stages that this row leads to at the limit of its counter."""
        return _list_stages(self.at_limit)

    @property
    def scatters(self) -> tuple[Scatter, ...]:
        """The scatters among the targets of this row."""
        targets = (self.go_to, self.at_limit)
        return tuple(target for target in targets if isinstance(target, Scatter))


class FlowError(Exception):
    """A flow is invalid or unknown, or has no row for a stage and an event."""


def make_gather_stage(name: str, *, may_ask: bool = False) -> Stage:
    """Return a stage at which the manager continues with the results of branches.

    Its events are `GATHERED`, `FAILED` if there are no results, and `MORE` if further branches can
    start. If `may_ask` is true, it also has `NEEDS_INPUT`, for branches that need user input.
    """
    events = GATHER_EVENTS | {StageEvent.NEEDS_INPUT} if may_ask else GATHER_EVENTS
    return Stage(name, Role.MANAGER, events, lambda _state, _threshold: StageEvent.FAILED)


def make_resume_stage(name: str) -> Stage:
    """Return a stage at which the manager continues with the reply to a pause."""
    return Stage(name, Role.MANAGER, RESUME_EVENTS, _classify_resumed)


def _list_stages(target: Target | None) -> tuple[Stage, ...]:
    if isinstance(target, Scatter):
        return (target.gather,)
    if isinstance(target, PauseFor):
        return (target.resume,)
    if isinstance(target, Next):
        return (*target.stages, *_list_stages(target.done))
    return (target,) if isinstance(target, Stage) else ()


class Flow:
    """A table of rows, with lookup by stage and event.

    The first row of each stage is on the main path of an answered question. A message is processed
    with the version of the flow with which it started. `most_hops` replaces the limits on hops and
    total time. Raises `FlowError` for two rows with the same stage and event, or two stages with
    the same name.
    """

    def __init__(
        self, name: str, version: int, rows: Iterable[Row], *, most_hops: int | None = None
    ) -> None:
        self.name, self.version, self.most_hops = name, version, most_hops
        self.rows = tuple(rows)
        self.stages: dict[str, Stage] = {}
        self._by_pair: dict[tuple[Stage, StageEvent], Row] = {}
        for row in self.rows:
            if (row.after, row.did) in self._by_pair:
                raise FlowError(f"expected one row for {row.name!r}, found two")
            self._by_pair[row.after, row.did] = row
            branched = (stage for scatter in row.scatters for stage in scatter.begins)
            for stage in (row.after, *row.targets, *branched):
                if self.stages.setdefault(stage.name, stage) is not stage:
                    raise FlowError(f"expected one stage {stage.name!r}, found two")

    @property
    def identifier(self) -> str:
        """The name by which envelopes refer to this version, such as `search@1`."""
        return f"{self.name}@{self.version}"

    @property
    def start(self) -> Stage:
        """The stage of the first row."""
        return self.rows[0].after

    @property
    def main_path(self) -> tuple[Stage, ...]:
        """The stages of a question that is answered at the first attempt, from `start`.

        These follow the first row of each stage. Raises `FlowError` if these rows form a cycle.
        """
        first = {row.after: row.go_to for row in reversed(self.rows)}
        stages = [self.start]
        while isinstance(stage := first[stages[-1]], Stage):
            if stage in stages:
                raise FlowError(f"expected the first rows to end, found {stage.name!r} twice")
            stages.append(stage)
        return tuple(stages)

    def row(self, stage: Stage, did: StageEvent) -> Row:
        """Return the row for this stage and event; raises `FlowError` if there is none."""
        row = self._by_pair.get((stage, did))
        if row is None:
            raise FlowError(f"expected a row for {stage.name!r} with {did.value!r}, found none")
        return row

    def find_branch_stages(self, branch: Stage) -> frozenset[Stage]:
        """Return the stages that a branch starting at `branch` can reach, including those of nested
        branches.
        """
        reached, frontier = {branch}, [branch]
        while frontier:
            stage = frontier.pop()
            rows = [row for row in self.rows if row.after is stage]
            following = {target for row in rows for target in row.targets}
            following |= {
                start for row in rows for scatter in row.scatters for start in scatter.begins
            }
            frontier.extend(following - reached)
            reached |= following
        return frozenset(reached)

    def stage(self, name: str) -> Stage:
        """Return the stage with this name; raises `FlowError` if there is none."""
        stage = self.stages.get(name)
        if stage is None:
            raise FlowError(f"expected a stage of the flow {self.identifier}, found {name!r}")
        return stage


def find_flow(flows: Mapping[str, Flow], identifier: str) -> Flow:
    """Return the flow with this identifier; raises `FlowError` if this process does not have it."""
    flow = flows.get(identifier)
    if flow is None:
        raise FlowError(
            f"expected one of the flows {', '.join(sorted(flows))}, found {identifier!r}: "
            "update this worker first"
        )
    return flow


def _classify_resumed(state: State, _threshold: float) -> StageEvent:
    answers = {"replied": StageEvent.REPLIED, "denied": StageEvent.DENIED}
    return answers.get(str(state.pause_answer), StageEvent.FAILED)
