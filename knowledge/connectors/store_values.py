"""The URL schemes of document stores, and the result of copying one. This module does not import
document readers, because every command imports it.
"""

from collections.abc import Mapping

from pydantic import BaseModel

SCHEMES: Mapping[str, str] = {
    "s3": "s3", "gs": "gcs", "az": "azure", "sftp": "sftp", "webdav": "webdav", "webdavs": "webdav",
}  # fmt: skip
"""The URL schemes, with the extra that each of them requires."""


SERVICES = ("confluence", "zendesk")
"""The URL schemes of services with their own API, which are read by a connector."""


class StoreOutcome(BaseModel, frozen=True, extra="forbid"):
    """The result of copying a store; `is_partial` is true if there may be further files."""

    fetched: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    is_partial: bool = False


def is_store(place: str) -> bool:
    """Return whether a URL refers to a store or a service, which are copied."""
    scheme, mark, _ = place.partition("://")
    return bool(mark) and scheme.lower() in (*SCHEMES, *SERVICES)


def is_service(place: str) -> bool:
    """Return whether a URL refers to a service, such as `confluence://host/SPACE`."""
    return place.partition("://")[0].lower() in SERVICES
