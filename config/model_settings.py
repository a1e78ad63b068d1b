"""Settings of models: the model of each task, limits, and the keys and addresses of vendors."""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, SecretStr, create_model, field_validator

from config.storage_settings import check_web_address
from config.way_settings import SpecialistSettings
from llm.vendors.catalogue import VENDORS, Vendor, VendorAccess


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


class _VendorMethods(BaseModel):
    """The checks of the settings of vendors, and the values derived from them."""

    if TYPE_CHECKING:
        compatible_servers: dict[str, CompatibleServer]

    @field_validator("compatible_servers", check_fields=False)
    @classmethod
    def _check_names(cls, value: dict[str, CompatibleServer]) -> dict[str, CompatibleServer]:
        # Local servers that are known by name, such as Ollama, may get another address.
        known = {one.name for one in VENDORS if not one.is_local} | {"offline", "scripted"}
        wrong = sorted(name for name in value if name in known or not name.isidentifier())
        if wrong:
            raise ValueError(f"expected names other than {sorted(known)}, found {wrong}")
        return value

    _are_vendor_addresses = field_validator(
        *(f"{vendor.name}_base_url" for vendor in VENDORS if vendor.has_settings and vendor.chats),
        check_fields=False,
    )(check_web_address)

    def vendor_access(self) -> dict[str, VendorAccess]:
        """Return the key and the address of every vendor and named server."""
        access = {
            vendor.name: VendorAccess(
                api_key=_reveal(getattr(self, f"{vendor.name}_api_key", None)),
                base_url=getattr(self, f"{vendor.name}_base_url", None),
            )
            for vendor in VENDORS
        }
        for name, server in self.compatible_servers.items():
            access[name] = VendorAccess(_reveal(server.api_key), server.base_url)
        return access


def _make_fields(vendors: tuple[Vendor, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for vendor in vendors:
        if not vendor.has_settings:
            continue
        fields[f"{vendor.name}_api_key"] = (
            SecretStr | None,
            Field(None, description=f"for models `@{vendor.name}`"),
        )
        if not vendor.chats:
            continue
        address = f"instead of {vendor.base_url}" if vendor.base_url else "of your deployment"
        fields[f"{vendor.name}_base_url"] = (
            str | None,
            Field(None, description=f"{address}: of a compatible server or a proxy"),
        )
    fields["compatible_servers"] = (
        dict[str, CompatibleServer],
        Field(
            {},
            description="further servers that are compatible with OpenAI's, for models `@NAME`: "
            '`{"NAME": {"base_url": "...", "api_key": "..."}}` (JSON); also the addresses and keys '
            "of `ollama`, `llamacpp`, `vllm` and `lmstudio`, if they are not the usual ones",
        ),
    )
    return fields


def _reveal(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


if TYPE_CHECKING:

    class VendorSettings(_VendorMethods):
        """Vendors of models: their keys and addresses; a part of `Settings`."""

else:
    VendorSettings = create_model(
        "VendorSettings",
        __doc__="Vendors of models: their keys and addresses; a part of `Settings`.",
        __base__=_VendorMethods,
        __module__=__name__,
        **_make_fields(VENDORS),
    )
