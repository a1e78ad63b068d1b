"""Finds the context window of a model: from its server, else from the price list.

A server of one's own decides its window when it starts, whatever the model could read. Ollama reads
4,096 tokens unless it is told otherwise, and drops the rest of a prompt without an error.

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
"""For all requests to one server: workers wait for them when they start."""
OLLAMA_DEFAULT = 4096
"""Tokens; of a machine with less than 24 GiB of video memory (docs.ollama.com/context-length)."""
MOST_CHARACTERS = 4_000_000
"""A longer response is not read: it is no description of models."""

_SHOWN = frozenset({"details", "model_info", "modelfile", "parameters"})
"""The fields by which Ollama is recognised, because other servers may answer at any path."""

Origin = Literal["server", "server_default", "price_list"]


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The number of tokens that prompt and answer may have together, and who states it."""

    tokens: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Server:
    client: AsyncClient
    root: str
    model: str

    async def read(self, path: str, question: Mapping[str, str] | None = None) -> Any:
        """Return what the server says at a path, or None where it says nothing that is JSON."""
        with suppress(HTTPError, ValueError):
            address = f"{self.root}{path}"
            said = await (
                self.client.get(address)
                if question is None
                else self.client.post(address, json=question)
            )
            if said.status_code == 200 and len(said.content) <= MOST_CHARACTERS:
                return said.json()
        return None


async def _ask_ollama(server: _Server) -> ContextWindow | None:
    loaded = _find_row(await server.read("/api/ps"), "models", server.model)
    if found := _window(pick(loaded, "context_length")):
        return found
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
    said = await server.read("/props")
    return _window(pick(said, "default_generation_settings", "n_ctx"))


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
    """Return the context window of a model; None if it is unknown. Raises nothing."""
    base = vendor.base_url if access.base_url is None else access.base_url
    is_own_server = vendor.is_local or vendor.is_configured or access.base_url is not None
    if base is not None and is_own_server:
        found = await _ask_server(model, vendor.name, base, access)
        if found is not None:
            return found
    return None if vendor.is_local else _look_up(model, vendor.price_name)


async def list_models(vendor: Vendor, access: VendorAccess) -> list[str]:
    """Return the models that a server of one's own names; none if it does not answer."""
    base = vendor.base_url if access.base_url is None else access.base_url
    if base is None:
        return []
    check_allowed(base)
    root = base.rstrip("/").removesuffix("/v1")
    async with AsyncClient(timeout=LIMIT_SECONDS) as client:
        listed = await _Server(client, root, "").read("/v1/models")
    return [str(row["id"]) for row in pick_rows(listed, "data") if "id" in row]


def _look_up(model: str, price_name: str) -> ContextWindow | None:
    # A quarter of a second, for those who ask only.
    import genai_prices

    if not price_name:
        return None
    try:
        found = genai_prices.calc_price(genai_prices.Usage(), model, provider_id=price_name)
    except LookupError:
        return None
    tokens = found.model.context_window
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
                found = await _PROBES[kind](server)
                if found is not None:
                    return found
    return None


def _find_row(said: object, rows: str, model: str) -> object:
    """Return the description of a model in a list of them, or None."""
    found = (row for row in pick_rows(said, rows) if model in map(row.get, ("id", "name", "model")))
    return next(found, None)


def _window(tokens: object) -> ContextWindow | None:
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens <= 0:
        return None
    return ContextWindow(tokens, "server")
