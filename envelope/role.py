"""The roles to which envelopes are addressed."""

from enum import StrEnum


class Role(StrEnum):
    """The role of an agent or the manager; each has one stream and one consumer group per shard.

    Listed in the order in which a question can first reach them.
    """

    MANAGER = "manager"
    LANG = "lang"
    COMMAND = "command"
    TRANSLATION = "translation"
    ESSENCE = "essence"
    GUARDRAILS = "guardrails"
    TRIAGE = "triage"
    REASON = "reason"
    TOOL = "tool"
    REFLECT = "reflect"
    EXTRACTOR = "extractor"
    CLASSIFIER = "classifier"
    REQUIREMENT_EXTRACTOR = "requirement_extractor"
    COMPLIANCE = "compliance"
    RISK_VERIFIER = "risk_verifier"
    CITATION_AUDITOR = "citation_auditor"
    GAP_SYNTHESIZER = "gap_synthesizer"
    REPORT_GENERATOR = "report_generator"
    SYNTHESIS = "synthesis"
    PLAN = "plan"
    GATHER = "gather"
    LEDGER = "ledger"
    WORK = "work"
    SYNTHESIZE = "synthesize"
    SEARCH = "search"
    CLARIFICATION = "clarification"
    AUGMENTATION = "augmentation"
    RESPONSE = "response"
    QUALITY = "quality"
    INGESTION = "ingestion"
    READ = "read"
    WRITE = "write"


INGESTING = frozenset({Role.INGESTION, Role.READ, Role.WRITE})
"""The roles that process documents. Their messages are not questions, and the manager does not
route them.
"""
