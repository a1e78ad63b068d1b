"""Agents that do nothing: each writes just what lets a question pass its stage."""

from pydantic import BaseModel, create_model

from agents.agent import Agent
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role

WRITES: dict[Role, dict[str, object]] = {
    Role.LANG: {"language": "en", "confidence": 1.0},
    Role.TRANSLATION: {"text_eng": "How do I configure routing rules?"},
    Role.ESSENCE: {"canonical_question": "How do I configure routing rules?"},
    Role.GUARDRAILS: {"within_scope": True},
    Role.SEARCH: {"search_quality": "good"},
    Role.AUGMENTATION: {"augmented_prompt": "-"},
    Role.RESPONSE: {"response": "Open Routing and choose New rule [1]."},
    Role.QUALITY: {"quality_score": 0.9, "quality_decision": "approve"},
}


class Reads(BaseModel, frozen=True):
    """Every idle agent reads the text."""

    text: str


class IdleAgent(Agent[Reads, BaseModel]):
    """Write the stage's fixed attributes at once."""

    reads = Reads

    def __init__(self, role: Role) -> None:
        self.role = role  # type: ignore[misc] # one class serves every role here, and only here
        fields: dict[str, object] = {
            name: (type(value), ...) for name, value in WRITES[role].items()
        }
        self.writes = create_model(f"{role.value.title()}Writes", **fields)  # type: ignore[call-overload] # made from data
        self._wrote = Wrote(self.writes(**WRITES[role]))

    async def work(self, reads: Reads) -> HopOutcome[BaseModel]:
        """Return the fixed writes."""
        return self._wrote


def idle_agents() -> list[IdleAgent]:
    """Return one idle agent for each role of the main flow."""
    return [IdleAgent(role) for role in WRITES]
