"""Costs and context windows from the installed price list; no network access is needed."""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from llm.port import OFFLINE, Usage


@dataclass(frozen=True, slots=True)
class PriceSource:
    """The source of the applicable prices: the vendor, or the server at `base_url` if it is
    listed.
    """

    vendor: str
    base_url: str | None = None

    def cost_usd(self, model: str, usage: Usage) -> Decimal | None:
        """Return the price of a call to `model`, or None if it is unknown."""
        return cost_usd(self.vendor, model, usage, base_url=self.base_url)


def cost_usd(provider: str, model: str, usage: Usage, *, base_url: str | None) -> Decimal | None:
    """Return the price of a call in US dollars. If it is unknown, return None, never 0.

    `base_url` is the URL of a compatible server, whose prices differ from the vendor's.
    """
    if not _is_priced(provider, model, base_url):
        return None
    return _price(provider, model, usage, base_url)


@lru_cache(maxsize=64)
def find_smallest_window(name: str) -> int | None:
    """Return the smallest context window in a chain, in tokens, or None if any is unknown.

    `name` is the name of a model or a chain, as in `llm.port.Model`.
    """
    models = [part.partition("@") for part in name.split(",") if part and part != OFFLINE]
    windows = [find_context_window(vendor, model) for model, _, vendor in models]
    known = [window for window in windows if window is not None]
    return min(known) if known and len(known) == len(windows) else None


def find_context_window(provider: str, model: str) -> int | None:
    """Return the context window of a model in tokens, or None if it is unknown."""
    if not provider:
        return None
    # Imported here: it takes a quarter of a second and 28 MiB.
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, listed = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return listed.context_window


@lru_cache(maxsize=256)
def _is_priced(provider: str, model: str, base_url: str | None) -> bool:
    try:
        _price(provider, model, Usage(), base_url)
    except LookupError:
        return False
    return True


@lru_cache(maxsize=1024)
def _price(provider: str, model: str, usage: Usage, base_url: str | None) -> Decimal:
    # Imported here: it takes a quarter of a second and 28 MiB.
    import genai_prices

    tokens = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    if base_url is not None:
        return genai_prices.calc_price(tokens, model, provider_api_url=base_url).total_price
    return genai_prices.calc_price(tokens, model, provider_id=provider).total_price
