"""Settings of models: the model of each task, limits, and the keys and addresses of vendors."""

from pydantic import BaseModel, Field, SecretStr, field_validator

from config.storage_settings import check_web_address
from config.way_settings import SpecialistSettings

SETTINGS_OF_VENDORS = (
    ("openai", True),
    ("google", True),
    ("anthropic", True),
    ("azure", True),
    ("deepinfra", True),
    ("cohere", False),
    ("jina", False),
    ("voyage", False),
)
"""The vendors that have `<NAME>_API_KEY`, and whether they have `<NAME>_BASE_URL`, too."""
LOCAL_SERVERS = ("ollama", "llamacpp", "vllm", "lmstudio")
"""Servers that are known by name and usually run on the same machine, without a key."""


class ModelLimit(BaseModel, frozen=True, extra="forbid"):
    """The limits of one model per minute, over all processes, and of one request; None: unknown."""

    requests_per_minute: float | None = Field(None, gt=0)
    tokens_per_minute: float | None = Field(None, gt=0)
    context_window: int | None = Field(None, gt=0)


class ModelSettings(SpecialistSettings):
    """Models: the model of each task, and limits; a part of `Settings`."""

    gen_model: str = Field(
        "offline",
        description="the model that writes answers, as `model@provider`; a list, separated by "
        "commas, is a fallback chain",
    )
    guardrails_model: str = Field(
        "", description="judges whether a question is within the scope; empty: as `GEN_MODEL`"
    )
    quality_model: str = Field("", description="judges answers; empty: as `GEN_MODEL`")
    translation_model: str = Field("", description="translates questions; empty: as `GEN_MODEL`")
    essence_model: str = Field(
        "",
        description="restates a question so that it can be understood alone; empty: as `GEN_MODEL`",
    )
    clarification_model: str = Field(
        "", description="writes clarification questions; empty: as `GEN_MODEL`"
    )
    description_model: str = Field(
        "offline", description="describes documents during ingestion; `offline`: rules do"
    )
    description_concurrency: int = Field(
        4,
        ge=1,
        le=64,
        description="number of documents that `DESCRIPTION_MODEL` describes at the same time",
    )
    embedding_model: str = Field(
        "all-MiniLM-L6-v2",
        description="embeds documents and questions; the default is part of Refdesk and compares "
        "English; `multilingual`: about a hundred languages, by the extra of that name; "
        "`MODEL@fastembed` or `MODEL@VENDOR`: see docs/languages.md",
    )
    embedding_dimensions: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="number of dimensions of the vectors; unset: that of the model. Models that "
        "can return fewer are asked for this many; required for a model that is not in the "
        "table",
    )
    embedding_question_prefix: str | None = Field(
        None,
        description="prefix of every question that is embedded; unset: the prefix that is known "
        "for the model",
    )
    embedding_document_prefix: str | None = Field(
        None,
        description="prefix of every passage that is embedded; unset: the prefix that is known "
        "for the model",
    )
    reranker: str = Field(
        "",
        description="the model that reorders the best passages of a search: `MODEL@cohere`, "
        "`@jina`, "
        "`@voyage`, `@NAME` of `COMPATIBLE_SERVERS`, or `MODEL@fastembed` on this machine; "
        "empty: none",
    )
    reranker_seconds: float = Field(
        2.0,
        gt=0,
        description="time limit of the reranker; after it, the order of the search is kept",
    )
    model_limits: dict[str, ModelLimit] = Field(
        {},
        description="requests and tokens a minute per `model@provider`, and its `context_window` "
        "in tokens where the price list does not know it (JSON)",
    )
    model_aliases: dict[str, str] = Field(
        {},
        description="names under which servers of models answer, by the requested name (JSON), "
        'such as `{"my-deployment": "gpt-5"}`; `*`: any name. Dated names need none. An answer by '
        "another model is a fault that the reply names",
    )
    combine_calls: bool = Field(
        True,
        description="ask for translation, essence and scope in one call, if one model does them "
        "all",
    )
    model_cache_seconds: int = Field(
        600,
        ge=0,
        le=31_536_000,
        description="how long model calls with the same input reuse an earlier output, "
        "in all conversations; 0: no reuse",
    )
    model_patience_seconds: float = Field(
        5.0,
        gt=0,
        description="how long a fallback chain waits before it also asks the model of the next "
        "vendor; the first answer is used",
    )

    @property
    def uses_model(self) -> bool:
        """Whether a model writes the answers; with `offline` alone, the passages of the search are
        shown.
        """
        return any(name.strip() != "offline" for name in self.gen_model.split(","))

    def model_of(self, task: str) -> str:
        """Return the model, or the fallback chain, of a task."""
        own = {
            "scope": self.guardrails_model,
            "judge": self.quality_model,
            "translate": self.translation_model,
            "understand": self.translation_model,
            "essence": self.essence_model,
            "clarify": self.clarification_model,
            "describe": self.description_model,
            "section_summary": self.description_model,
            "document_summary": self.description_model,
            "hyde_expansion": self.specialists["extractor"].model,
        }.get(task, "")
        if task in self.specialists:
            own = self.specialists[task].model
        return own or self.gen_model


class CompatibleServer(BaseModel, frozen=True, extra="forbid"):
    """A server that is compatible with OpenAI's, under a name that the operator chooses."""

    base_url: str
    api_key: SecretStr | None = None

    _is_address = field_validator("base_url")(check_web_address)


class VendorSettings(BaseModel):
    """Vendors of models: their keys and addresses; a part of `Settings`."""

    openai_api_key: SecretStr | None = Field(None, description="for models `@openai`")
    openai_base_url: str | None = Field(
        None,
        description="instead of https://api.openai.com/v1: of a compatible server or a proxy",
    )
    google_api_key: SecretStr | None = Field(None, description="for models `@google`")
    google_base_url: str | None = Field(
        None,
        description="instead of https://generativelanguage.googleapis.com: of a compatible server "
        "or a proxy; may end with the version that it knows (`/v1beta`)",
    )
    anthropic_api_key: SecretStr | None = Field(None, description="for models `@anthropic`")
    anthropic_base_url: str | None = Field(
        None,
        description="instead of https://api.anthropic.com/v1: of a compatible server or a proxy",
    )
    azure_api_key: SecretStr | None = Field(None, description="for models `@azure`")
    azure_base_url: str | None = Field(
        None, description="of your deployment: of a compatible server or a proxy"
    )
    deepinfra_api_key: SecretStr | None = Field(None, description="for models `@deepinfra`")
    deepinfra_base_url: str | None = Field(
        None,
        description="instead of https://api.deepinfra.com/v1/openai: of a compatible server or "
        "a proxy",
    )
    cohere_api_key: SecretStr | None = Field(None, description="for models `@cohere`")
    jina_api_key: SecretStr | None = Field(None, description="for models `@jina`")
    voyage_api_key: SecretStr | None = Field(None, description="for models `@voyage`")
    compatible_servers: dict[str, CompatibleServer] = Field(
        {},
        description="further servers that are compatible with OpenAI's, for models `@NAME`: "
        '`{"NAME": {"base_url": "...", "api_key": "..."}}` (JSON); also the addresses and keys '
        "of `ollama`, `llamacpp`, `vllm` and `lmstudio`, if they are not the usual ones",
    )

    @field_validator("compatible_servers")
    @classmethod
    def _check_names(cls, value: dict[str, CompatibleServer]) -> dict[str, CompatibleServer]:
        known = {name for name, _ in SETTINGS_OF_VENDORS} | {"offline", "scripted"}
        wrong = sorted(name for name in value if name in known or not name.isidentifier())
        if wrong:
            raise ValueError(f"expected names other than {sorted(known)}, found {wrong}")
        return value

    _are_vendor_addresses = field_validator(
        *(f"{name}_base_url" for name, has_address in SETTINGS_OF_VENDORS if has_address)
    )(check_web_address)

    def access_of_vendor(self, name: str) -> tuple[str | None, str | None]:
        """Return the key and the address that the settings of a vendor state; None: unset."""
        key: SecretStr | None = getattr(self, f"{name}_api_key", None)
        return _reveal(key), getattr(self, f"{name}_base_url", None)

    def access_of_server(self, name: str) -> tuple[str | None, str]:
        """Return the key and the address of a server of `COMPATIBLE_SERVERS`."""
        server = self.compatible_servers[name]
        return _reveal(server.api_key), server.base_url


def _reveal(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()
