"""The values of a plan: the route of a request, its complexity, and the workers with their briefs.

They are what a planning model fills in and what the offline rules return. A plan that a model wrote
is unchecked until `plan_checks.accept_plan` has seen it.
"""

from enum import StrEnum

from pydantic import BaseModel, Field

from llm.offline.criteria.read_criteria import Criterion

MOST_WORKERS = 32
"""Workers of one plan; more items share workers."""
MOST_IN_FLIGHT = 8


class RoutingAction(StrEnum):
    """How a request is handled."""

    SIMPLE_RESPONSE = "simple_response"
    GATHER_INFO = "gather_info"
    ORCHESTRATE = "orchestrate"


class RoutingDecision(BaseModel, frozen=True, extra="forbid"):
    """How a request is handled, and why."""

    action: RoutingAction
    reasoning: str
    confidence: float = Field(ge=0, le=1)
    requires_agents: tuple[str, ...] = ()
    complexity_estimate: float = Field(ge=0, le=1)
    topic_change_detected: bool = False
    is_cancellation: bool = False
    should_seek_approval: bool = False


class QueryComplexity(BaseModel, frozen=True, extra="forbid"):
    """How complex a question is, as a whole and by dimension, each 0 to 1."""

    score: float = Field(ge=0, le=1)
    dimensions: dict[str, float]
    suggested_workers: int = Field(ge=1, le=MOST_WORKERS)
    estimated_time_seconds: float = Field(ge=0)


class DocumentReference(BaseModel, frozen=True, extra="forbid"):
    """A document that workers may be given, without its text."""

    document_id: str
    title: str
    crumbs: tuple[str, ...] = ()


class WorkerPlan(BaseModel, frozen=True, extra="forbid"):
    """One worker with its brief.

    `role` is a type of the worker registry, `specialization` a property of this one: a
    subject, a document, a perspective. `subject` is the item that its passages must speak of,
    `language` that of the subject, empty where its name may differ from that in the documents;
    `lists_items`: each item that it finds becomes a worker, see `expansion`. `documents` and
    `criteria` are those of a worker that checks documents. `passages` bounds what it may show.
    `sides` are words that its quotations should have, such as those of the side that it takes.
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
    language: str = ""
    lists_items: bool = False
    documents: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    passages: int = Field(default=5, ge=1, le=30)
    sides: tuple[str, ...] = ()


class SwarmPlan(BaseModel, frozen=True, extra="forbid"):
    """A question divided among workers.

    `criteria` are those that a document of the answer meets or lacks; `compared` the items that
    the answer compares. `notes` name changes of the plan with their reasons.
    """

    question: str
    strategy: str
    complexity: QueryComplexity
    workers: tuple[WorkerPlan, ...]
    criteria: tuple[Criterion, ...] = ()
    is_counted: bool = False
    compared: tuple[str, ...] = ()
    reasoning: str = ""
    notes: tuple[str, ...] = ()

    def find_worker(self, worker_id: str) -> WorkerPlan | None:
        """Return the worker of an id, or None."""
        return next((one for one in self.workers if one.id == worker_id), None)


def name_worker(number: int, role: str) -> str:
    """Return the id of a worker, such as `worker_0_research`."""
    return f"worker_{number}_{role}"
