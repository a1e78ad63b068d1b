"""Names the roles that envelopes are sent to."""

from enum import StrEnum


class Role(StrEnum):
    """A kind of worker; each role has one stream per shard and one consumer group."""

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
    INGESTION = "ingestion"
