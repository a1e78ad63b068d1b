"""Origins as browsers send them, in what people write."""

import pytest

from gateway.api_keys import origin_in


@pytest.mark.parametrize(
    ("written", "origin"),
    [
        ("https://acme.com", "https://acme.com"),
        ("https://acme.com/", "https://acme.com"),
        ("https://acme.com/shop?x=1#y", "https://acme.com"),
        ("acme.com", "https://acme.com"),
        ("HTTPS://WWW.Acme.com", "https://www.acme.com"),
        ("https://acme.com:443", "https://acme.com"),
        ("http://acme.com:80/", "http://acme.com"),
        ("http://localhost:3000/", "http://localhost:3000"),
        ("https://user:word@acme.com", "https://acme.com"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("ftp://acme.com", None),
        ("https://", None),
        ("https://*.acme.com", None),
        ("https://acme.com:99999", None),
        ("null", "https://null"),
        ("https://a b.com", None),
        ("https://" + "a" * 64 + ".com", None),
    ],
)
def test_what_people_write_is_read_as_the_origin_that_browsers_send(
    written: str, origin: str | None
) -> None:
    assert origin_in(written) == origin
