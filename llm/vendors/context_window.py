"""Determines the context window of a model from its server or, if that fails, from the price list.

A self-hosted server sets its context window at startup, independently of what the model supports.
Ollama uses 4,096 tokens by default, and drops the rest of a prompt without an error.

| server    | request            | where the window is                                         |
|-----------|--------------------|-------------------------------------------------------------|
| Ollama    | GET /api/ps        | `models[].context_length` of a loaded model                 |
|           | POST /api/show     | the line `num_ctx` of `parameters`; without one the default |
| llama.cpp | GET /props         | `default_generation_settings.n_ctx`, of one slot            |
| vLLM      | GET /v1/models     | `data[].max_model_len`                                      |
| LM Studio | GET /api/v0/models | `data[].loaded_context_length`                              |
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from httpx2 import AsyncClient, HTTPError

from llm.vendors.catalogue import Vendor, VendorAccess
from llm.vendors.guard import pick, pick_rows
from llm.vendors.wire import check_allowed

LIMIT_SECONDS = 3.0
"""Total time limit for all requests to one server, because workers wait for them at startup."""
OLLAMA_DEFAULT = 4096
"""The default in tokens for machines with less than 24 GiB of video memory
(docs.ollama.com/context-length).
"""
MOST_CHARACTERS = 4_000_000
"""Longer responses are ignored, because they cannot be model descriptions."""

_SHOWN = frozenset({"details", "model_info", "modelfile", "parameters"})
"""The fields by which Ollama is recognized, because other servers may respond at any path."""

Origin = Literal["server", "server_default", "price_list"]


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The maximum number of tokens of prompt and answer together, and the source of this number."""

    tokens: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Server:
    client: AsyncClient
    root: str
    model: str

    async def read(self, path: str, body: Mapping[str, str] | None = None) -> Any:
        """Return the JSON that the server returns for a path, or None."""
        with suppress(HTTPError, ValueError):
            address = f"{self.root}{path}"
            response = await (
                self.client.get(address) if body is None else self.client.post(address, json=body)
            )
            if response.status_code == 200 and len(response.content) <= MOST_CHARACTERS:
                return response.json()
        return None


async def _ask_ollama(server: _Server) -> ContextWindow | None:
    loaded = _find_row(await server.read("/api/ps"), "models", server.model)
    if window := _window(pick(loaded, "context_length")):
        return window
    shown = await server.read("/api/show", {"model": server.model})
    if not isinstance(shown, dict) or _SHOWN.isdisjoint(shown):
        return None
    parameters = shown.get("parameters")
    for line in parameters.splitlines() if isinstance(parameters, str) else ():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdecimal():
            return _window(int(value))
    return ContextWindow(OLLAMA_DEFAULT, "server_default")


async def _ask_llamacpp(server: _Server) -> ContextWindow | None:
    properties = await server.read("/props")
    return _window(pick(properties, "default_generation_settings", "n_ctx"))


async def _ask_vllm(server: _Server) -> ContextWindow | None:
    row = _find_row(await server.read("/v1/models"), "data", server.model)
    return _window(pick(row, "max_model_len"))


async def _ask_lmstudio(server: _Server) -> ContextWindow | None:
    row = _find_row(await server.read("/api/v0/models"), "data", server.model)
    return _window(pick(row, "loaded_context_length"))


_PROBES: Mapping[str, Callable[[_Server], Awaitable[ContextWindow | None]]] = {
    "vllm": _ask_vllm,
    "llamacpp": _ask_llamacpp,
    "lmstudio": _ask_lmstudio,
    "ollama": _ask_ollama,
}


async def find_window(model: str, vendor: Vendor, access: VendorAccess) -> ContextWindow | None:
    """Return the context window of a model, or None if unknown. Errors of its server are
    ignored.
    """
    base = vendor.base_url if access.base_url is None else access.base_url
    is_own_server = vendor.is_local or vendor.is_configured or access.base_url is not None
    if base is not None and is_own_server:
        window = await _ask_server(model, vendor.name, base, access)
        if window is not None:
            return window
    return None if vendor.is_local else _look_up(model, vendor.price_name)


async def list_models(vendor: Vendor, access: VendorAccess) -> list[str]:
    """Return the models that a self-hosted server lists, or none if it does not respond."""
    base = vendor.base_url if access.base_url is None else access.base_url
    if base is None:
        return []
    check_allowed(base)
    root = base.rstrip("/").removesuffix("/v1")
    async with AsyncClient(timeout=LIMIT_SECONDS) as client:
        listed = await _Server(client, root, "").read("/v1/models")
    return [str(row["id"]) for row in pick_rows(listed, "data") if "id" in row]


def _look_up(model: str, price_name: str) -> ContextWindow | None:
    # Imported here: it takes a quarter of a second.
    import genai_prices

    if not price_name:
        return None
    try:
        listed = genai_prices.calc_price(genai_prices.Usage(), model, provider_id=price_name)
    except LookupError:
        return None
    tokens = listed.model.context_window
    return None if tokens is None else ContextWindow(tokens, "price_list")


async def _ask_server(
    model: str, name: str, base: str, access: VendorAccess
) -> ContextWindow | None:
    check_allowed(base)
    headers = {"Authorization": f"Bearer {access.api_key}"} if access.api_key else {}
    root = base.rstrip("/").removesuffix("/v1")
    with suppress(TimeoutError):
        async with (
            asyncio.timeout(LIMIT_SECONDS),
            AsyncClient(timeout=LIMIT_SECONDS, headers=headers) as client,
        ):
            server = _Server(client, root, model)
            for kind in (name,) if name in _PROBES else _PROBES:
                window = await _PROBES[kind](server)
                if window is not None:
                    return window
    return None


def _find_row(listing: object, rows: str, model: str) -> object:
    """Return the entry of a model in a list, or None."""
    matches = (
        row for row in pick_rows(listing, rows) if model in map(row.get, ("id", "name", "model"))
    )
    return next(matches, None)


def _window(tokens: object) -> ContextWindow | None:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens <= 0:
        return None
    return ContextWindow(tokens, "server")
