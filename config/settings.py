"""Every setting, read from the environment or a `.env` file; `docs/settings.md` lists them."""

import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from config.chat_settings import ChatSettings
from config.errors import SettingsError
from config.http_settings import WEB_ADDRESS, HttpSettings
from config.ingestion_settings import IngestionSettings

INSTANCES = {
    "manager": 1,
    "lang": 1,
    "command": 1,
    "augmentation": 1,
    "translation": 2,
    "essence": 2,
    "guardrails": 2,
    "search": 2,
    "clarification": 2,
    "response": 2,
    "quality": 2,
}
"""How many instances of each role `refdesk up` runs: two of each that waits for models."""

CONCURRENCY = {
    "manager": 64,
    "lang": 16,
    "command": 8,
    "augmentation": 16,
    "translation": 16,
    "essence": 16,
    "guardrails": 16,
    "search": 8,
    "clarification": 16,
    "response": 16,
    "quality": 16,
}
"""On how many envelopes one instance works at once."""

ALWAYS = tuple(role for role in INSTANCES if role not in ("command", "clarification"))
"""Roles that every answered question passes."""


NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class ModelLimit(BaseModel, frozen=True, extra="forbid"):
    """What one model may be asked in a minute, over all processes; None: no limit."""

    requests_per_minute: float | None = Field(None, gt=0)
    tokens_per_minute: float | None = Field(None, gt=0)


REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "redis+cluster://", "rediss+cluster://")


class AssistantSettings(BaseModel, frozen=True, extra="forbid"):
    """A further assistant; an empty tenant is `TENANT`."""

    assistant: str = Field(pattern=NAME)
    tenant: str = Field("", pattern=f"^$|{NAME}")
    domain_name: str
    domain_scope: str
    documentation_url: str | None = None

    @field_validator("documentation_url")
    @classmethod
    def _is_documentation(cls, value: str | None) -> str | None:
        return _documentation(value)


class Settings(IngestionSettings, HttpSettings, ChatSettings, BaseSettings):
    """The settings of one process. Times are seconds unless the name says otherwise."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8", extra="ignore", frozen=True
    )

    domain_name: str = Field("Documentation Assistant", description="how the desk names itself")
    domain_scope: str = Field(
        "product documentation and user guides", description="what the desk answers about"
    )
    guardrails_strictness: Literal["low", "medium", "high"] = Field(
        "medium", description="how sure the desk must be that a question is its business"
    )
    product_names: tuple[str, ...] = Field(
        (), description="names that are never translated or corrected (a JSON list)"
    )
    default_language: str = Field("en", description="used when nothing tells the language")

    gen_model: str = Field(
        "offline",
        description="the model that answers, `model@provider`; a list is a fallback chain",
    )
    guardrails_model: str = Field("", description="for scope; empty: as `GEN_MODEL`")
    quality_model: str = Field("", description="for judging answers; empty: as `GEN_MODEL`")
    translation_model: str = Field("", description="for translation; empty: as `GEN_MODEL`")
    essence_model: str = Field("", description="for the essence; empty: as `GEN_MODEL`")
    clarification_model: str = Field("", description="for asking back; empty: as `GEN_MODEL`")
    description_model: str = Field(
        "offline", description="describes documents while ingesting; `offline`: by rules"
    )
    embedding_model: str = Field(
        "all-MiniLM-L6-v2", description="embeds documents and questions; the default ships with us"
    )
    openai_api_key: SecretStr | None = Field(None, description="for models `@openai`")
    openai_base_url: str | None = Field(None, description="of a compatible server")
    openai_json_object: bool = Field(
        False, description="for compatible servers that know no JSON schemas: tell it in the prompt"
    )
    google_api_key: SecretStr | None = Field(None, description="for models `@google`")
    google_base_url: str | None = Field(None, description="of a proxy")
    model_limits: dict[str, ModelLimit] = Field(
        {}, description="requests and tokens a minute per `model@provider` (JSON)"
    )
    model_cache_seconds: int = Field(
        600, ge=0, description="how long questions share answers of models; 0: not at all"
    )
    model_timeout_seconds: float = Field(30.0, gt=0, description="of one model call")

    search_results_limit: int = Field(10, ge=1, le=100, description="chunks an answer may use")
    search_confidence_threshold: float = Field(
        0.3, ge=0, le=1, description="answerability below this is poor"
    )
    max_context_length: int = Field(4000, ge=200, description="tokens of context for an answer")

    max_clarification_rounds: int = Field(3, ge=0, description="questions back for one question")
    quality_score_threshold: float = Field(0.7, ge=0, le=1, description="approvals need this")
    max_research: int = Field(2, ge=0, description="searches more that a judge may ask for")
    max_regenerate: int = Field(2, ge=0, description="answers more that a judge may ask for")
    max_process_count: int = Field(60, ge=10, description="hops after which a question ends")
    deadline_seconds: float = Field(120.0, gt=1, description="of a question, from its acceptance")
    agent_timeout_seconds: float = Field(60.0, gt=0, description="of one run of an agent")
    agent_attempts: int = Field(3, ge=1, description="tries of a failing agent, the first included")

    redis_url: str | None = Field(None, description="unset: the embedded broker")
    qdrant_url: str | None = Field(None, description="unset: the embedded index")
    qdrant_api_key: SecretStr | None = Field(None, description="of the Qdrant server")
    refdesk_data: Path = Field(Path(".refdesk"), description="folder of broker, index and models")
    shards: int = Field(1, ge=1, le=1024, description="fixed at the first start")
    shard_quota: int = Field(10_000, ge=1, description="open questions that a shard holds at most")
    queue_share: float = Field(
        0.12,
        ge=0,
        le=10,
        description="how long questions may wait for free workers under overload, as a share of "
        "the work on them; what is more is refused at the door. 0: no such bound",
    )
    lease_seconds: float = Field(15.0, ge=1, description="after which a dead worker's work moves")
    tenant: str = Field("default", description="whose documents and conversations")
    assistant: str = Field("default", description="which of the tenant's assistants")
    assistants: tuple[AssistantSettings, ...] = Field(
        (),
        description="further assistants that these processes serve, each with documents of its "
        "own: a JSON list of `assistant`, `domain_name`, `domain_scope` and, if another, `tenant`",
    )
    documentation_url: str | None = Field(
        None,
        description="where the documents are published: sources without an address of their own "
        "open there, below this address or by a template, `https://docs.acme.com/{page}#{anchor}` "
        "(`{path}`: the file's path, `{page}`: without its ending); unset: at the HTTP door",
    )
    history_turns: int = Field(6, ge=0, le=50, description="turns that agents see")
    memory_ttl_days: float = Field(30.0, gt=0, description="conversations are forgotten after")
    result_ttl_hours: float = Field(24.0, gt=0, description="replies and journals are kept for")
    instances: dict[str, int] = Field({}, description="instances per role (JSON), else defaults")
    concurrency: dict[str, int] = Field({}, description="concurrency per role (JSON)")
    health_port: int = Field(
        0,
        ge=0,
        le=65535,
        description="of a worker, and of doors of chat services; 0: none",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("warning", description="logs")

    @field_validator(
        "redis_url",
        "qdrant_url",
        "openai_base_url",
        "google_base_url",
        "documentation_url",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("documentation_url")
    @classmethod
    def _is_documentation(cls, value: str | None) -> str | None:
        return _documentation(value)

    @field_validator("redis_url")
    @classmethod
    def _redis_scheme(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(REDIS_SCHEMES):
            raise ValueError(
                "expected redis://, rediss:// or unix:// and a server, or redis+cluster:// or "
                "rediss+cluster:// and some nodes"
            )
        return value

    @field_validator("instances", "concurrency")
    @classmethod
    def _known_roles(cls, value: dict[str, int]) -> dict[str, int]:
        unknown = sorted(set(value) - set(INSTANCES))
        if unknown:
            raise ValueError(f"expected roles of {sorted(INSTANCES)}, found {unknown}")
        if any(number < 1 for number in value.values()):
            raise ValueError(f"expected numbers of at least 1, found {value}")
        return value

    @model_validator(mode="after")
    def _agents_end_before_the_deadline(self) -> "Settings":
        if self.agent_timeout_seconds > self.deadline_seconds:
            raise ValueError(
                "expected AGENT_TIMEOUT_SECONDS to be at most DEADLINE_SECONDS, found "
                f"{self.agent_timeout_seconds:g} above {self.deadline_seconds:g}"
            )
        return self

    def of_assistants(self) -> list["Settings"]:
        """Return the settings of every assistant that is served, this one's first."""
        further = [
            self.model_copy(
                update={
                    "tenant": one.tenant or self.tenant,
                    "assistant": one.assistant,
                    "domain_name": one.domain_name,
                    "domain_scope": one.domain_scope,
                    "documentation_url": one.documentation_url,
                }
            )
            for one in self.assistants
        ]
        named = {(one.tenant, one.assistant): one for one in further}
        own = (self.tenant, self.assistant)
        return [named.pop(own, self), *named.values()]

    def instances_of(self, role: str) -> int:
        """Return how many instances of a role one `refdesk up` runs."""
        return self.instances.get(role, INSTANCES[role])

    def concurrency_of(self, role: str) -> int:
        """Return on how many envelopes one instance of a role works at once."""
        return self.concurrency.get(role, CONCURRENCY[role])

    @property
    def smallest_role(self) -> int:
        """On how many questions the role with the fewest places in one `refdesk up` works."""
        return min(self.instances_of(role) * self.concurrency_of(role) for role in ALWAYS)

    def model_of(self, task: str) -> str:
        """Return the model, or fallback chain, that is asked for a task."""
        own = {
            "scope": self.guardrails_model,
            "judge": self.quality_model,
            "translate": self.translation_model,
            "essence": self.essence_model,
            "clarify": self.clarification_model,
            "describe": self.description_model,
        }.get(task, "")
        return own or self.gen_model


def _documentation(value: str | None) -> str | None:
    names = set(re.findall(r"\{[^{}]*\}?", value or ""))
    if value is not None and (
        WEB_ADDRESS.fullmatch(value) is None or names - {"{path}", "{page}", "{anchor}"}
    ):
        raise ValueError(
            "expected an address such as https://docs.acme.com, in which {path}, {page} and "
            "{anchor} may stand"
        )
    return value


def load_settings(**changes: object) -> Settings:
    """Return the settings; raises `SettingsError` with one line for each that is wrong."""
    try:
        return Settings(**changes)  # type: ignore[arg-type] # checked by pydantic
    except ValueError as error:
        raise SettingsError(_lines(error)) from error


def _lines(error: ValueError) -> str:
    details = getattr(error, "errors", None)
    if not callable(details):
        return str(error)
    lines = []
    for detail in details(include_url=False):
        name = "_".join(str(part) for part in detail["loc"]).upper()
        found = "" if not name else f", found {detail.get('input')!r}"
        message = detail["msg"].removeprefix("Value error, ")
        lines.append(f"{name}: {message}{found}" if name else message)
    return "\n".join(lines)
