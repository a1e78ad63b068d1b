"""Opens the list of sources in the data folder."""

from typing import TYPE_CHECKING

from config.settings import Settings

if TYPE_CHECKING:
    from knowledge.source_registry import SourceRegistry


def open_source_registry(settings: Settings) -> "SourceRegistry":
    """Return the list of the sources of an assistant."""
    # Imported here: most commands read no sources.
    from knowledge.source_registry import SourceRegistry

    return SourceRegistry(settings.refdesk_data, settings.tenant, settings.assistant)
