"""Turns a setting such as `gpt-5-mini@openai,offline` into somebody who can be asked."""

import re
from dataclasses import dataclass, field

from llm.chain import Chain
from llm.errors import MissingKey, UnknownProvider
from llm.offline.model import OfflineModel
from llm.port import Model, VectorModel
from llm.prompts import Prompts
from llm.quotas import Limiter
from llm.vendors.embeddings import VendorEmbedder, dimensions_of
from llm.vendors.model_caller import ModelCaller
from llm.vendors.transport_retries import Retrying
from llm.vendors.vendor_model import VendorModel
from llm.vendors.wire import EmbeddingWire, Wire

PROVIDERS = ("openai", "google")
BARE_NAMES = (
    (re.compile(r"(gpt|chatgpt|o\d|text-embedding-)"), "openai"),
    (re.compile(r"gemini"), "google"),
)
"""How the provider of a name without one is told."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """One model of a setting; `offline` and `scripted` are their own providers."""

    model: str
    provider: str

    def __str__(self) -> str:
        return self.model if self.model == self.provider else f"{self.model}@{self.provider}"


@dataclass(frozen=True, slots=True)
class Vendor:
    """How a vendor is reached; an `openai` with a base URL is any compatible server.

    `json_object` is for servers that cannot be given a JSON schema: it is told in the prompt.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    json_object: bool = False


def parse(setting: str) -> tuple[ModelName, ...]:
    """Return the models of a setting, in order; raises `UnknownProvider`."""
    names = tuple(_parse_one(part.strip()) for part in setting.split(","))
    doubled = {str(name) for name in names if names.count(name) > 1}
    if doubled:
        raise UnknownProvider(f"expected each model once in {setting!r}, found {sorted(doubled)}")
    return names


class Registry:
    """Makes models and embedders of settings, each vendor's client once per model."""

    def __init__(
        self,
        *,
        prompts: Prompts | None = None,
        openai: Vendor = Vendor(),
        google: Vendor = Vendor(),
        timeout_seconds: float = 30.0,
        retrying: Retrying = Retrying(),  # noqa: B008 - frozen
        limiter: Limiter | None = None,
        scripted: Model | None = None,
    ) -> None:
        self._prompts = prompts
        self._vendors = {"openai": openai, "google": google}
        self._timeout_seconds = timeout_seconds
        self._retrying = retrying
        self._limiter = limiter
        self._scripted = scripted
        self._models: dict[ModelName, Model] = {}
        self._embedders: dict[ModelName, VendorEmbedder] = {}

    def model(self, setting: str) -> Model:
        """Return the model, or the fallback chain, of a setting.

        Raises `UnknownProvider` and `MissingKey`: at start, before anything is asked.
        """
        models = [self._model(name) for name in parse(setting)]
        return models[0] if len(models) == 1 else Chain(models)

    def embedder(self, setting: str) -> VectorModel:
        """Return the embedder of a setting such as `text-embedding-3-small@openai`."""
        name = _parse_one(setting.strip())
        if name.provider not in PROVIDERS:
            raise UnknownProvider(
                f"expected an embedding model of {' or '.join(PROVIDERS)}, found {setting!r}"
            )
        if name not in self._embedders:
            self._embedders[name] = self._make_embedder(name, self._vendor(name))
        return self._embedders[name]

    async def close(self) -> None:
        """Close the connections of every vendor."""
        for model in self._models.values():
            if isinstance(model, VendorModel):
                await model.close()
        for embedder in self._embedders.values():
            await embedder.close()

    def _model(self, name: ModelName) -> Model:
        if name not in self._models:
            self._models[name] = self._make_model(name)
        return self._models[name]

    def _make_model(self, name: ModelName) -> Model:
        if name.provider == "offline":
            return OfflineModel()
        if name.provider == "scripted":
            if self._scripted is None:
                raise UnknownProvider("expected a script for the model 'scripted', found none")
            return self._scripted
        vendor = self._vendor(name)
        if self._prompts is None:
            raise UnknownProvider(f"expected prompts for the model '{name}', found none")
        return VendorModel(
            caller=self._caller(name),
            wire=_chat(name, vendor),
            prompts=self._prompts,
            base_url=vendor.base_url,
            json_object=vendor.json_object,
        )

    def _make_embedder(self, name: ModelName, vendor: Vendor) -> VendorEmbedder:
        return VendorEmbedder(
            caller=self._caller(name),
            dimensions=dimensions_of(name.model),
            wire=_embeddings(name, vendor),
            base_url=vendor.base_url,
        )

    def _caller(self, name: ModelName) -> ModelCaller:
        return ModelCaller(str(name), self._timeout_seconds, self._retrying, self._limiter)

    def _vendor(self, name: ModelName) -> Vendor:
        vendor = self._vendors[name.provider]
        if not vendor.api_key and vendor.base_url is None:
            variable = f"{name.provider.upper()}_API_KEY"
            raise MissingKey(f"expected a key for '{name}' in {variable}, found none")
        return vendor


def _parse_one(part: str) -> ModelName:
    if part in {"offline", "scripted"}:
        return ModelName(part, part)
    model, at, provider = part.rpartition("@")
    if not at:
        model, provider = part, _provider_of(part)
    if not model or provider not in PROVIDERS:
        raise UnknownProvider(
            f"expected a model such as 'gpt-5-mini@openai', 'gemini-2.5-flash@google' or "
            f"'offline', found {part!r}"
        )
    return ModelName(model, provider)


def _provider_of(bare: str) -> str:
    return next((provider for form, provider in BARE_NAMES if form.match(bare)), "")


# The vendors' clients take half a second to import: only who asks them waits for it.


def _chat(name: ModelName, vendor: Vendor) -> Wire:
    key = vendor.api_key if vendor.api_key is not None else ""
    if name.provider == "openai":
        from llm.vendors.openai import OpenAIChat

        return OpenAIChat(name.model, key, vendor.base_url)
    from llm.vendors.google import GoogleChat

    return GoogleChat(name.model, key, vendor.base_url)


def _embeddings(name: ModelName, vendor: Vendor) -> EmbeddingWire:
    key = vendor.api_key if vendor.api_key is not None else ""
    if name.provider == "openai":
        from llm.vendors.openai import OpenAIEmbeddings

        return OpenAIEmbeddings(name.model, key, vendor.base_url)
    from llm.vendors.google import GoogleEmbeddings

    return GoogleEmbeddings(name.model, key, vendor.base_url)
