"""Origins as browsers send them, in what people write, and keys that another release stored."""

import json

import pytest
from fakeredis import FakeAsyncRedis

from gateway.api_keys import StoredKeys, make_key, origin_in
from memory.key_names import api_keys_key


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
def test_a_typed_origin_is_read_as_the_origin_that_browsers_send(
    written: str, origin: str | None
) -> None:
    assert origin_in(written) == origin


async def test_a_key_with_a_restriction_of_a_newer_release_opens_nothing_and_hides_no_other() -> (
    None
):
    client = FakeAsyncRedis()
    keys = StoredKeys(client)
    usual, restricted = (make_key("secret", tenant="acme")[0] for _ in range(2))
    await keys.put(usual)
    stored = json.loads(restricted.encode()) | {"only_from": ["10.0.0.0/8"]}
    await client.hset(api_keys_key(), restricted.id, json.dumps(stored))

    assert await keys.get(restricted.id) is None
    assert await keys.all() == [usual]
    await client.aclose()
