"""Names every agent there is; the test of contracts goes over this list."""

from typing import Any

from agents.agent import Agent
from agents.augmentation import AugmentationAgent
from agents.clarification import ClarificationAgent
from agents.command import CommandAgent
from agents.essence import EssenceAgent
from agents.guardrails import GuardrailsAgent
from agents.lang import LangAgent
from agents.quality import QualityAgent
from agents.response import ResponseAgent
from agents.search import SearchAgent
from agents.translation import TranslationAgent

AGENTS: tuple[type[Agent[Any, Any]], ...] = (
    LangAgent,
    TranslationAgent,
    EssenceAgent,
    GuardrailsAgent,
    SearchAgent,
    ClarificationAgent,
    AugmentationAgent,
    ResponseAgent,
    QualityAgent,
    CommandAgent,
)
