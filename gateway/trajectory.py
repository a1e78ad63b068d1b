"""The trajectory of a message, which consists of thoughts, actions, and observations in its
journal.

Nothing is recorded twice, because the steps are a view of the entries that agents and tools write
anyway.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, Field, JsonValue
from pydantic_core import to_json

from broker.values import Fields, JournalEntry
from envelope.json_values import read_list, read_objects, read_whole

LONGEST_CONTENT = 500
"""Maximum number of characters of a step."""
_HALLUCINATION = "hallucination"
_TOOL = "tool"
_THOUGHTS = (("triage", "reasoning"), ("routing", "reasoning"), ("extracted", "analysis"))
"""Attributes that contain reasons, and the field of each attribute that contains the text."""
_RULES = "offline"


class StepKind(StrEnum):
    """The kind of a step of a trajectory."""

    THOUGHT = "thought"
    ACTION = "action"
    OBSERVATION = "observation"


class TrajectoryStep(BaseModel, frozen=True):
    """A step; `iteration` counts the turns of an agent in its branch, from 1."""

    kind: StepKind
    agent: str
    iteration: int = Field(ge=1)
    content: str = Field(default="", description="text of the step, shortened")
    tool_name: str | None = None
    tool_input: JsonValue = None
    success: bool | None = Field(
        None, description="whether the tool call succeeded; only for an observation"
    )
    error_type: str | None = Field(
        None, description="reason for a missing result; only for an observation"
    )
    branch: str = Field(
        default="", description="path of the branch, such as w2/t1; empty: the trunk"
    )
    at_ms: float = Field(0.0, ge=0, description="milliseconds since the message was accepted")


class TrajectoryMetrics(BaseModel, frozen=True):
    """The totals of a trajectory; rates are None if there are no calls."""

    steps: int = 0
    thoughts: int = 0
    tool_calls: int = 0
    unique_tools: int = 0
    repeated_calls: int = Field(
        0, description="number of calls with the same tool and input as another call"
    )
    success_rate: float | None = None
    hallucination_rate: float | None = None
    model_calls: int = 0
    tokens: int = 0
    cost_usd: str | None = Field(
        "0", description="cost in USD; null if the price of a call is unknown"
    )
    duration_ms: float = 0.0


@dataclass
class Trajectory:
    """The steps of a message in order, and the totals of its model calls."""

    steps: list[TrajectoryStep] = field(default_factory=list)
    model_calls: int = 0
    tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    duration_ms: float = 0.0

    def add_thought(self, content: str, iteration: int, **more: Any) -> None:
        """Add the reason for an agent's action."""
        self._add(StepKind.THOUGHT, content, iteration, more)

    def add_action(
        self, tool_name: str, tool_input: JsonValue, iteration: int, **more: Any
    ) -> None:
        """Add a call requested by an agent."""
        called = {"tool_name": tool_name, "tool_input": tool_input}
        self._add(StepKind.ACTION, "", iteration, {**more, **called})

    def add_observation(
        self,
        content: str,
        success: bool,
        iteration: int,
        **more: Any,
    ) -> None:
        """Add the result of a call, or its error."""
        self._add(StepKind.OBSERVATION, content, iteration, {**more, "success": success})

    def compute_metrics(self) -> TrajectoryMetrics:
        """Return the counts and rates of these steps."""
        kinds = Counter(step.kind for step in self.steps)
        actions = [step for step in self.steps if step.kind is StepKind.ACTION]
        seen = [step for step in self.steps if step.kind is StepKind.OBSERVATION]
        distinct = {
            (action.agent, action.tool_name, to_json(action.tool_input)) for action in actions
        }
        invented = sum(step.error_type == _HALLUCINATION for step in seen)
        return TrajectoryMetrics(
            steps=len(self.steps),
            thoughts=kinds[StepKind.THOUGHT],
            tool_calls=len(actions),
            unique_tools=len({action.tool_name for action in actions}),
            repeated_calls=len(actions) - len(distinct),
            success_rate=_divide(sum(step.success is True for step in seen), len(seen)),
            hallucination_rate=_divide(invented, len(seen)),
            model_calls=self.model_calls,
            tokens=self.tokens,
            cost_usd=None if self.cost_usd is None else str(self.cost_usd),
            duration_ms=round(self.duration_ms, 3),
        )

    def _add(self, kind: StepKind, content: str, iteration: int, more: Mapping[str, Any]) -> None:
        step = TrajectoryStep(
            kind=kind, content=content[:LONGEST_CONTENT], iteration=iteration, **more
        )
        self.steps.append(step)


class AgentTotals(BaseModel, frozen=True):
    """The totals of an agent across all of its runs, in all branches.

    `error_count` counts runs that failed or gave up, and the errors that runs recorded.
    """

    agent: str
    runs: int
    total_time_ms: float
    model_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: str | None
    error_count: int


def read_trajectory(entries: Sequence[JournalEntry]) -> Trajectory:
    """Return the trajectory of a message from its journal, which may still be growing."""
    trajectory = Trajectory()
    if not entries:
        return trajectory
    began, turns = entries[0].at, Counter[tuple[str, str]]()
    trajectory.duration_ms = (entries[-1].at - began) * 1000
    for entry in entries:
        if is_vendor_call(entry):
            _count_call(trajectory, entry.fields)
        elif entry.kind == "agent_run" and isinstance(entry.fields.get("writes"), dict):
            _read_run(trajectory, entry, max(0.0, entry.at - began) * 1000, turns)
    return trajectory


def is_vendor_call(entry: JournalEntry) -> bool:
    """Return whether an entry is a call to a vendor's model, rather than to the rules."""
    return entry.kind == "model_call" and entry.fields.get("model") != _RULES


def sum_agents(entries: Iterable[JournalEntry]) -> list[AgentTotals]:
    """Return the totals of each agent, with the one that took the most time first.

    Model calls that precede the run of an agent in the same branch belong to that agent.
    """
    runs: defaultdict[str, list[Fields]] = defaultdict(list)
    calls: defaultdict[str, list[Fields]] = defaultdict(list)
    waiting: defaultdict[str, list[Fields]] = defaultdict(list)
    for entry in entries:
        branch = str(entry.fields.get("branch") or "")
        if is_vendor_call(entry):
            waiting[branch].append(entry.fields)
        elif entry.kind == "agent_run":
            name = str(entry.fields.get("role"))
            runs[name].append(entry.fields)
            calls[name] += waiting.pop(branch, ())
    totals = [_add_up(name, runs[name], calls[name]) for name in runs]
    return sorted(totals, key=lambda item: (-item.total_time_ms, item.agent))


def _count_call(trajectory: Trajectory, fields: Mapping[str, JsonValue]) -> None:
    trajectory.model_calls += 1
    for name in ("input_tokens", "output_tokens"):
        value = fields.get(name)
        trajectory.tokens += value if isinstance(value, int) else 0
    price = fields.get("cost_usd")
    if price is None or trajectory.cost_usd is None:
        trajectory.cost_usd = None
    else:
        trajectory.cost_usd += Decimal(str(price))


def _read_run(
    trajectory: Trajectory, entry: JournalEntry, at: float, turns: Counter[tuple[str, str]]
) -> None:
    writes, role = entry.fields["writes"], str(entry.fields.get("role"))
    branch = str(entry.fields.get("branch") or "")
    place = {"branch": branch, "at_ms": round(at, 3)}
    if not isinstance(writes, dict):
        return
    if role == _TOOL:
        caller = branch.rpartition("/")[0]
        for execution in read_objects(writes.get("tool_executions")):
            agent = str(execution.get("agent_name") or _TOOL)
            _add_execution(
                trajectory, execution, max(1, turns[agent, caller]), agent=agent, **place
            )
        return
    thoughts, calls = list(_list_thoughts(writes)), read_objects(writes.get("tool_calls"))
    if not thoughts and not calls:
        return
    turns[role, branch] += 1
    iteration = turns[role, branch]
    for text in thoughts:
        trajectory.add_thought(text, iteration, agent=role, **place)
    for call in calls:
        tool = str(call.get("tool"))
        trajectory.add_action(tool, call.get("arguments"), iteration, agent=role, **place)


def _add_execution(
    trajectory: Trajectory, execution: Mapping[str, JsonValue], iteration: int, **place: Any
) -> None:
    has_succeeded = execution.get("success") is True
    trajectory.add_observation(
        str(execution.get("result_summary") or execution.get("error") or ""),
        has_succeeded,
        iteration,
        tool_name=str(execution.get("tool_name")),
        error_type=None if has_succeeded else str(execution.get("error_type")),
        **place,
    )


def _list_thoughts(writes: Mapping[str, JsonValue]) -> Iterable[str]:
    """Yield the reasons that an agent stated in its calls and decisions."""
    for message in read_objects(writes.get("plan_messages")):
        if message.get("text"):
            yield str(message["text"])
    if isinstance(writes.get("reasoning"), str) and writes["reasoning"]:
        yield str(writes["reasoning"])
    for name, inner in _THOUGHTS:
        value = writes.get(name)
        if isinstance(value, dict) and value.get(inner):
            yield str(value[inner])


def _divide(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _add_up(agent: str, runs: Sequence[Fields], calls: Sequence[Fields]) -> AgentTotals:
    """Return the totals of an agent; if the price of any call is unknown, so is the cost."""
    times = [run.get("milliseconds") for run in runs]
    prices = [call.get("cost_usd") for call in calls]
    known = [Decimal(str(price)) for price in prices if price is not None]
    return AgentTotals(
        agent=agent,
        runs=len(runs),
        total_time_ms=round(sum(time for time in times if isinstance(time, int | float)), 3),
        model_calls=len(calls),
        input_tokens=sum(read_whole(call.get("input_tokens")) for call in calls),
        output_tokens=sum(read_whole(call.get("output_tokens")) for call in calls),
        cost_usd=str(sum(known, Decimal(0))) if len(known) == len(prices) else None,
        error_count=sum(map(_count_errors, runs)),
    )


def _count_errors(fields: Fields) -> int:
    writes = fields.get("writes")
    written = writes.get("errors") if isinstance(writes, dict) else None
    failed = fields.get("status") != "completed"
    return int(failed) + len(read_list(written))
