"""A type of worker, and the registry of types.

A type of this project is one module below `swarm/workers/kinds` with one `WorkerType`; others are
added with `WorkerRegistry.register`. A worker is made for one task and keeps nothing afterwards.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from llm.conversations.turns import ToolConversation, ToolDescription, UserMessage
from llm.tasks.work_on_task import TASK
from swarm.errors import UnknownName
from swarm.planning.plan import WorkerPlan


@dataclass(frozen=True, slots=True)
class WorkerType:
    """What all workers of a type have in common; `tools` are the usual ones."""

    name: str
    description: str
    tools: tuple[str, ...]
    instructions: str


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
    return WorkerRegistry(list_types())


@cache
def list_types() -> tuple[WorkerType, ...]:
    """Return the types of the modules below `swarm/workers/kinds`."""
    return list_sorted(_find_types())


def list_sorted(types: Iterable[WorkerType]) -> tuple[WorkerType, ...]:
    """Return types in the order of their names."""
    return tuple(sorted(types, key=lambda one: one.name))


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


def _find_types() -> Iterator[WorkerType]:
    package = import_module("swarm.workers.kinds")
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        found = vars(import_module(module.name)).values()
        yield from (value for value in found if isinstance(value, WorkerType))
