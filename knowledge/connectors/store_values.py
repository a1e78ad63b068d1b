"""The schemes of stores of documents, and the result of copying one. This module imports no readers
of documents, because every command imports it.
"""

from collections.abc import Mapping

from pydantic import BaseModel

SCHEMES: Mapping[str, str] = {
    "s3": "s3", "gs": "gcs", "az": "azure", "sftp": "sftp", "webdav": "webdav", "webdavs": "webdav",
}  # fmt: skip
"""The schemes of addresses, with the extra that each of them needs."""


SERVICES = ("confluence", "zendesk")
"""The schemes of services with an interface of their own, which a connector asks."""


class StoreOutcome(BaseModel, frozen=True, extra="forbid"):
    """The result of copying a store; `is_partial`: there may be further files."""

    fetched: int = 0
    failures: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    is_partial: bool = False


def is_store(place: str) -> bool:
    """Return whether an address is that of a store or a service, which are copied."""
    scheme, mark, _ = place.partition("://")
    return bool(mark) and scheme.lower() in (*SCHEMES, *SERVICES)


def is_service(place: str) -> bool:
    """Return whether an address is that of a service, such as `confluence://host/SPACE`."""
    return place.partition("://")[0].lower() in SERVICES
