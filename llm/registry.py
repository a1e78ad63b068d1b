"""Builds the pipeline for a setting such as `gpt-5-mini@openai,offline`, and owns the clients."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING

from llm.chain import PATIENCE_SECONDS, ChainLink, FallbackChain
from llm.errors import MissingKey, UnknownProvider
from llm.metering import CallBudget
from llm.missing_model import MissingModel
from llm.port import Model, ScoreModel, Usage
from llm.prices import PriceSource
from llm.prompts import Prompts
from llm.quotas import Limiter
from llm.stored_model import CallStore, SharedCache, SpeedStore, StoredModel
from llm.vendors.catalogue import (
    ModelName,
    Vendor,
    VendorAccess,
    embedding_dimensions,
    load_client,
    parse_models,
    vendors_by_name,
)
from llm.vendors.embeddings import VendorEmbedder, choose_size
from llm.vendors.model_transport import (
    EMBEDDING_RETRIES,
    FIRST_TOKEN_SECONDS,
    CircuitBreaker,
    RetryRules,
    Transport,
)
from llm.vendors.vendor_model import VendorModel

if TYPE_CHECKING:
    from llm.vendors.reranking import VendorReranker


@dataclass(frozen=True, slots=True)
class AnswerStores:
    """The stores of a pipeline; see `StoredModel`."""

    calls: CallStore
    cache: SharedCache | None = None
    speeds: SpeedStore | None = None


class Registry:
    """Creates models and embedders from settings; all callers of a model share one client.

    `access` contains keys and base URLs by vendor name. A name that is not in the vendor table is
    an OpenAI-compatible server.
    """

    def __init__(
        self,
        *,
        prompts: Prompts | None = None,
        access: Mapping[str, VendorAccess] = MappingProxyType({}),
        timeout_seconds: float = 30.0,
        first_token_seconds: float = FIRST_TOKEN_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        retries: RetryRules = RetryRules(),  # noqa: B008 - frozen
        limiter: Limiter | None = None,
        budget: CallBudget | None = None,
        scripted: Model | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._vendors = vendors_by_name(access)
        self._prompts = prompts
        self._access = access
        self._timeout_seconds = timeout_seconds
        self._first_token_seconds = first_token_seconds
        self._patience_seconds = patience_seconds
        self._retries = retries
        self._limiter = limiter
        self._budget = budget
        self._clock = clock
        self._local: dict[str, Model | None] = {"offline": MissingModel(), "scripted": scripted}
        self._links: dict[ModelName, ChainLink] = {}
        self._embedders: dict[tuple[ModelName, int | None], VendorEmbedder] = {}
        self._rerankers: dict[ModelName, VendorReranker] = {}

    def model(self, setting: str, stores: AnswerStores | None = None) -> Model:
        """Return the pipeline of a setting, built from the vendor's client outwards.

            StoredModel      reuses stored answers of this hop or of other questions
            FallbackChain    the models of the setting, and when to call the next one
            CircuitBreaker   suspends calls to a failing model
            VendorModel      reserves budget, renders the prompt, reads the answer, repairs it,
                             records the cost
            Transport        quota, time limit, and retries
            ChatClient       the client of the vendor: one request

        Raises `UnknownProvider` and `MissingKey` immediately, before any call.
        """
        names = parse_models(setting, self._vendors)
        chain = FallbackChain(
            [self._find_link(name) for name in names], patience_seconds=self._patience_seconds
        )
        if stores is None:
            return chain
        return StoredModel(
            chain, stores.calls, prompts=self._prompts, cache=stores.cache, speeds=stores.speeds
        )

    def vendor_model(self, name: ModelName) -> VendorModel:
        """Return a single model of a vendor, without a fallback chain.

        Raises `UnknownProvider` and `MissingKey`.
        """
        model = self._find_link(name).model
        if not isinstance(model, VendorModel):
            raise UnknownProvider(f"expected a model of a vendor, found '{name}'")
        return model

    def embedder(self, setting: str, dimensions: int | None = None) -> VendorEmbedder:
        """Return the embedder of a setting such as `text-embedding-3-small@openai`.

        `dimensions` is the length of its vectors, or None for the model's default.
        """
        [name, *_] = parse_models(setting, self._vendors)
        if name.is_local:
            known = sorted(embedding_dimensions(self._vendors.values()))
            raise UnknownProvider(
                f"expected an embedding model such as {' or '.join(known)}, found {setting!r}"
            )
        key = name, dimensions
        if key not in self._embedders:
            vendor, access = self._find_access(name)
            size = choose_size(name.model, dimensions)
            wire = load_client(vendor).make_embeddings(name.model, vendor, access, size.requested)
            transport = Transport(
                str(name), self._timeout_seconds, EMBEDDING_RETRIES, self._limiter
            )
            self._embedders[key] = VendorEmbedder(
                transport=transport,
                wire=wire,
                dimensions=size.dimensions,
                prices=PriceSource(vendor.price_name, access.base_url),
            )
        return self._embedders[key]

    def reranker(self, setting: str, timeout_seconds: float) -> ScoreModel:
        """Return the reranker of a setting such as `rerank-v3.5@cohere`.

        Requests are not retried, because a search waits for them. Raises `UnknownProvider` and
        `MissingKey`.
        """
        [name, *others] = parse_models(setting, self._vendors)
        if others or name.is_local or self._vendors[name.provider].reranking is None:
            known = sorted(
                vendor.name for vendor in self._vendors.values() if vendor.reranking is not None
            )
            raise UnknownProvider(
                f"expected one reranker, MODEL@ and one of {', '.join(known)}, found {setting!r}"
            )
        if name not in self._rerankers:
            # Imported here, because only rerankers need its HTTP client.
            from llm.vendors.reranking import RerankClient, VendorReranker

            vendor, access = self._find_access(name)
            once = RetryRules(attempts=1)
            self._rerankers[name] = VendorReranker(
                transport=Transport(str(name), timeout_seconds, once, self._limiter),
                wire=RerankClient(name.model, vendor, access),
                prices=PriceSource(vendor.price_name, access.base_url),
                breaker=CircuitBreaker(str(name), clock=self._clock),
            )
        return self._rerankers[name]

    async def close(self) -> None:
        """Close the connections to all vendors."""
        for link in self._links.values():
            if isinstance(link.model, VendorModel):
                await link.model.close()
        for embedder in self._embedders.values():
            await embedder.close()
        for reranker in self._rerankers.values():
            await reranker.close()

    def _find_link(self, name: ModelName) -> ChainLink:
        if name not in self._links:
            self._links[name] = (
                ChainLink(self._find_local(name)) if name.is_local else self._make_link(name)
            )
        return self._links[name]

    def _make_link(self, name: ModelName) -> ChainLink:
        vendor, access = self._find_access(name)
        if not vendor.chats:
            raise UnknownProvider(f"'{name}' is a reranker and cannot write answers")
        model = VendorModel(
            transport=Transport(
                str(name),
                self._timeout_seconds,
                self._retries,
                self._limiter,
                self._first_token_seconds,
            ),
            wire=load_client(vendor).make_chat(name.model, vendor, access),
            prompts=self._find_prompts(name),
            prices=PriceSource(vendor.price_name, access.base_url),
            capabilities=vendor.capabilities,
            budget=self._budget,
        )
        return ChainLink(model, CircuitBreaker(str(name), clock=self._clock))

    def _find_local(self, name: ModelName) -> Model:
        model = self._local[name.model]
        if model is None:
            raise UnknownProvider(f"there is no script for the model '{name}'")
        return model

    def _find_prompts(self, name: ModelName) -> Prompts:
        if self._prompts is None:
            raise UnknownProvider(f"there are no prompts for the model '{name}'")
        return self._prompts

    def _find_access(self, name: ModelName) -> tuple[Vendor, VendorAccess]:
        vendor = self._vendors[name.provider]
        access = self._access.get(name.provider, VendorAccess())
        if vendor.needs_key and not access.api_key and access.base_url is None:
            raise MissingKey(f"the model '{name}' requires a key; set {vendor.key_variable}")
        if access.base_url is None and vendor.base_url is None:
            raise MissingKey(
                f"the model '{name}' requires the address of its server; set {vendor.url_variable}"
            )
        return vendor, access


def providers_of(settings: Iterable[str], vendors: Mapping[str, Vendor]) -> set[str]:
    """Return the names of the vendors of the models in these settings."""
    names = {name for setting in settings for name in parse_models(setting, vendors)}
    return {name.provider for name in names if not name.is_local}


def estimate_call_usd(
    setting: str, usage: Usage, access: Mapping[str, VendorAccess]
) -> Decimal | None:
    """Return the price of a call to the first model in a setting, or None if it is unknown.

    If a base URL is configured, the prices of that server apply.
    """
    vendors = vendors_by_name(access)
    [name, *_] = parse_models(setting, vendors)
    if name.is_local:
        return None
    vendor = vendors[name.provider]
    base_url = access.get(name.provider, VendorAccess()).base_url
    return PriceSource(vendor.price_name, base_url).cost_usd(name.model, usage)
