"""Lists the agents, in the order in which a question can reach them first."""

from agents.spec import AgentRole, AgentSpec, AgentTier, PodGroup, ProgressStep
from envelope.role import Role

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
