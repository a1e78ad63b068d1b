"""Declares the facts about an agent that the rest of the program needs without importing it.

Settings, manifests, the widget's progress steps and the generated pages derive from these
declarations. The module of an agent is imported only where the agent works, because it may bring
libraries that other processes do not need.
"""

from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from envelope.role import Role

if TYPE_CHECKING:
    from agents.agent import Agent


class PodGroup(StrEnum):
    """A group of roles that one Deployment or Compose service works for."""

    MANAGER = "manager"
    LIGHT = "light"
    MODELS = "models"
    SEARCH = "search"


class ProgressStep(StrEnum):
    """The step shown to people while an agent works, with a text in each language."""

    UNDERSTAND = "understand"
    SEARCH = "search"
    WRITE = "write"
    CHECK = "check"


class AgentTier(StrEnum):
    """The tier of an agent: orchestrator, specialist, or any other."""

    ORCHESTRATOR = "orchestrator"
    SPECIALIST = "specialist"
    WORKER = "worker"


class AgentRole(StrEnum):
    """What an orchestrator or a specialist does; workers have none."""

    ORCHESTRATE = "orchestrate"
    EXTRACT = "extract"
    CLASSIFY = "classify"
    VERIFY = "verify"
    AUDIT = "audit"
    SYNTHESIZE = "synthesize"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """The facts about one agent that the rest of the program needs.

    `slots` is the default of `CONCURRENCY`: the number of envelopes that one instance works on at
    once. `instances` is the default of `INSTANCES`: the number of instances in one `refdesk up`.
    `model_task` names the task of `llm/tasks` for which the agent calls a model.
    `needs_index` is true when the agent searches the documents. `tier` and `agent_role` say what
    an agent is among the specialists.
    """

    role: Role
    step: ProgressStep
    pods: PodGroup
    slots: int = 16
    instances: int = 2
    model_task: str | None = None
    needs_index: bool = False
    package: str = "agents"
    tier: AgentTier = AgentTier.WORKER
    agent_role: AgentRole | None = None

    @property
    def stage(self) -> str:
        """The stage of a question while the agent works on it: the name of the role."""
        return self.role.value

    def load_class(self) -> "type[Agent[Any, Any]]":
        """Import and return the agent's class: `<Role>Agent` of `<role>.py` in its package."""
        name = self.role.value
        found: type[Agent[Any, Any]] = getattr(
            import_module(f"{self.package}.{name}"), f"{name.title().replace('_', '')}Agent"
        )
        return found
