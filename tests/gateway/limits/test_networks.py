"""Who counts as one visitor, and what a process remembers of those who guess."""

from collections.abc import Sequence

import pytest

from gateway.api_keys import make_key
from gateway.http.visitors import FailureLimiter, Visitors, networks_of
from memory.http_state import Demand, RedisRates, Shortage


class UsedUp(RedisRates):
    """Limits that are all used up."""

    def __init__(self) -> None: ...

    async def admit(
        self, owner: str, demands: Sequence[Demand], *, once: str = ""
    ) -> Shortage | None:
        return Shortage(demands[0], "minute", 60.0)


@pytest.mark.parametrize(
    ("address", "network", "site"),
    [
        ("203.0.113.9", "203.0.113.9", ""),
        ("::ffff:203.0.113.9", "203.0.113.9", ""),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64", "2001:db8:1::/48"),
        ("fe80::1%eth0", "fe80::/64", "fe80::/48"),
        ("", "unknown", ""),
        ("unix:", "unknown", ""),
        ("203.0.113.9, 10.0.0.1", "unknown", ""),
    ],
)
def test_a_visitor_is_a_network(address: str, network: str, site: str) -> None:
    assert networks_of(address) == (network, site)


def test_hashes_of_two_deployments_have_nothing_in_common() -> None:
    address = "2001:db8:1:2::3"
    one, same, other = (Visitors(secret).of(address) for secret in (b"one", b"one", b"other"))

    assert one == same
    assert {one.id, one.site}.isdisjoint({other.id, other.site})


@pytest.mark.parametrize(
    ("of_key", "visitor", "site"), [(None, 500, 2000), (8, 2, 4), (1, 1, 1), (100_000, 500, 2000)]
)
def test_a_visitor_may_use_a_share_of_a_key_and_a_site_twice_that(
    of_key: int | None, visitor: int, site: int
) -> None:
    key, _ = make_key(
        "public", tenant="acme", origins=("https://a.test",), questions_per_day=of_key
    )
    visitors = Visitors(b"secret")

    demands = visitors.questions(visitors.of("2001:db8::1"), key)

    assert [(demand.of, demand.per_day) for demand in demands] == [
        ("visitor", visitor),
        ("site", site),
    ]


async def test_a_process_remembers_a_bounded_number_of_who_guesses() -> None:
    visitors = Visitors(b"secret")
    failures = FailureLimiter(UsedUp(), visitors, kept=2)
    guessers = [visitors.of(f"203.0.113.{number}") for number in range(4)]
    for guesser in guessers:
        await failures.count_failure(guesser, "guess")

    blocked = [failures.find_block(guesser, "guess") is not None for guesser in guessers]

    assert blocked == [False, False, True, True]


async def test_a_credential_that_was_good_is_looked_at_until_it_fails() -> None:
    visitors = Visitors(b"secret")
    failures, visitor = FailureLimiter(UsedUp(), visitors), visitors.of("203.0.113.1")
    failures.trust("own")
    await failures.count_failure(visitor, "guess")

    assert failures.find_block(visitor, "own") is None
    assert failures.find_block(visitor, "guess") is not None
    await failures.count_failure(visitor, "own")
    assert failures.find_block(visitor, "own") is not None
