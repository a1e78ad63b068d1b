"""The parts of a flow: events of hops, stages, rows, and the table that selects a row.

`manager/flows/` holds the flows themselves.
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
        """Return how the documentation and `refdesk trace` describe this event to people."""
        return _DESCRIPTIONS.get(self) or self.value.replace("_", " ")


_DESCRIPTIONS = {
    StageEvent.COMMAND: "a command",
    StageEvent.QUESTION: "a question",
    StageEvent.EXIT: "the user ends the question",
    StageEvent.COURTESY: "thanks, a greeting, a wish for further answers or the like",
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
    StageEvent.GATHERED: "the results of the branches are there",
    StageEvent.MORE: "the branches that depend on these can begin",
    StageEvent.SEARCHES: "one search is enough for this question",
    StageEvent.USES_TOOLS: "the question needs several searches",
    StageEvent.USES_SPECIALISTS: "the question asks for a review",
    StageEvent.SPLITS: "the work is divided into parts",
    StageEvent.USES_SWARM: "the question is divided among workers",
    StageEvent.BEGINS: "workers start at the same time",
    StageEvent.NEEDS_APPROVAL: "the user has to approve what comes next",
    StageEvent.CALLS: "tools are called, then an answer is written",
    StageEvent.CALLS_AND_PLANS: "tools are called, then further calls are planned",
    StageEvent.READY: "everything was found, or nothing more can be",
    StageEvent.NOTHING_NEW: "an answer was judged, and no new call is planned",
    StageEvent.ENOUGH: "the answer is good enough",
    StageEvent.AGAIN: "the answer lacks something",
    StageEvent.NEEDS_INPUT: "the user is asked for information or approval",
    StageEvent.REPLIED: "the user gave the values or the approval",
    StageEvent.DENIED: "the user denied, or cannot be asked",
    StageEvent.OTHER_TOPIC: "the waiting message is about something else, or asks to stop",
    StageEvent.PAUSE_OVER: "a reply to a pause that is no longer open",
    StageEvent.PAUSE_UNANSWERED: "a reply to a pause that lacks values",
    StageEvent.READS_REPLY: "a message that may give the facts of a pause in its own words",
    StageEvent.PAUSE_FOREIGN: "a reply to a pause of somebody else",
}

GATHER_EVENTS = frozenset({StageEvent.GATHERED, StageEvent.MORE, StageEvent.FAILED})
RESUME_EVENTS = frozenset({StageEvent.REPLIED, StageEvent.DENIED, StageEvent.FAILED})

Classifier = Callable[[State, float], StageEvent]
"""Returns the event of a hop from what it wrote; the number is the quality threshold."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A position of a message in a flow.

    `role` works on it, `events` are all that it can end with, and `classify` derives the one of a
    hop. A role may serve several stages. The stage `start` has no hop: its role is the manager.
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
    EXIT = "the fixed text for a question that the user ended"
    ACT = "the fixed text for what the user did"
    REPLY = "the agent's own words"
    FIXED = "the fixed text for the reason"
    PAUSE = "the questions of the pause"
    PAUSE_OVER = "the fixed text for a pause that is no longer open"
    PAUSE_FOREIGN = "the fixed text for a pause of somebody else"


@dataclass(frozen=True, slots=True)
class Final:
    """The end of a message."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Join:
    """When the message continues with the results of branches: after all, or after `at_least`
    successes, and at the latest after `seconds` or after `share` of the remaining time. At most
    `at_once` branches run at the same time.
    """

    at_least: int | None = None
    seconds: float = 60.0
    at_once: int = 3
    share: float = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """Begin a branch at the stage `branch` for each item of the plan; continue at `gather`, a stage
    of `make_gather_stage`.

    A branch inherits the attributes that its roles read and that it does not return, and those of
    `handed_over`: their writes replace a value or add only new items.

    `watch` is the stage at which a branch begins for each message that waits behind the question or
    arrives meanwhile. If it succeeds, the work ends with the results so far.
    """

    branch: Stage
    gather: Stage
    plan: Callable[[State], Sequence[BranchItem]]
    join: Join = Join()
    handed_over: tuple[str, ...] = ()
    watch: Stage | None = None

    @property
    def begins(self) -> tuple[Stage, ...]:
        """The stages at which its branches begin."""
        return (self.branch,) if self.watch is None else (self.branch, self.watch)


@dataclass(frozen=True, slots=True)
class Return:
    """The end of a branch with these attributes.

    `notes_failure`: a failure is one of `errors`. `is_good`: it can be a success.
    """

    attributes: tuple[str, ...] = ()
    notes_failure: bool = False
    is_good: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class PauseFor:
    """End the message with the questions in `needs_input`; the reply continues at `resume`.

    `resume` is a stage of the manager: `make_resume_stage` returns one.
    """

    kind: Literal["information", "approval"]
    resume: Stage


@dataclass(frozen=True, slots=True, eq=False)
class Next:
    """Send to the stage of the next name in the payload's `agent_sequence`; after all, to `done`.

    Names of other stages than `stages` are skipped, and the journal names them.
    """

    stages: tuple[Stage, ...]
    done: Stage | Return


Target = Stage | Final | Scatter | Return | PauseFor | Next


class Counter(StrEnum):
    """A counter of rows; its limit ends every cycle of the flow."""

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

    The manager increments `counts` when it takes the row; at the limit of the counter the row leads
    to `at_limit` instead of `go_to`. `reason` is passed to the clarification agent if the hop gave
    no reason. With `is_fallback`, the way failed: one search answers instead, and the reply says
    so.
    """

    after: Stage
    did: StageEvent
    go_to: Target
    counts: Counter | None = None
    at_limit: Target | None = None
    reason: Reason | None = None
    is_fallback: bool = False
    name: str = field(init=False, compare=False)
    """The slug of this row in the journal: stage and event, such as `search.ambiguous_results`."""

    def __post_init__(self) -> None:
        """Compute the name once, because every hop takes a row."""
        object.__setattr__(self, "name", f"{self.after}.{self.did}")

    @property
    def targets(self) -> tuple[Stage, ...]:
        """The stages that this row leads to: of a scatter the one that gathers, of a pause the one
        at which its reply goes on, of a sequence every one that it may name.
        """
        return (*_list_stages(self.go_to), *self.targets_at_limit)

    @property
    def targets_at_limit(self) -> tuple[Stage, ...]:
        """The stages that this row leads to at the limit of its counter."""
        return _list_stages(self.at_limit)

    @property
    def scatters(self) -> tuple[Scatter, ...]:
        """The scatters that this row makes."""
        return tuple(each for each in (self.go_to, self.at_limit) if isinstance(each, Scatter))


class FlowError(Exception):
    """A flow has no row or two rows for a stage and an event, or an envelope names no flow."""


def make_gather_stage(name: str, *, may_ask: bool = False) -> Stage:
    """Return a stage at which the manager continues with the results of branches. Its events are:
    there are results, there are none, or further branches can begin. With `may_ask` the flow has a
    row for branches that need something from the user.
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
    """A table with lookup by stage and event.

    The first row of each stage is the one of an answered question. A message ends by the version of
    the flow that it began with. Raises `FlowError` if two rows have stage and event equal, or two
    stages their name. `most_hops` replaces the limits of hops and of time: its deadline ends it.
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
        """The first stage: that of the first row."""
        return self.rows[0].after

    @property
    def main_path(self) -> tuple[Stage, ...]:
        """The stages of a question that is answered at the first attempt, `start` first.

        Each stage leads on by its first row; raises `FlowError` where the first rows lead back.
        """
        first = {row.after: row.go_to for row in reversed(self.rows)}
        stages = [self.start]
        while isinstance(stage := first[stages[-1]], Stage):
            if stage in stages:
                raise FlowError(f"expected the first rows to end, found {stage.name!r} twice")
            stages.append(stage)
        return tuple(stages)

    def row(self, stage: Stage, did: StageEvent) -> Row:
        """Return the row for this stage and event; raise `FlowError` if there is none."""
        found = self._by_pair.get((stage, did))
        if found is None:
            raise FlowError(f"expected a row for {stage.name!r} with {did.value!r}, found none")
        return found

    def find_branch_stages(self, branch: Stage) -> frozenset[Stage]:
        """Return the stages that a branch can pass which begins at this one, with its branches."""
        found, frontier = {branch}, [branch]
        while frontier:
            stage = frontier.pop()
            rows = [row for row in self.rows if row.after is stage]
            following = {target for row in rows for target in row.targets}
            following |= {
                each for row in rows for scatter in row.scatters for each in scatter.begins
            }
            frontier.extend(following - found)
            found |= following
        return frozenset(found)

    def stage(self, name: str) -> Stage:
        """Return the stage of this name; raise `FlowError` if there is none."""
        found = self.stages.get(name)
        if found is None:
            raise FlowError(f"expected a stage of the flow {self.identifier}, found {name!r}")
        return found


def find_flow(flows: Mapping[str, Flow], identifier: str) -> Flow:
    """Return the flow that an envelope names; raise `FlowError` if this process has none."""
    found = flows.get(identifier)
    if found is None:
        raise FlowError(
            f"expected one of the flows {', '.join(sorted(flows))}, found {identifier!r}: "
            "update this worker first"
        )
    return found


def _classify_resumed(state: State, _threshold: float) -> StageEvent:
    answers = {"replied": StageEvent.REPLIED, "denied": StageEvent.DENIED}
    return answers.get(str(state.pause_answer), StageEvent.FAILED)
