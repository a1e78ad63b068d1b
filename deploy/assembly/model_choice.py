"""Interprets the model settings: the vendors, the models that answer, and the inputs that they
accept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from config.model_settings import ModelLimit
from config.settings import Settings
from llm.prices import find_context_window
from llm.vendors.catalogue import VENDORS, ModelName, VendorAccess, parse_models, vendors_by_name

USUAL_CONTEXT = 6000
_SMALL_CONTEXT = 4000
_LARGE_WINDOW = 16_000
"""The smallest context window, in tokens, for which the usual context is used."""


def vendor_access(settings: Settings) -> dict[str, VendorAccess]:
    """Return the key and the URL of every vendor and named server."""
    access = {
        vendor.name: VendorAccess(*settings.access_of_vendor(vendor.name)) for vendor in VENDORS
    }
    for name in settings.compatible_servers:
        access[name] = VendorAccess(*settings.access_of_server(name))
    return access


def list_answering_models(
    access: Mapping[str, VendorAccess], model_of: Callable[[str], str]
) -> list[ModelName]:
    """Return the models that write or judge answers, except those that do not need a vendor."""
    vendors = vendors_by_name(access)
    named = (
        name
        for task in ("respond", "judge")
        for name in parse_models(model_of(task), vendors)
        if not name.is_local
    )
    return list(dict.fromkeys(named))


def find_context_tokens(settings: Settings) -> int:
    """Return the size of an answer's context, as configured or based on the smallest window of its
    models.
    """
    if settings.max_context_length is not None:
        return settings.max_context_length
    if not settings.uses_model:
        return _SMALL_CONTEXT
    access = vendor_access(settings)
    windows = _list_windows(
        list_answering_models(access, settings.model_of), access, settings.model_limits
    )
    smallest = min(windows, default=_LARGE_WINDOW)
    # A repeated search may double the context; the rest is for the instructions and the answer.
    return min(_SMALL_CONTEXT, smallest // 3) if smallest < _LARGE_WINDOW else USUAL_CONTEXT


def _list_windows(
    models: Iterable[ModelName],
    access: Mapping[str, VendorAccess],
    limits: Mapping[str, ModelLimit],
) -> Iterator[int]:
    """Yield the known context windows of models."""
    vendors = vendors_by_name(access)
    for name in models:
        limit = limits.get(str(name))
        window = None if limit is None else limit.context_window
        if window is None and access[name.provider].base_url is None:
            window = find_context_window(vendors[name.provider].price_name, name.model)
        if window is not None:
            yield window
