"""Maps the types of web content to the suffixes by which readers are chosen."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from knowledge.documents.formats import SUFFIXES, is_media

HTML = ".html"
_BY_TYPE: Mapping[str, str] = {
    "text/html": HTML,
    "application/xhtml+xml": HTML,
    "text/markdown": ".md",
    "text/x-markdown": ".md",
    "text/x-rst": ".rst",
    "text/asciidoc": ".adoc",
    "text/csv": ".csv",
    "text/tab-separated-values": ".tsv",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
}
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
"""Types that servers send for what they do not know: there the address decides."""
_OF_ADDRESS = SUFFIXES - {".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".mbox", ".eml"}


def find_suffix(media_type: str, url: str) -> str | None:
    """Return the suffix of the reader of some content, or None if there is no reader."""
    if media_type in _BY_TYPE:
        return _BY_TYPE[media_type]
    stated = PurePosixPath(urlsplit(url).path).suffix.lower()
    if media_type in _VAGUE and stated in _OF_ADDRESS:
        return stated
    return ".txt" if media_type == "text/plain" and not is_media(stated) else None


def may_be_page(url: str) -> bool:
    """Return whether an address may lead to text; pictures, recordings and archives do not."""
    return not is_media(PurePosixPath(urlsplit(url).path).suffix)
