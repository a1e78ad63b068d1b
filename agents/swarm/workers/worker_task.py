"""The task of one worker as its branch receives it, and the bounds of what it gives back."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, Field, JsonValue

from agents.swarm.planning.plan import WorkerPlan
from agents.swarm.workers.output import WorkerOutput, bound_output
from tools.passages import FoundPassage

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
