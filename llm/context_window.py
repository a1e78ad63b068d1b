"""How much a model reads at once, by the installed list of models; nothing is fetched."""

from functools import lru_cache

OFFLINE = "offline"


@lru_cache(maxsize=64)
def find_context_window(name: str) -> int | None:
    """Return the tokens that every model of a chain can read; None where one of them is unknown.

    `name` is that of a model or a chain, as in `llm.port.Model`.
    """
    models = [one for one in name.split(",") if one and one != OFFLINE]
    windows = [_find_one(one) for one in models]
    known = [one for one in windows if one is not None]
    return min(known) if known and len(known) == len(windows) else None


def _find_one(name: str) -> int | None:
    model, _, vendor = name.partition("@")
    # A quarter of a second and 28 MiB, for those who ask a vendor only.
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, vendor, None)
    except LookupError:
        return None
    return found.context_window
