"""Lists the agents, with the facts that the rest of the program needs without importing them.

The class of an agent declares these facts, and `python -m deploy.generate.pages` copies them into
`roster.json`. Settings, manifests, the widget's progress steps, the attributes that a branch
inherits, and the generated pages are derived from it. The module of an agent is imported only where
the agent runs, because it may load libraries that other processes do not need.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from importlib.resources import files
from typing import Any, Self

from agents.agent import Agent, AgentRole, AgentTier, ProgressStep
from envelope.role import Role


class PodGroup(StrEnum):
    """A group of roles that are served by one Deployment or Compose service."""

    MANAGER = "manager"
    LIGHT = "light"
    MODELS = "models"
    SEARCH = "search"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """The facts about one agent that the rest of the program needs; see `agents.agent.Agent`.

    `package` contains the agent's module, which has the name of its role. `model_task` is the name
    of the task in `llm/tasks` for which the agent calls a model. `reads` and `writes` are
    attributes of the payload.
    """

    role: Role
    package: str
    step: ProgressStep
    slots: int
    model_task: str | None
    needs_index: bool
    tier: AgentTier
    agent_role: AgentRole | None
    reads: frozenset[str]
    writes: frozenset[str]

    @classmethod
    def of(cls, agent: type[Agent[Any, Any]]) -> Self:
        """Return the facts declared in an agent's class."""
        return cls(
            role=agent.role,
            package=agent.__module__.rpartition(".")[0],
            step=agent.step,
            slots=agent.slots,
            model_task=None if agent.model_task is None else agent.model_task.name,
            needs_index=agent.needs_index,
            tier=agent.tier,
            agent_role=agent.agent_role,
            reads=frozenset(agent.reads.model_fields),
            writes=frozenset(agent.writes.model_fields),
        )

    @property
    def stage(self) -> str:
        """The stage of a question while the agent works on it, which is the name of the role."""
        return self.role.value

    @property
    def pods(self) -> PodGroup:
        """The pods in which the agent runs, shared with other agents that wait for the same
        resource.
        """
        if self.needs_index:
            return PodGroup.SEARCH
        return PodGroup.LIGHT if self.model_task is None else PodGroup.MODELS

    @property
    def instances(self) -> int:
        """The default of `INSTANCES`, the number of instances of each agent that `refdesk up`
        starts: two for agents that wait for a model or the index, and one for the others.
        """
        return 1 if self.pods is PodGroup.LIGHT else 2

    def load_class(self) -> type[Agent[Any, Any]]:
        """Import and return the agent's class: `<Role>Agent` of `<role>.py` in its package."""
        return load_agent(self.package, self.role)


def load_agent(package: str, role: Role) -> type[Agent[Any, Any]]:
    """Import and return the class `<Role>Agent` of the module `<role>` in a package."""
    agent: type[Agent[Any, Any]] = getattr(
        import_module(f"{package}.{role.value}"), f"{role.value.title().replace('_', '')}Agent"
    )
    return agent


def _read_agents() -> tuple[AgentSpec, ...]:
    declared = json.loads(files("agents").joinpath("roster.json").read_bytes())
    return tuple(
        AgentSpec(
            Role(role),
            facts["package"],
            ProgressStep(facts["step"]),
            facts["slots"],
            facts["model_task"],
            facts["needs_index"],
            AgentTier(facts["tier"]),
            None if facts["agent_role"] is None else AgentRole(facts["agent_role"]),
            frozenset(facts["reads"]),
            frozenset(facts["writes"]),
        )
        for role, facts in declared.items()
    )


AGENTS = _read_agents()
"""The agents, in the order of `Role`."""
SPECS: dict[str, AgentSpec] = {spec.role.value: spec for spec in AGENTS}
"""The agents by the names of their roles."""
