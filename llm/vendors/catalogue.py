"""The table of model vendors.

Settings, `docs/settings.md`, startup checks, error messages and prices derive from this table. An
OpenAI-compatible vendor only needs an entry here.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

import structlog

from llm.errors import MissingKey, UnknownProvider
from llm.vendors.wire import Capabilities, RerankForm, check_allowed

if TYPE_CHECKING:
    from httpx2 import Response

    from llm.vendors.wire import ChatClient, EmbeddingClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One vendor of models.

    - `client`: the module with the vendor's `make_chat` and `make_embeddings`
    - `bare_names`: model names that match do not need `@vendor`
    - `base_url`: None if it is different for every customer
    - `price_name`: the vendor's name in the price list; if empty, costs are unknown
    - `shortenable_embeddings`: embedding models that return shorter vectors on request
    - `key_headers`, `models_path`: the headers and path of the request that checks a key
    - `is_configured`: whether the server is defined in `COMPATIBLE_SERVERS`
    - `reranking`: the format of reranking requests, or None; `chats`: False if it only reranks
    - `is_local`: whether it usually runs on the same machine at `base_url` and does not need a key
    """

    name: str
    client: str = "llm.vendors.openai"
    base_url: str | None = None
    bare_names: re.Pattern[str] | None = None
    price_name: str = ""
    capabilities: Capabilities = field(default_factory=Capabilities)
    embedding_dimensions: Mapping[str, int] = field(default_factory=dict)
    shortenable_embeddings: frozenset[str] = frozenset()
    key_headers: Mapping[str, str] = field(
        default_factory=lambda: {"Authorization": "Bearer {key}"}
    )
    models_path: str = "/models"
    is_configured: bool = False
    reranking: RerankForm | None = None
    chats: bool = True
    is_local: bool = False

    @property
    def needs_key(self) -> bool:
        """Whether the vendor requires a key."""
        return not self.is_local

    @property
    def has_settings(self) -> bool:
        """Whether the vendor has its own settings; other servers are configured in
        `COMPATIBLE_SERVERS`.
        """
        return not self.is_configured and not self.is_local

    @property
    def key_variable(self) -> str:
        """The environment variable that contains the key."""
        return f"{self.name.upper()}_API_KEY" if self.has_settings else "COMPATIBLE_SERVERS"

    @property
    def url_variable(self) -> str:
        """The environment variable that contains the base URL."""
        is_own = self.has_settings and self.chats
        return f"{self.name.upper()}_BASE_URL" if is_own else "COMPATIBLE_SERVERS"

    def answers_to(self, bare_name: str) -> bool:
        """Return whether a model name without `@vendor` belongs to this vendor."""
        return self.bare_names is not None and self.bare_names.match(bare_name) is not None


VENDORS = (
    Vendor(
        name="openai",
        base_url="https://api.openai.com/v1",
        bare_names=re.compile(r"gpt|chatgpt|o\d|text-embedding-"),
        price_name="openai",
        embedding_dimensions={
            "text-embedding-3-small": 1536,
            "text-embedding-3-large": 3072,
            "text-embedding-ada-002": 1536,
        },
        shortenable_embeddings=frozenset({"text-embedding-3-small", "text-embedding-3-large"}),
    ),
    Vendor(
        name="google",
        client="llm.vendors.google",
        base_url="https://generativelanguage.googleapis.com",
        bare_names=re.compile(r"gemini"),
        price_name="google",
        embedding_dimensions={"gemini-embedding-001": 3072},
        shortenable_embeddings=frozenset({"gemini-embedding-001"}),
        key_headers={"x-goog-api-key": "{key}"},
        models_path="/v1beta/models?pageSize=1",
    ),
    Vendor(
        name="anthropic",
        client="llm.vendors.anthropic",
        base_url="https://api.anthropic.com/v1",
        bare_names=re.compile(r"claude"),
        price_name="anthropic",
        capabilities=Capabilities(structure="text"),
        key_headers={"x-api-key": "{key}", "anthropic-version": "2023-06-01"},
    ),
    Vendor(name="azure", price_name="azure", key_headers={"api-key": "{key}"}),
    Vendor(
        name="deepinfra",
        base_url="https://api.deepinfra.com/v1/openai",
        bare_names=re.compile(r"[A-Za-z0-9._-]{1,100}/"),
        capabilities=Capabilities(structure="object"),
        embedding_dimensions={"Qwen/Qwen3-Embedding-8B": 4096},
    ),
    Vendor(name="ollama", base_url="http://127.0.0.1:11434/v1", is_local=True),
    Vendor(name="llamacpp", base_url="http://127.0.0.1:8080/v1", is_local=True),
    Vendor(name="vllm", base_url="http://127.0.0.1:8000/v1", is_local=True),
    Vendor(name="lmstudio", base_url="http://127.0.0.1:1234/v1", is_local=True),
    Vendor(
        name="cohere",
        base_url="https://api.cohere.com/v2",
        price_name="cohere",
        reranking=RerankForm(),
        chats=False,
    ),
    Vendor(
        name="jina",
        base_url="https://api.jina.ai/v1",
        reranking=RerankForm(further={"return_documents": False}),
        chats=False,
    ),
    Vendor(
        name="voyage",
        base_url="https://api.voyageai.com/v1",
        reranking=RerankForm(),
        chats=False,
    ),
)
"""All known vendors. The first one whose `bare_names` match a model name is chosen."""
log = structlog.get_logger("llm")

LIMIT_SECONDS = 5.0
_INVALID_KEY = "API_KEY_INVALID"
"""The reason that Google returns, with status 400, for an invalid key."""
LOCAL_MODELS = frozenset({"offline", "scripted"})


@dataclass(frozen=True, slots=True)
class VendorAccess:
    """The key and URL of one vendor; `base_url` overrides the vendor's default."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None


class VendorClient(Protocol):
    """The functions of a vendor's client module."""

    def make_chat(self, model: str, vendor: Vendor, access: VendorAccess) -> "ChatClient": ...

    def make_embeddings(
        self, model: str, vendor: Vendor, access: VendorAccess, dimensions: int | None = None
    ) -> "EmbeddingClient":
        """Return the client of an embedding model; `dimensions` is the requested vector length."""
        ...


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model in a setting; `offline` and `scripted` are their own providers."""

    model: str
    provider: str

    @property
    def is_local(self) -> bool:
        """Whether the model works without a vendor."""
        return self.provider in LOCAL_MODELS

    def __str__(self) -> str:
        return self.model if self.is_local else f"{self.model}@{self.provider}"


def load_client(vendor: Vendor) -> VendorClient:
    """Import the client of a vendor on first use, because it takes half a second."""
    from importlib import import_module

    return cast("VendorClient", import_module(vendor.client))


def vendors_by_name(further: Iterable[str] = ()) -> Mapping[str, Vendor]:
    """Return all vendors by name, including a compatible server for each additional name."""
    known = {vendor.name: vendor for vendor in VENDORS}
    compatible = {
        name: Vendor(name=name, is_configured=True, reranking=RerankForm()) for name in further
    }
    return compatible | known


def embedding_dimensions(models_of: Iterable[Vendor]) -> dict[str, int]:
    """Return the dimensions of the embedding models of these vendors, by model."""
    return {
        model: dimensions
        for vendor in models_of
        for model, dimensions in vendor.embedding_dimensions.items()
    }


async def check_key(vendor: Vendor, access: VendorAccess) -> None:
    """Raise `MissingKey` if the vendor rejects the key; log a warning if the request fails."""
    base = vendor.base_url if access.base_url is None else access.base_url
    if not access.api_key or base is None:
        return
    url = f"{base.rstrip('/')}{vendor.models_path}"
    headers = {name: value.format(key=access.api_key) for name, value in vendor.key_headers.items()}
    check_allowed(url)
    # Imported here: it takes a tenth of a second.
    from httpx2 import AsyncClient, HTTPError

    try:
        async with AsyncClient(timeout=LIMIT_SECONDS) as client:
            answer = await client.get(url, headers=headers)
    except (HTTPError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        log.warning("api_key_check_failed", vendor=vendor.name, reason=reason)
        return
    if _refuses(answer):
        raise MissingKey(
            f"{url} rejected the key in {vendor.key_variable} with status {answer.status_code}; "
            f"set a valid key of {vendor.name}"
        )


def parse_models(setting: str, vendors: Mapping[str, Vendor] | None = None) -> list[ModelName]:
    """Return the models of a setting, in order; raises `UnknownProvider`.

    `vendors` defaults to the vendor table.
    """
    known = vendors_by_name() if vendors is None else vendors
    names = [_parse_one(part.strip(), known) for part in setting.split(",")]
    duplicates = {str(name) for name in names if names.count(name) > 1}
    if duplicates:
        raise UnknownProvider(
            f"expected each model once in {setting!r}, found {sorted(duplicates)}"
        )
    return names


def _refuses(answer: "Response") -> bool:
    return answer.status_code == 401 or (answer.status_code == 400 and _INVALID_KEY in answer.text)


def _parse_one(part: str, vendors: Mapping[str, Vendor]) -> ModelName:
    if part in LOCAL_MODELS:
        return ModelName(part, part)
    model, at, provider = part.rpartition("@")
    if not at:
        model = part
        provider = next((vendor.name for vendor in vendors.values() if vendor.answers_to(part)), "")
    if not model or provider not in vendors:
        raise UnknownProvider(
            f"expected a model such as 'gpt-5-mini@openai', 'qwen3:8b@ollama' or 'offline', of one "
            f"of {', '.join(sorted(vendors))}, found {part!r}; to add a server that is compatible "
            'with OpenAI\'s, set COMPATIBLE_SERVERS={"NAME": {"base_url": "http://..."}}'
        )
    return ModelName(model, provider)
