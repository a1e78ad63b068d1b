"""The values of a plan: the workers with their briefs, and the table that they fill.

They are what a planning model fills in, and what a plan without a model has. A plan that a model
wrote is unchecked until `plan_checks.accept_plan` has seen it.
"""

from pydantic import BaseModel, Field

MOST_WORKERS = 32
"""Workers of one plan; more items share workers."""
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
    complexity: float = Field(default=0.5, ge=0, le=1)
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
