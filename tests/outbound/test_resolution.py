"""A crawl opens no private address, however it is led there."""

import pytest

from outbound.errors import AddressRefusedError, FetchError
from outbound.resolution import GuardedResolver, is_ordinary, is_public

PRIVATE = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1",
    "168.63.129.16", "192.0.0.192", "192.0.0.8", "::127.0.0.1", "::10.0.0.1", "fec0::1",
    "::ffff:168.63.129.16", "64:ff9b::a83f:8110",
)  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_recognised_in_every_form(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_public_addresses_are_recognised(address: str) -> None:
    assert is_public(address)


async def test_a_public_website_leads_to_no_private_address() -> None:
    addresses = {"docs.test": ["93.184.216.34"], "inside.test": ["10.0.0.7"]}
    resolver = GuardedResolver(lambda host, _port: give(addresses[host]))
    await resolver.start_at("docs.test", 443)

    assert await resolver.choose("docs.test", 443) == "93.184.216.34"
    with pytest.raises(
        AddressRefusedError, match=r"inside\.test has the private address 10\.0\.0\.7"
    ):
        await resolver.choose("inside.test", 80)
    addresses["docs.test"] = ["127.0.0.1"]
    with pytest.raises(
        AddressRefusedError, match=r"docs\.test has the private address 127\.0\.0\.1"
    ):
        await resolver.choose("docs.test", 443)


async def test_a_private_website_is_crawled_when_the_crawl_starts_there() -> None:
    resolver = GuardedResolver(
        lambda host, _port: give(["10.0.0.7" if host == "a" else "10.0.0.8"])
    )
    await resolver.start_at("a", 80)

    assert await resolver.choose("a", 80) == "10.0.0.7"
    with pytest.raises(AddressRefusedError):
        await resolver.choose("b", 80)


async def test_credentials_of_a_cloud_machine_are_never_opened() -> None:
    resolver = GuardedResolver(lambda _host, _port: give(["169.254.169.254"]))
    await resolver.start_at("metadata.test", 80)

    assert not is_ordinary("169.254.169.254")
    for address in ("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254"):
        assert not is_ordinary(address)
        assert not is_ordinary(f"::ffff:{address}" if "." in address else address)
    with pytest.raises(AddressRefusedError):
        await resolver.choose("metadata.test", 80)


async def test_an_unknown_host_is_named() -> None:
    with pytest.raises(FetchError, match=r"the host nowhere\.invalid cannot be resolved"):
        await GuardedResolver().start_at("nowhere.invalid", 443)


async def give(addresses: list[str]) -> list[str]:
    return addresses
