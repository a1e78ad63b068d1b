"""The cost of a call, and the context window of a model, from the installed price list; nothing is
fetched.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from llm.port import OFFLINE, Usage


@dataclass(frozen=True, slots=True)
class PriceSource:
    """Whose prices hold: a vendor's, or those of the server at `base_url` where they are known."""

    vendor: str
    base_url: str | None = None

    def cost_usd(self, model: str, usage: Usage) -> Decimal | None:
        """Return the price of a call of `model`; None where it is unknown."""
        return cost_usd(self.vendor, model, usage, base_url=self.base_url)


def cost_usd(provider: str, model: str, usage: Usage, *, base_url: str | None) -> Decimal | None:
    """Return the price of a call in US dollars; None, never 0, if it is unknown.

    `base_url` is that of a compatible server, whose prices are not those of the vendor.
    """
    if not _is_priced(provider, model, base_url):
        return None
    return _price(provider, model, usage, base_url)


@lru_cache(maxsize=64)
def find_smallest_window(name: str) -> int | None:
    """Return the tokens that every model of a chain can read; None where one of them is unknown.

    `name` is that of a model or a chain, as in `llm.port.Model`.
    """
    models = [one.partition("@") for one in name.split(",") if one and one != OFFLINE]
    windows = [find_context_window(vendor, model) for model, _, vendor in models]
    known = [window for window in windows if window is not None]
    return min(known) if known and len(known) == len(windows) else None


def find_context_window(provider: str, model: str) -> int | None:
    """Return the context window of a model in tokens; None if it is unknown."""
    if not provider:
        return None
    # A quarter of a second and 28 MiB, for those who ask a vendor only.
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None
    return found.context_window


@lru_cache(maxsize=256)
def _is_priced(provider: str, model: str, base_url: str | None) -> bool:
    try:
        _price(provider, model, Usage(), base_url)
    except LookupError:
        return False
    return True


@lru_cache(maxsize=1024)
def _price(provider: str, model: str, usage: Usage, base_url: str | None) -> Decimal:
    # A quarter of a second and 28 MiB, for those who pay only.
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
