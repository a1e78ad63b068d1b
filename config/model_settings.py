"""Settings for models: the model of each task, limits, and the keys and URLs of vendors."""

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
"""The vendors that have `<NAME>_API_KEY`, and whether they also have `<NAME>_BASE_URL`."""
LOCAL_SERVERS = ("ollama", "llamacpp", "vllm", "lmstudio")
"""Servers that are known by name, usually run on the same machine, and do not need a key."""


class ModelLimit(BaseModel, frozen=True, extra="forbid"):
    """The limits of a model per minute, across all processes, and per request; None means
    unknown.
    """

    requests_per_minute: float | None = Field(None, gt=0)
    tokens_per_minute: float | None = Field(None, gt=0)
    context_window: int | None = Field(None, gt=0)


class ModelSettings(SpecialistSettings):
    """Settings for models: the model of each task, and limits."""

    gen_model: str = Field(
        "offline",
        description="the model that writes answers, as `model@provider`; a comma-separated list is "
        "a fallback chain",
    )
    guardrails_model: str = Field(
        "",
        description="model that judges whether a question is within the scope; empty: same as "
        "`GEN_MODEL`",
    )
    quality_model: str = Field(
        "", description="model that judges answers; empty: same as `GEN_MODEL`"
    )
    translation_model: str = Field(
        "", description="model that translates questions; empty: same as `GEN_MODEL`"
    )
    essence_model: str = Field(
        "",
        description="model that rewrites questions so that they can be understood without context; "
        "empty: same as `GEN_MODEL`",
    )
    clarification_model: str = Field(
        "", description="model that writes clarification questions; empty: same as `GEN_MODEL`"
    )
    description_model: str = Field(
        "offline",
        description="model that describes documents during ingestion; `offline`: rules are used "
        "instead",
    )
    description_concurrency: int = Field(
        4,
        ge=1,
        le=64,
        description="number of documents that `DESCRIPTION_MODEL` describes at the same time",
    )
    embedding_model: str = Field(
        "all-MiniLM-L6-v2",
        description="model that embeds documents and questions; the default is part of Refdesk and "
        "supports English; `multilingual`: about a hundred languages, requires the "
        "extra of that name; `MODEL@fastembed` or `MODEL@VENDOR`: see docs/languages.md",
    )
    embedding_dimensions: int | None = Field(
        None,
        ge=1,
        le=65_536,
        description="number of dimensions of the vectors; unset: the default of the model. It is "
        "requested from models that support different dimensions; required for unknown "
        "models",
    )
    embedding_question_prefix: str | None = Field(
        None,
        description="prefix that is added to every embedded question; unset: the known prefix of "
        "the model",
    )
    embedding_document_prefix: str | None = Field(
        None,
        description="prefix that is added to every embedded passage; unset: the known prefix of "
        "the model",
    )
    reranker: str = Field(
        "",
        description="the model that reorders the best passages of a search: `MODEL@cohere`, "
        "`@jina`, `@voyage`, `@NAME` from `COMPATIBLE_SERVERS`, or `MODEL@fastembed` "
        "for a local model; empty: none",
    )
    reranker_seconds: float = Field(
        2.0,
        gt=0,
        description="time limit of the reranker; if it is exceeded, the order of the search is "
        "kept",
    )
    model_limits: dict[str, ModelLimit] = Field(
        {},
        description="requests and tokens per minute for each `model@provider`, and its "
        "`context_window` in tokens if it is not in the price list (JSON)",
    )
    model_aliases: dict[str, str] = Field(
        {},
        description="names that model servers report in their responses, by requested name (JSON), "
        'such as `{"my-deployment": "gpt-5"}`; `*`: any name. Names with a date suffix '
        "do not need an entry. A response from a different model is reported as a fault "
        "in the reply",
    )
    combine_calls: bool = Field(
        True,
        description="combine translation, essence and scope in one call, if they use the same "
        "model",
    )
    model_cache_seconds: int = Field(
        600,
        ge=0,
        le=31_536_000,
        description="how long the output of a model call is reused for calls with the same input, "
        "across all conversations; 0: no reuse",
    )
    model_patience_seconds: float = Field(
        5.0,
        gt=0,
        description="how long a fallback chain waits before it also calls the model of the next "
        "vendor; the first response is used",
    )

    @property
    def uses_model(self) -> bool:
        """Whether a model writes answers; with only `offline`, passages from the search are
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
    """An OpenAI-compatible server, under a name chosen by the operator."""

    base_url: str
    api_key: SecretStr | None = None

    _is_address = field_validator("base_url")(check_web_address)


class VendorSettings(BaseModel):
    """Settings for model vendors: their keys and URLs."""

    openai_api_key: SecretStr | None = Field(None, description="API key for models `@openai`")
    openai_base_url: str | None = Field(
        None,
        description="URL of a compatible server or a proxy, instead of https://api.openai.com/v1",
    )
    google_api_key: SecretStr | None = Field(None, description="API key for models `@google`")
    google_base_url: str | None = Field(
        None,
        description="URL of a compatible server or a proxy, instead of "
        "https://generativelanguage.googleapis.com; may end with an API version (`/v1beta`)",
    )
    anthropic_api_key: SecretStr | None = Field(None, description="API key for models `@anthropic`")
    anthropic_base_url: str | None = Field(
        None,
        description="URL of a compatible server or a proxy, instead of "
        "https://api.anthropic.com/v1",
    )
    azure_api_key: SecretStr | None = Field(None, description="API key for models `@azure`")
    azure_base_url: str | None = Field(
        None, description="URL of your deployment, of a compatible server or of a proxy"
    )
    deepinfra_api_key: SecretStr | None = Field(None, description="API key for models `@deepinfra`")
    deepinfra_base_url: str | None = Field(
        None,
        description="URL of a compatible server or a proxy, instead of "
        "https://api.deepinfra.com/v1/openai",
    )
    cohere_api_key: SecretStr | None = Field(None, description="API key for models `@cohere`")
    jina_api_key: SecretStr | None = Field(None, description="API key for models `@jina`")
    voyage_api_key: SecretStr | None = Field(None, description="API key for models `@voyage`")
    compatible_servers: dict[str, CompatibleServer] = Field(
        {},
        description='additional OpenAI-compatible servers, for models `@NAME`: `{"NAME": '
        '{"base_url": "...", "api_key": "..."}}` (JSON); also the URLs and keys of '
        "`ollama`, `llamacpp`, `vllm` and `lmstudio`, if they differ from the defaults",
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
        """Return the key and the URL in the settings of a vendor; None if unset."""
        key: SecretStr | None = getattr(self, f"{name}_api_key", None)
        return _reveal(key), getattr(self, f"{name}_base_url", None)

    def access_of_server(self, name: str) -> tuple[str | None, str]:
        """Return the key and the URL of a server in `COMPATIBLE_SERVERS`."""
        server = self.compatible_servers[name]
        return _reveal(server.api_key), server.base_url


def _reveal(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()
