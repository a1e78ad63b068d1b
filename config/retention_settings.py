"""Settings of what is kept, how long, and how it is erased."""

import re

from pydantic import BaseModel, Field, field_validator

DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
WHOSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,63})?")


class Retention(BaseModel, frozen=True, extra="forbid"):
    """How long one tenant, or one of its assistants, keeps things; None: as long as all."""

    memory_ttl_days: float | None = Field(None, gt=0)
    result_ttl_hours: float | None = Field(None, gt=0)
    dead_letter_ttl_days: float | None = Field(None, gt=0)


class RetentionSettings(BaseModel):
    """What decides how long things are kept; a part of `Settings`."""

    memory_ttl_days: float = Field(
        30.0, gt=0, description="conversations are forgotten so long after their last message"
    )
    result_ttl_hours: float = Field(
        24.0, gt=0, description="replies and journals are kept for so long"
    )
    dead_letter_ttl_days: float = Field(
        7.0, gt=0, description="messages that were given up are kept for so long"
    )
    retention: dict[str, Retention] = Field(
        {},
        description="other times by `tenant` or `tenant/assistant`: a JSON object of objects with "
        "`memory_ttl_days`, `result_ttl_hours`, `dead_letter_ttl_days`; the same for all processes",
    )
    erasure_rewrite_seconds: float = Field(
        60.0,
        ge=0,
        description="how long after an erasure Redis is told to write its append-only file anew, "
        "in which the words stand until then; at most so often. 0: never, somebody else does",
    )
    expiry_rewrite_hours: float = Field(
        24.0,
        ge=0,
        description="how often that is done for what expired, where nothing was erased; 0: never",
    )

    @field_validator("retention")
    @classmethod
    def _are_names(cls, value: dict[str, Retention]) -> dict[str, Retention]:
        for name in value:
            if WHOSE.fullmatch(name) is None:
                raise ValueError(f"expected a tenant, or tenant/assistant, found {name!r}")
        return value

    def memory_seconds_of(self, tenant: str, assistant: str) -> int:
        """Return how long a conversation is remembered."""
        days = self._of(tenant, assistant, "memory_ttl_days")
        return max(1, int(days * DAY_SECONDS))

    def result_seconds_of(self, tenant: str, assistant: str) -> float:
        """Return how long replies and journals are kept."""
        return self._of(tenant, assistant, "result_ttl_hours") * HOUR_SECONDS

    def dead_letter_seconds_of(self, tenant: str, assistant: str) -> float:
        """Return how long dead letters are kept."""
        return self._of(tenant, assistant, "dead_letter_ttl_days") * DAY_SECONDS

    def _of(self, tenant: str, assistant: str, name: str) -> float:
        for whose in (f"{tenant}/{assistant}", tenant):
            own = self.retention.get(whose)
            value: float | None = None if own is None else getattr(own, name)
            if value is not None:
                return value
        found: float = getattr(self, name)
        return found
