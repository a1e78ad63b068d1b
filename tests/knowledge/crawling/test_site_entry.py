import gzip

import pytest

from knowledge.crawling.site_entry import read_sitemap
from outbound.errors import FetchError

SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
ENTRY = "<url><loc> https://a.test/x </loc></url>"
PAGES = f'<urlset xmlns="{SPACE}">{ENTRY}</urlset>'.encode()
BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa">]><urlset><url><loc>&a;&a;</loc></url></urlset>'


@pytest.mark.parametrize("data", [PAGES, gzip.compress(PAGES), b"https://a.test/x\nno address\n"])
def test_a_sitemap_is_read_in_each_of_its_forms(data: bytes) -> None:
    assert read_sitemap(data, most_bytes=10_000).pages == ["https://a.test/x"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (BOMB, "a sitemap"),
        (b"<html></html>", "expected a sitemap, found 'html'"),
        (b"<urlset>", "a sitemap"),
        (gzip.compress(b"\0" * 1_000_000), "a sitemap can have at most 10000 bytes unpacked"),
        (b"\x1f\x8bdamaged", "the gzip file of the sitemap is damaged"),
    ],
)
def test_an_invalid_sitemap_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(FetchError, match=reason):
        read_sitemap(data, most_bytes=10_000)
