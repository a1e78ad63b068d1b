"""Settings for storage, retention, and ingestion."""

import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, ValidationInfo, field_validator

from envelope.question import Question

WEB_ADDRESS = re.compile(r"https?://[^\s\"'<>]+")
REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
Redaction = Literal["email", "number", "address"]
DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
MOST_DAYS = 36_500
"""A hundred years, in days; Redis rejects much longer times."""
WHOSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,63})?")


class Retention(BaseModel, frozen=True, extra="forbid"):
    """The retention for one tenant or assistant; None selects the general setting."""

    memory_ttl_days: float | None = Field(None, gt=0, le=MOST_DAYS)
    result_ttl_hours: float | None = Field(None, gt=0, le=24 * MOST_DAYS)
    dead_letter_ttl_days: float | None = Field(None, gt=0, le=MOST_DAYS)
    records_days: float | None = Field(None, ge=0, le=MOST_DAYS)


class RetentionSettings(BaseModel):
    """Settings for retention and erasure."""

    memory_ttl_days: float = Field(
        30.0, gt=0, le=MOST_DAYS, description="retention of conversations after their last message"
    )
    result_ttl_hours: float = Field(
        24.0, gt=0, le=24 * MOST_DAYS, description="retention of replies and journals"
    )
    dead_letter_ttl_days: float = Field(
        7.0, gt=0, le=MOST_DAYS, description="retention of dead letters"
    )
    records_days: float = Field(
        90.0,
        ge=0,
        le=MOST_DAYS,
        description="retention of the records of questions and answers, which the console shows "
        "to the owner; 0: no records",
    )
    records_url: SecretStr | None = Field(
        None,
        description="database of the records: `postgresql://USER:PASSWORD@HOST/NAME` (requires the "
        "extra `postgresql`) or `sqlite:///PATH`; unset: `records.sqlite3` in the data "
        "folder. Set it if several machines serve questions",
    )
    records_people: Literal["pseudonym", "id"] = Field(
        "pseudonym",
        description="how records identify users: `pseudonym`, a keyed hash that is the same for "
        "all questions of a person, or `id`, which adds the id in the channel (`user_id`, "
        "`sub` of a token, the id of a chat)",
    )
    records_redact: tuple[Redaction, ...] = Field(
        (),
        description="kinds of text that are replaced in records before they are written: `email`, "
        "`number` "
        "(telephone, card and account numbers of at least 7 digits), `address` (of web pages)",
    )
    retention: dict[str, Retention] = Field(
        {},
        description="different retention for a `tenant` or `tenant/assistant`: a JSON object of "
        "objects with `memory_ttl_days`, `result_ttl_hours`, `dead_letter_ttl_days`, "
        "`records_days`; must be equal in all processes",
    )
    erasure_rewrite_seconds: float = Field(
        60.0,
        ge=0,
        description="time after a deletion until Redis rewrites its append-only file, which "
        "contains the deleted text until then; also the minimum interval between two "
        "rewrites. If nothing was deleted, the file is rewritten once a day to remove "
        "expired data. 0: Refdesk never starts a rewrite; you must do it yourself",
    )

    @field_validator("retention")
    @classmethod
    def _are_names(cls, value: dict[str, Retention]) -> dict[str, Retention]:
        for name in value:
            if WHOSE.fullmatch(name) is None:
                raise ValueError(f"expected a tenant, or tenant/assistant, found {name!r}")
        return value

    def memory_seconds_of(self, tenant: str, assistant: str) -> int:
        """Return the retention of a conversation in seconds."""
        days = self._of(tenant, assistant, "memory_ttl_days")
        return max(1, int(days * DAY_SECONDS))

    def find_memory_seconds(self, question: Question) -> int:
        """Return the retention of a question's conversation in seconds."""
        return self.memory_seconds_of(question.tenant, question.assistant)

    def result_seconds_of(self, tenant: str, assistant: str) -> float:
        """Return the retention of replies and journals in seconds."""
        return self._of(tenant, assistant, "result_ttl_hours") * HOUR_SECONDS

    def dead_letter_seconds_of(self, tenant: str, assistant: str) -> float:
        """Return the retention of dead letters in seconds."""
        return self._of(tenant, assistant, "dead_letter_ttl_days") * DAY_SECONDS

    def records_days_of(self, tenant: str, assistant: str) -> float:
        """Return the retention of records in days; 0 disables records."""
        return self._of(tenant, assistant, "records_days")

    def _of(self, tenant: str, assistant: str, name: str) -> float:
        for scope in (f"{tenant}/{assistant}", tenant):
            own = self.retention.get(scope)
            value: float | None = None if own is None else getattr(own, name)
            if value is not None:
                return value
        default: float = getattr(self, name)
        return default


class IngestionSettings(BaseModel):
    """Settings for ingestion, crawls, and document services.

    A file that exceeds a limit is skipped.
    """

    ingestion_file_seconds: float = Field(
        20.0,
        gt=0,
        le=3600,
        description="maximum processor time for one file (wall time: six times as long); for JSON "
        "Lines, per document and per megabyte of the file",
    )
    ingestion_file_memory_mb: int = Field(
        512, ge=64, le=65_536, description="maximum memory for reading one file, in megabytes"
    )
    ingestion_readers: int | None = Field(
        None,
        ge=1,
        le=64,
        description="number of files that are read in parallel, each in a separate process; unset: "
        "one for each processor, at most eight",
    )
    crawl_delay_seconds: float = Field(
        0.5,
        ge=0,
        le=60,
        description="pause between two requests to a website; a longer pause in its robots.txt "
        "takes precedence",
    )
    confluence_url: str = Field(
        "",
        description="URL of the Confluence Cloud site whose spaces are read, such as "
        "https://acme.atlassian.net; credentials are only sent there",
    )
    confluence_api_url: str = Field(
        "",
        description="API URL for a scoped token, https://api.atlassian.com/ex/confluence/CLOUD_ID; "
        "credentials are sent there instead; empty: the token is not scoped",
    )
    confluence_email: str = Field("", description="account that reads Confluence")
    confluence_api_token: SecretStr | None = Field(None, description="API token of that account")
    zendesk_url: str = Field(
        "",
        description="URL of the Zendesk account whose help center is read, such as "
        "https://acme.zendesk.com; credentials are only sent there",
    )
    zendesk_email: str = Field(
        "",
        description="account of a help center manager; empty: only public articles are read",
    )
    zendesk_api_token: SecretStr | None = Field(None, description="API token of that account")
    source_everybody_groups: list[str] = Field(
        [],
        description="Confluence groups and Zendesk user segments that include all users of this "
        'desk (JSON), such as ["confluence-users"]; documents that they can read are '
        "public here",
    )

    sources_over_http: list[str] = Field(
        ["https://"],
        description="URL prefixes of sources that a key with the scope `write` can add over HTTP "
        '(JSON), such as ["https://", "s3://docs", "/srv/handbook"]; a website must '
        "have a public address, unless its host is listed here",
    )

    @field_validator("confluence_url", "confluence_api_url", "zendesk_url")
    @classmethod
    def _check_service(cls, value: str, info: ValidationInfo) -> str:
        parts = urlsplit(value)
        is_safe = parts.scheme == "https" or (
            parts.scheme == "http" and parts.hostname in _LOOPBACK
        )
        has_path = bool(parts.path.strip("/")) and info.field_name != "confluence_api_url"
        is_bare = not (has_path or parts.query or parts.fragment or "@" in value)
        if value and not (is_safe and parts.hostname and is_bare):
            raise ValueError(
                f"expected an address such as https://acme.example.com, found {value!r}"
            )
        return value.rstrip("/")


def check_web_address(value: str | None) -> str | None:
    """Return a valid web URL, or None; raises `ValueError` for an invalid one."""
    if value is not None and WEB_ADDRESS.fullmatch(value) is None:
        raise ValueError("expected an address that begins with http:// or https://")
    return value


class StorageSettings(BaseModel):
    """Settings for storage: Redis, Qdrant, and the data folder."""

    redis_url: str | None = Field(
        None, description="URL of the Redis server; unset: the embedded broker"
    )
    qdrant_url: str | None = Field(
        None, description="URL of the Qdrant server; unset: the embedded index"
    )
    qdrant_api_key: SecretStr | None = Field(None, description="key of the Qdrant server")
    refdesk_data: Path = Field(
        Path(".refdesk"),
        description="folder for the embedded broker, the embedded index, the records and the "
        "models",
    )

    _is_index_address = field_validator("qdrant_url")(check_web_address)

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(REDIS_SCHEMES):
            raise ValueError(
                "expected an address with redis://, rediss:// or unix://, or nodes with "
                "redis+cluster:// or rediss+cluster://"
            )
        return value
