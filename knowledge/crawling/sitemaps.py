"""Reads sitemaps: lists of pages, and lists of such lists."""

import zlib
from dataclasses import dataclass, field

from knowledge.crawling.errors import FetchError
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.office.zipped_xml import parse_xml

MOST_SITEMAPS = 200
"""Sitemaps of one website that are read; one that lists itself is read once."""
MOST_ADDRESSES = 50_000
"""Addresses of one sitemap that are read: what the standard allows."""
_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Sitemap:
    """The addresses of one sitemap as stated: of pages, and of further sitemaps."""

    pages: list[str] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def read_sitemap(data: bytes, *, most_bytes: int) -> Sitemap:
    """Return the addresses of a sitemap in XML, its gzip form or plain text.

    Raises `FetchError` for anything else, and for more than `most_bytes` unpacked.
    """
    if data.startswith(_GZIP):
        data = _unpack(data, most_bytes)
    if not data.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"<"):
        return Sitemap(pages=_read_lines(data))
    try:
        root = parse_xml(data, "a sitemap")
    except WrongFormatError as error:
        raise FetchError(str(error)) from error
    found = Sitemap()
    kind = root.tag.rpartition("}")[2]
    wanted = {"urlset": found.pages, "sitemapindex": found.sitemaps}.get(kind)
    if wanted is None:
        raise FetchError(f"expected a sitemap, found {kind[:40]!r}")
    for entry in root[:MOST_ADDRESSES]:
        for part in entry:
            if part.tag.rpartition("}")[2] == "loc" and part.text:
                wanted.append(part.text.strip())
    return found


def _read_lines(data: bytes) -> list[str]:
    lines = data.decode("utf-8", "replace").splitlines()[:MOST_ADDRESSES]
    return [line.strip() for line in lines if line.strip().startswith(("http://", "https://"))]


def _unpack(data: bytes, most_bytes: int) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        unpacked = inflater.decompress(data, most_bytes + 1)
    except zlib.error as error:
        raise FetchError(f"expected a sitemap in gzip, found a damaged one: {error}") from error
    if len(unpacked) > most_bytes:
        raise FetchError(f"a sitemap may have {most_bytes} bytes unpacked, this one has more")
    return unpacked
