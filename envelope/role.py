"""The roles that envelopes are addressed to."""

from enum import StrEnum


class Role(StrEnum):
    """The task of an agent or the manager; each role has one stream per shard, with one group."""

    MANAGER = "manager"
    LANG = "lang"
    TRANSLATION = "translation"
    ESSENCE = "essence"
    GUARDRAILS = "guardrails"
    SEARCH = "search"
    CLARIFICATION = "clarification"
    AUGMENTATION = "augmentation"
    RESPONSE = "response"
    QUALITY = "quality"
    COMMAND = "command"
    TRIAGE = "triage"
    REASON = "reason"
    TOOL = "tool"
    REFLECT = "reflect"
    ASSESS = "assess"
    EXTRACTOR = "extractor"
    CLASSIFIER = "classifier"
    REQUIREMENT_EXTRACTOR = "requirement_extractor"
    COMPLIANCE = "compliance"
    RISK_VERIFIER = "risk_verifier"
    CITATION_AUDITOR = "citation_auditor"
    GAP_SYNTHESIZER = "gap_synthesizer"
    REPORT_GENERATOR = "report_generator"
    SYNTHESIS = "synthesis"
    INGESTION = "ingestion"
