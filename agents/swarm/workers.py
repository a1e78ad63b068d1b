"""The types of workers, the task of one worker, and the bounds of what it gives back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field, JsonValue

from agents.swarm.errors import UnknownName
from agents.swarm.swarm_plan import WorkerPlan
from agents.swarm.worker_output import WorkerOutput, bound_output
from llm.port import ToolConversation, ToolDescription, UserMessage
from llm.tasks.swarm import WORK_ON_TASK
from tools.passages import FoundPassage


@dataclass(frozen=True, slots=True)
class WorkerType:
    """What all workers of a type have in common; `tools` are the usual ones."""

    name: str
    description: str
    tools: tuple[str, ...]
    instructions: str


TYPES = (
    WorkerType(
        name="analysis",
        description="compares and weighs what the documents say",
        tools=(
            "search",
            "read_section",
            "read_document",
            "compare_documents",
            "definition_aligner",
        ),
        instructions="Weigh what the passages say for and against. Name what they do not say.",
    ),
    WorkerType(
        name="code",
        description="finds and explains code, commands and settings in the documents",
        tools=("search", "read_section", "read_document", "lookup"),
        instructions=(
            "Find the code, commands or settings that the question is about and quote them "
            "unchanged. Nothing is executed."
        ),
    ),
    WorkerType(
        name="data",
        description="reads whole documents and says what each of them states",
        tools=("get_document_list", "get_document_info", "read_document", "search", "calculator"),
        instructions="Read the documents of the brief whole, and quote the sentence of each fact.",
    ),
    WorkerType(
        name="research",
        description="finds the passages that answer one question",
        tools=("search", "expand_context", "read_section", "read_document", "lookup"),
        instructions="Find the passages that answer the question. Answer only from passages.",
    ),
)
"""The types of workers of this project. Code in documents is read as text; nothing is executed."""


class WorkerRegistry:
    """Types of workers by name; raises `ValueError` when two have the same."""

    def __init__(self, types: Iterable[WorkerType]) -> None:
        self._types: dict[str, WorkerType] = {}
        for one in types:
            self.register(one)

    def register(self, worker_type: WorkerType) -> None:
        if worker_type.name in self._types:
            raise ValueError(f"expected one type named {worker_type.name!r}, found two")
        self._types[worker_type.name] = worker_type

    def find(self, name: str) -> WorkerType:
        """Return a type; raises `UnknownName`."""
        if name not in self._types:
            known = ", ".join(sorted(self._types))
            raise UnknownName(f"expected one of {known} as a type of worker, found {name[:80]!r}")
        return self._types[name]

    @property
    def usual_tools(self) -> dict[str, tuple[str, ...]]:
        """The usual tools of each type."""
        return {name: one.tools for name, one in self._types.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all types, in alphabetical order."""
        return tuple(sorted(self._types))


def make_registry() -> WorkerRegistry:
    """Return a registry of the types of this project."""
    return WorkerRegistry(TYPES)


def open_worker(
    worker: WorkerPlan, worker_type: WorkerType, tools: Sequence[ToolDescription]
) -> ToolConversation:
    """Return the conversation in which a worker calls its tools.

    Only the tools of the brief are described.
    """
    system = "\n".join(part for part in (worker_type.instructions, worker.output) if part)
    own = tuple(tool for tool in tools if tool.name in worker.tools)
    brief = UserMessage(text=worker.objective)
    return ToolConversation(task=WORK_ON_TASK.name, system=system, messages=(brief,), tools=own)


MOST_BYTES = 20_000
"""The bytes of passages that one worker gives back."""
_LEAST_BYTES = 4_000
_ALL_BYTES = 300_000
"""The bytes of passages that all workers of a plan give back together."""
_LONGEST_VALUE = 300


class WorkerProgress(BaseModel, frozen=True, extra="forbid"):
    """Where a worker stopped to wait for the user: its messages, and the results of its calls."""

    messages: tuple[dict[str, JsonValue], ...] = ()
    results: dict[str, JsonValue] = {}


class WorkerTask(BaseModel, frozen=True, extra="ignore"):
    """A worker with its brief, facts that the user gave, and what workers before it found."""

    worker: WorkerPlan
    question: str = Field(default="", description="of the user")
    criteria: tuple[str, ...] = Field(default=(), description="of the table, asked of each item")
    known: dict[str, JsonValue] = {}
    found: tuple[str, ...] = ()
    workers: int = Field(default=1, ge=1, description="of the plan")
    progress: WorkerProgress | None = None

    @property
    def most_bytes(self) -> int:
        """The bytes of passages that this worker gives back."""
        return max(_LEAST_BYTES, min(MOST_BYTES, _ALL_BYTES // self.workers))

    @property
    def objective(self) -> str:
        """The brief, with the facts that the user gave."""
        values = [str(one)[:_LONGEST_VALUE] for one in self.known.values() if one is not None]
        fresh = [one for one in values if one.casefold() not in self.worker.objective.casefold()]
        return f"{self.worker.objective} ({', '.join(fresh)})" if fresh else self.worker.objective


def fit_output(output: WorkerOutput, most_bytes: int = MOST_BYTES) -> WorkerOutput:
    """Return an output within its bounds: its text, and the first passages."""
    bounded = bound_output(output)
    kept: list[FoundPassage] = []
    room = most_bytes
    for passage in bounded.passages:
        room -= len(passage.model_dump_json().encode())
        if room < 0 and kept:
            break
        kept.append(passage)
    return bounded.model_copy(update={"passages": tuple(kept)})


def read_outputs(found: Mapping[str, JsonValue]) -> dict[str, WorkerOutput]:
    """Return the outputs of a payload by worker."""
    return {name: WorkerOutput.model_validate(value) for name, value in found.items()}


def dump_outputs(outputs: Iterable[WorkerOutput]) -> dict[str, JsonValue]:
    """Return outputs as a payload has them."""
    return {one.worker_id: one.model_dump(mode="json") for one in outputs}
