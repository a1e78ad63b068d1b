from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.crawling.crawl_values import CrawlScope, check_start
from outbound.addresses import normalise
from outbound.errors import AddressRefusedError

BASE = "https://docs.example.com/guide/setup?x=1#here"


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("", "https://docs.example.com/guide/setup?x=1"),
        ("next", "https://docs.example.com/guide/next"),
        ("#part", "https://docs.example.com/guide/setup?x=1"),
        ("/a/../b", "https://docs.example.com/b"),
        ("https://docs.example.com/guide/%2e%2E/admin", "https://docs.example.com/admin"),
        ("HTTPS://Docs.Example.COM:443/A", "https://docs.example.com/A"),
        ("http://b\u00fccher.example/", "http://xn--bcher-kva.example/"),
        ("?utm_source=a&q=1", "https://docs.example.com/guide/setup?q=1"),
        ("it's", "https://docs.example.com/guide/it%27s"),
        ("//[::1]:8000/x", "https://[::1]:8000/x"),
        ("mailto:a@example.com", None),
        ("javascript:alert(1)", None),
        ("https://user:secret@docs.example.com/", None),
        ("https://docs.example.com:port/", None),
        ("x" * 3000, None),
    ],
)
def test_an_address_has_one_form(link: str, expected: str | None) -> None:
    assert normalise(link, BASE) == expected


@given(st.text(max_size=80))
def test_a_normal_form_is_its_own_normal_form(link: str) -> None:
    once = normalise(link, BASE)

    assert once is None or normalise(once) == once


@pytest.mark.parametrize(
    ("start", "inside", "outside"),
    [
        ("https://a.test/docs/", ["https://a.test/docs/x", "https://a.test/docs"],
         ["https://a.test/", "https://a.test/docsearch", "https://b.test/docs/x"]),
        ("https://a.test/docs", ["https://a.test/docs/x"], ["https://a.test/docs2"]),
        ("https://a.test/docs/index.html", ["https://a.test/docs/b.html"], ["https://a.test/b"]),
        ("http://a.test/", ["https://a.test/x"], ["http://a.test:8080/", "ftp://a.test/"]),
        ("https://a.test/", ["https://a.test/x?y=z"], ["http://a.test/x", "https://x.a.test/"]),
    ],
)  # fmt: skip
def test_a_scope_is_the_host_and_the_path_of_its_start(
    start: str, inside: list[str], outside: list[str]
) -> None:
    scope = CrawlScope.of(start)

    assert [item for item in inside if not scope.contains(item)] == []
    assert [item for item in outside if scope.contains(item)] == []


def test_an_address_becomes_a_path_below_its_start() -> None:
    scope = CrawlScope.of("https://a.test/docs/")

    assert scope.name_file("https://a.test/docs/") == PurePosixPath("index")
    assert scope.name_file("https://a.test/docs/a/b%2Fc") == PurePosixPath("a/b_c")
    assert scope.name_file("https://a.test/docs/x?page=2") == PurePosixPath("x?page=2")


def test_a_start_that_is_no_web_address_is_refused() -> None:
    with pytest.raises(AddressRefusedError, match=r"expected a web address such as .* 'http:///'"):
        check_start("http:///")
