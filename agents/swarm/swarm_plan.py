"""The plan of a swarm: its workers, the facts that it asks for, and what it may cost."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

from pydantic import BaseModel, Field, JsonValue

from tools.dialogue import MOST_CALLS

MOST_WORKERS = 32
"""Maximum number of workers of a plan; further items share workers."""
MOST_IN_FLIGHT = 8


class WorkerPlan(BaseModel, frozen=True, extra="ignore"):
    """One worker with its brief.

    `role` is a type of the worker registry, `specialization` a property of this one: a part, a
    perspective. `subject` is the item of the table that it looks up; `lists_items`: each item that
    it finds becomes a worker, see `expansion`. `passages` bounds what it may show.
    """

    id: str = Field(min_length=1, max_length=120)
    role: str = Field(min_length=1, max_length=60)
    specialization: str = Field(default="", max_length=300)
    objective: str = Field(min_length=1, max_length=4_000)
    output: str = Field(default="", max_length=1_000)
    tools: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    priority: int = Field(default=5, ge=0, le=10, description="10 is the most urgent")
    subject: str = Field(default="", max_length=300)
    lists_items: bool = False
    passages: int = Field(default=10, ge=1, le=30)


class SwarmPlan(BaseModel, frozen=True, extra="ignore"):
    """A question divided among workers.

    With `items` and `criteria`, the answer is a table: each criterion for each item. `notes` name
    changes of the plan with their reasons.
    """

    question: str
    strategy: str
    workers: tuple[WorkerPlan, ...]
    items: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    reasoning: str = ""
    notes: tuple[str, ...] = ()

    def find_worker(self, worker_id: str) -> WorkerPlan | None:
        """Return the worker of an id, or None."""
        return next((one for one in self.workers if one.id == worker_id), None)


def name_worker(number: int, role: str) -> str:
    """Return the id of a worker, such as `worker_0_research`."""
    return f"worker_{number}_{role}"


class FieldType(StrEnum):
    """The form of the value of a field."""

    TEXT = "text"
    NUMBER = "number"
    DATE = "date"
    CHOICE = "choice"
    YES_NO = "yes_no"


class RequiredInfoField(BaseModel, frozen=True, extra="forbid"):
    """A fact that a worker needs: `cues` are words before or in the value, for extraction.

    `default` is used when the field is not required and the user does not say anything.
    """

    name: str = Field(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_]*$")
    question: str = Field(min_length=1, max_length=300)
    type: FieldType = FieldType.TEXT
    choices: tuple[str, ...] = ()
    required: bool = True
    cues: tuple[str, ...] = ()
    default: JsonValue = None


class TypedQuestion(BaseModel, frozen=True, extra="forbid"):
    """A question for the user, with the form of its answer and the workers that wait for it."""

    id: str
    text: str
    field: RequiredInfoField
    suggestions: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()


MOST_STEPS = 6
"""The messages of one worker's model, the last of which writes its result."""


class PlanCost(BaseModel, frozen=True, extra="forbid"):
    """Bounds of a plan: calls of models and tools, and micro-USD of priced tools."""

    workers: int
    model_calls: int
    tool_calls: int
    tool_micros: int | None = None
    model_usd: Decimal | None = None


def measure_cost(
    plan: SwarmPlan,
    prices: Mapping[str, int | None] | None = None,
    *,
    call_usd: Decimal | None = None,
) -> PlanCost:
    """Return the bounds; `prices` are the most that a call of a tool costs, None: not known.

    `call_usd` is the estimated price of one call of a worker's model.
    """
    known = prices or {}
    workers = len(plan.workers)
    calls = workers * (MOST_STEPS - 1) * MOST_CALLS
    named = {tool for worker in plan.workers for tool in worker.tools}
    highest = max((known.get(tool) or 0 for tool in named), default=0)
    model_calls = workers * MOST_STEPS + 1
    return PlanCost(
        workers=workers,
        model_calls=model_calls,
        model_usd=None if call_usd is None else model_calls * call_usd,
        tool_calls=calls,
        tool_micros=calls * highest or None,
    )
