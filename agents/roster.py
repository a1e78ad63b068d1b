"""Lists the agents, with the facts that the rest of the program needs without importing them.

Their order is that in which a question can reach them first. Settings, manifests, the widget's
progress steps and the generated pages derive from these declarations. The module of an agent is
imported only where the agent works, because it may bring libraries that other processes do not
need.
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


_QUESTION = "agents.question"
_SEARCH = "agents.search"
_LOOP = "agents.tool_loop"
_TEAM = "agents.review"
_SWARM = "agents.swarm"
_SPECIALIST = AgentTier.SPECIALIST

# fmt: off
AGENTS: tuple[AgentSpec, ...] = (
    AgentSpec(Role.LANG,          ProgressStep.UNDERSTAND, PodGroup.LIGHT,  instances=1, package=_QUESTION),
    AgentSpec(Role.COMMAND,       ProgressStep.UNDERSTAND, PodGroup.LIGHT,  slots=8, instances=1, package=_QUESTION),
    AgentSpec(Role.TRANSLATION,   ProgressStep.UNDERSTAND, PodGroup.SEARCH, model_task="translate", needs_index=True, package=_QUESTION),
    AgentSpec(Role.ESSENCE,       ProgressStep.UNDERSTAND, PodGroup.MODELS, model_task="essence", package=_QUESTION),
    AgentSpec(Role.GUARDRAILS,    ProgressStep.UNDERSTAND, PodGroup.SEARCH, model_task="scope", needs_index=True, package=_QUESTION),
    AgentSpec(Role.TRIAGE,        ProgressStep.UNDERSTAND, PodGroup.SEARCH, model_task="triage", needs_index=True, package=_LOOP, tier=AgentTier.ORCHESTRATOR, agent_role=AgentRole.ORCHESTRATE),
    AgentSpec(Role.REASON,        ProgressStep.SEARCH,     PodGroup.SEARCH, model_task="reason", needs_index=True, package=_LOOP),
    AgentSpec(Role.TOOL,          ProgressStep.SEARCH,     PodGroup.SEARCH, needs_index=True, package=_LOOP),
    AgentSpec(Role.REFLECT,       ProgressStep.SEARCH,     PodGroup.LIGHT,  instances=1, package=_LOOP),
    AgentSpec(Role.EXTRACTOR,     ProgressStep.SEARCH,     PodGroup.SEARCH, model_task="extractor", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.EXTRACT),
    AgentSpec(Role.CLASSIFIER,    ProgressStep.SEARCH,     PodGroup.SEARCH, model_task="classifier", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.CLASSIFY),
    AgentSpec(Role.REQUIREMENT_EXTRACTOR, ProgressStep.SEARCH, PodGroup.SEARCH, model_task="requirement_extractor", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.EXTRACT),
    AgentSpec(Role.COMPLIANCE,    ProgressStep.CHECK,      PodGroup.SEARCH, model_task="compliance", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.VERIFY),
    AgentSpec(Role.RISK_VERIFIER, ProgressStep.CHECK,      PodGroup.SEARCH, model_task="risk_verifier", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.VERIFY),
    AgentSpec(Role.CITATION_AUDITOR, ProgressStep.CHECK,   PodGroup.SEARCH, model_task="citation_auditor", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.AUDIT),
    AgentSpec(Role.GAP_SYNTHESIZER, ProgressStep.CHECK,    PodGroup.SEARCH, model_task="gap_synthesizer", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.SYNTHESIZE),
    AgentSpec(Role.REPORT_GENERATOR, ProgressStep.WRITE,   PodGroup.SEARCH, model_task="report_generator", needs_index=True, package=_TEAM, tier=_SPECIALIST, agent_role=AgentRole.REPORT),
    AgentSpec(Role.SYNTHESIS,     ProgressStep.WRITE,      PodGroup.SEARCH, model_task="synthesis", needs_index=True, package=_TEAM, tier=AgentTier.ORCHESTRATOR, agent_role=AgentRole.SYNTHESIZE),
    AgentSpec(Role.PLAN,          ProgressStep.UNDERSTAND, PodGroup.SEARCH, model_task="plan_swarm", needs_index=True, package=_SWARM),
    AgentSpec(Role.GATHER,        ProgressStep.UNDERSTAND, PodGroup.LIGHT,  instances=1, package=_SWARM),
    AgentSpec(Role.LEDGER,        ProgressStep.SEARCH,     PodGroup.LIGHT,  instances=1, package=_SWARM),
    AgentSpec(Role.WORK,          ProgressStep.SEARCH,     PodGroup.SEARCH, model_task="work_on_task", needs_index=True, package=_SWARM),
    AgentSpec(Role.SYNTHESIZE,    ProgressStep.WRITE,      PodGroup.MODELS, model_task="synthesize_findings", package=_SWARM),
    AgentSpec(Role.SEARCH,        ProgressStep.SEARCH,     PodGroup.SEARCH, slots=8, needs_index=True, package=_SEARCH),
    AgentSpec(Role.CLARIFICATION, ProgressStep.WRITE,      PodGroup.MODELS, model_task="clarify", package=_QUESTION),
    AgentSpec(Role.AUGMENTATION,  ProgressStep.SEARCH,     PodGroup.LIGHT,  instances=1, package=_SEARCH),
    AgentSpec(Role.RESPONSE,      ProgressStep.WRITE,      PodGroup.MODELS, model_task="respond", package=_SEARCH),
    AgentSpec(Role.ASSESS,        ProgressStep.CHECK,      PodGroup.MODELS, model_task="assess", package=_LOOP),
    AgentSpec(Role.QUALITY,       ProgressStep.CHECK,      PodGroup.MODELS, model_task="judge", package=_SEARCH),
)
# fmt: on
SPECS: dict[str, AgentSpec] = {spec.role.value: spec for spec in AGENTS}
"""The agents by the names of their roles."""
