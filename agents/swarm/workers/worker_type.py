"""A type of worker, and the registry of types.

The types of this project are `TYPES`; others are added with `WorkerRegistry.register`. A worker is
made for one task and keeps nothing afterwards.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agents.swarm.errors import UnknownName
from agents.swarm.planning.plan import WorkerPlan
from llm.conversation import ToolConversation, ToolDescription, UserMessage
from llm.tasks.work_on_task import TASK


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
    return ToolConversation(task=TASK.name, system=system, messages=(brief,), tools=own)
