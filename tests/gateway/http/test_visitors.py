"""What one visitor can use up, and what an attacker with the public key of a website cannot."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest

from broker.connecting import connect
from gateway.limits.visitors import SITE_FACTOR, VisitorLimits
from tests.gateway.http.rig import WEBSITE, Booth, Visitor, eventually, open_booth
from tests.worker.cast import House

PROXY = "127.0.0.1"
ATTACKER, NEIGHBOUR = "203.0.113.66", "203.0.113.67"
QUESTION = {"text": "How do I add a rule?"}
FEW = VisitorLimits(
    requests_per_minute=20,
    questions_per_minute=4,
    questions_per_day=10,
    openings_per_minute=5,
    openings_per_day=50,
    failures_per_minute=6,
)


@asynccontextmanager
async def shop(house: House, limits: VisitorLimits = FEW) -> AsyncIterator[Booth]:
    """Open a door behind a proxy, so that addresses are what it says."""
    door = open_booth(house, trusted_proxies=(PROXY,), limits=limits)
    async with house.open(), door as booth:
        yield booth


async def key_of_shop(booth: Booth, **fields: object) -> str:
    return await booth.public(**{"requests_per_minute": 40, "questions_per_day": 40, **fields})


def at(booth: Booth, token: str, address: str, **headers: str) -> httpx.AsyncClient:
    """Somebody at an address who says to come from the website."""
    return booth.client(token, **{"Origin": WEBSITE, "X-Forwarded-For": address, **headers})


async def come(booth: Booth, token: str, address: str) -> Visitor:
    """A visitor at an address who opened a conversation."""
    client = at(booth, token, address)
    opened = await client.post("/v1/conversations")
    assert opened.status_code == 201, opened.text
    client.headers["X-Conversation-Token"] = opened.json()["token"]
    return Visitor(client, opened.json()["conversation_id"])


async def ask(visitor: Visitor, text: str = "How do I add a rule?") -> httpx.Response:
    return await visitor.client.post(f"{visitor.path}/messages", json={"text": text})


async def without_a_token(booth: Booth, token: str, addresses: Sequence[str]) -> list[int]:
    client = booth.client(token, Origin=WEBSITE)
    return [await status_of(client, "/v1/conversations/c-1/messages", one) for one in addresses]


async def with_a_bad_token(booth: Booth, token: str, addresses: Sequence[str]) -> list[int]:
    client, statuses = booth.client(token, Origin=WEBSITE), []
    for number, address in enumerate(addresses):
        client.headers["X-Conversation-Token"] = f"guess-{number}"
        statuses.append(await status_of(client, "/v1/conversations/c-1/messages", address))
    return statuses


async def with_fresh_conversations(booth: Booth, token: str, addresses: Sequence[str]) -> list[int]:
    client, statuses = booth.client(token, Origin=WEBSITE), []
    for address in addresses:
        client.headers["X-Forwarded-For"] = address
        opened = await client.post("/v1/conversations")
        statuses.append(opened.status_code)
        if opened.status_code == 201:
            client.headers["X-Conversation-Token"] = opened.json()["token"]
            path = f"/v1/conversations/{opened.json()['conversation_id']}/messages"
            statuses.append(await status_of(client, path, address))
    return statuses


async def with_one_conversation(booth: Booth, token: str, addresses: Sequence[str]) -> list[int]:
    visitor = await come(booth, token, addresses[0])
    path = f"{visitor.path}/messages"
    return [await status_of(visitor.client, path, address) for address in addresses]


async def status_of(client: httpx.AsyncClient, path: str, address: str) -> int:
    """Ask from an address."""
    told = {"X-Forwarded-For": address}
    return (await client.post(path, json=QUESTION, headers=told)).status_code


WAYS = [without_a_token, with_a_bad_token, with_fresh_conversations, with_one_conversation]
ONE_ADDRESS = [ATTACKER] * 45
ONE_NETWORK = [f"2001:db8:1:2::{number:x}" for number in range(1, 46)]
ONE_SITE = [f"2001:db8:1:{number:x}::1" for number in range(1, 51)]
MAPPED = [f"::ffff:{ATTACKER}", ATTACKER] * 22


@pytest.mark.slow
@pytest.mark.parametrize("addresses", [ONE_ADDRESS, ONE_NETWORK, MAPPED, ONE_SITE])
@pytest.mark.parametrize("attack", WAYS)
async def test_an_attacker_with_the_public_key_switches_nobody_off(
    house: House, attack: object, addresses: list[str]
) -> None:
    async with shop(house) as booth:
        token = await key_of_shop(booth)
        early = await come(booth, token, "192.0.2.10")

        statuses = await attack(booth, token, addresses)  # type: ignore[operator] # one of `WAYS`

        late = await come(booth, token, "2001:db8:ffff::1")
        answers = [await ask(early), await ask(late)]

    assert {200, 201} & set(statuses) != set(statuses)
    assert [answer.status_code for answer in answers] == [200, 200]


@pytest.mark.parametrize("attack", [without_a_token, with_a_bad_token])
async def test_nothing_of_a_keys_budget_is_charged_before_the_token_is_good(
    house: House, attack: object
) -> None:
    async with shop(house) as booth:
        token = await booth.public(requests_per_minute=1, questions_per_day=1)
        visitor = await come(booth, token, NEIGHBOUR)

        await attack(booth, token, [ATTACKER] * 5)  # type: ignore[operator] # one of `WAYS`

        assert (await ask(visitor)).status_code == 200


@pytest.mark.redis
async def test_guesses_over_the_limit_ask_redis_nothing_and_good_tokens_still_pass(
    redis_url: str,
) -> None:
    house = House(lambda: connect(redis_url), played=False)
    await house.client.flushall()
    async with open_booth(house, open_tenant=None, limits=FEW) as booth:
        token = await key_of_shop(booth)
        visitor = await booth.visitor(token)
        assert (await visitor.client.get(visitor.path)).status_code == 200
        statuses = await with_a_bad_token(booth, token, [ATTACKER] * 12)
        guesser = booth.client(f"{token[:-4]}AAAA", Origin=WEBSITE)
        tried = await guesser.post("/v1/conversations")

        before = await lookups(house)
        guesses = [await guesser.post("/v1/conversations") for _ in range(10)]
        spent = await lookups(house) - before
        own = await visitor.client.get(visitor.path)
    await house.close()

    assert statuses.count(404) == FEW.failures_per_minute
    assert set(statuses) == {404, 429}
    assert tried.status_code == 429
    assert {answer.status_code for answer in guesses} == {429}
    assert guesses[0].json()["error"]["code"] == "too_many_failures"
    assert int(guesses[0].headers["retry-after"]) >= 1
    # One every ten seconds is looked at again, when the limit has room for one more.
    assert spent <= 2
    assert own.status_code == 200


async def lookups(house: House) -> int:
    """How often Redis was asked for a key or for a limit."""
    told = await house.client.info("commandstats")
    counted = [told.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("hget", "eval")]
    return sum(counted)


async def test_guessed_keys_are_bounded_and_a_neighbours_key_is_not(house: House) -> None:
    async with shop(house) as booth:
        token = await booth.key()
        shopkeeper = at(booth, token, ATTACKER)
        assert (await shopkeeper.get("/v1/models")).status_code == 200

        forged = [f"{token[:-4]}{number:04d}" for number in range(12)]
        statuses = [
            (await at(booth, one, ATTACKER).get("/v1/models")).status_code for one in forged
        ]
        own = await shopkeeper.get("/v1/models")
        elsewhere = await at(booth, forged[0], NEIGHBOUR).get("/v1/models")

    assert statuses == [401] * FEW.failures_per_minute + [429] * 6
    assert (own.status_code, elsewhere.status_code) == (200, 401)


async def test_a_visitor_has_a_share_of_the_keys_day_without_a_word_about_it(
    house: House,
) -> None:
    async with shop(house, VisitorLimits()) as booth:
        token = await booth.public(questions_per_day=8)
        one, other = await come(booth, token, ATTACKER), await come(booth, token, NEIGHBOUR)

        own = [await ask(one) for _ in range(3)]
        answer = await ask(other)

    assert [told.status_code for told in own] == [200, 200, 429]
    assert own[-1].json()["error"]["code"] == "visitor_limit_exceeded"
    assert "visitor has used up the questions a day" in own[-1].json()["error"]["message"]
    assert int(own[-1].headers["retry-after"]) > 3600
    assert answer.status_code == 200


async def test_a_refusal_says_whether_the_visitors_or_the_keys_limit_is_used_up(
    house: House,
) -> None:
    async with shop(house) as booth:
        token = await booth.public(questions_per_day=2, visitor_questions_per_day=2)
        first, second = await come(booth, token, ATTACKER), await come(booth, token, NEIGHBOUR)
        for visitor in (first, second):
            assert (await ask(visitor)).status_code == 200

        used_up = await ask(await come(booth, token, "192.0.2.7"))
        opened = [await at(booth, token, ATTACKER).post("/v1/conversations") for _ in range(6)]

    assert used_up.json()["error"]["code"] == "rate_limit_exceeded"
    assert "this key has used up its questions a day" in used_up.json()["error"]["message"]
    assert (opened[-1].status_code, opened[-1].json()["error"]["code"]) == (
        429,
        "visitor_limit_exceeded",
    )
    assert "conversations a minute" in opened[-1].json()["error"]["message"]
    # The page of the website may read it.
    assert opened[-1].headers["access-control-allow-origin"] == WEBSITE


async def test_a_message_that_is_sent_again_counts_once(house: House) -> None:
    async with shop(house) as booth:
        token = await booth.public(visitor_questions_per_day=2)
        visitor = await come(booth, token, ATTACKER)
        path, sent = f"{visitor.path}/messages", {**QUESTION, "message_id": "m1"}

        again = [await visitor.client.post(path, json=sent) for _ in range(4)]
        other = [await ask(visitor), await ask(visitor)]

    assert [answer.status_code for answer in again] == [200] * 4
    assert [answer.status_code for answer in other] == [200, 429]


async def test_links_of_one_visitor_use_up_nobody_elses_requests(house: House) -> None:
    async with shop(house) as booth:
        token = await key_of_shop(booth)
        one, other = await come(booth, token, ATTACKER), await come(booth, token, NEIGHBOUR)

        statuses = [(await one.client.get(one.path)).status_code for _ in range(30)]
        answer = await other.client.get(other.path)

    assert statuses.count(429) >= 15
    assert answer.status_code == 200


async def test_an_empty_conversation_lives_minutes_and_one_with_a_question_days(
    house: House,
) -> None:
    async with shop(house) as booth:
        token = await key_of_shop(booth)
        empty, asked = await come(booth, token, ATTACKER), await come(booth, token, NEIGHBOUR)
        for visitor in (empty, asked):
            assert (await visitor.client.get(visitor.path)).status_code == 200
        before = await lives(house)
        await ask(asked)
        after = await lives(house)
        await house.client.expire(await visit_key(house, empty), 0)

        assert (await empty.client.get(empty.path)).status_code == 404
        assert (await ask(asked)).status_code == 200

    assert all(0 < seconds <= 900 for seconds in before.values())
    assert sorted(seconds > 900 for seconds in after.values()) == [False, True]


async def test_a_conversation_that_is_streamed_lives_on_as_well(house: House) -> None:
    async with shop(house) as booth:
        visitor = await come(booth, await key_of_shop(booth), ATTACKER)
        headers = {"Accept": "text/event-stream"}
        sent = visitor.client.stream(
            "POST", f"{visitor.path}/messages", json=QUESTION, headers=headers
        )
        async with sent as answer:
            assert answer.status_code == 200
            await answer.aread()

        assert min((await lives(house)).values()) > 900


async def test_buckets_hold_no_address_and_die_when_they_are_full(house: House) -> None:
    async with shop(house) as booth:
        token = await key_of_shop(booth)
        visitor = await come(booth, token, "2001:db8:1:2::3")
        await ask(visitor)
        await with_a_bad_token(booth, token, [ATTACKER] * 8)
        keys = [key.decode() async for key in house.client.scan_iter("rd:rate:*")]
        lives_ = {key: await house.client.ttl(key) for key in keys}

    assert keys
    for key, seconds in lives_.items():
        assert not any(part in key for part in ("2001", "db8", "203.0.113"))
        assert 0 < seconds <= 86_400
    days = [seconds for key, seconds in lives_.items() if "requests" in key or "failures" in key]
    assert max(days) <= 61


@pytest.mark.slow
async def test_an_attack_leaves_few_keys_in_redis(house: House) -> None:
    async with shop(house) as booth:
        token = await key_of_shop(booth)
        for attack in WAYS[:3]:
            await attack(booth, token, ONE_SITE)

        keys = [key async for key in house.client.scan_iter("rd:rate:*")]
        visits = [key async for key in house.client.scan_iter("rd:*:visit")]

    most = SITE_FACTOR * (FEW.openings_per_minute + FEW.failures_per_minute)
    # A minute's, and what was free again meanwhile.
    assert len(visits) <= 2 * SITE_FACTOR * FEW.openings_per_minute
    assert len(keys) <= 4 * most


@pytest.mark.parametrize(
    ("second", "status"),
    [("2001:db8:1:2:ffff::9", 429), ("2001:db8:1:3::1", 201), (f"::ffff:{NEIGHBOUR}", 201)],
)
async def test_addresses_of_one_line_are_one_visitor(
    house: House, second: str, status: int
) -> None:
    async with shop(house) as booth:
        client = booth.client(await booth.public(), Origin=WEBSITE)
        opened = []
        for address in ["2001:db8:1:2::1"] * FEW.openings_per_minute + [second]:
            client.headers["X-Forwarded-For"] = address
            opened.append((await client.post("/v1/conversations")).status_code)

    assert opened == [201] * FEW.openings_per_minute + [status]


async def test_two_doors_count_a_visitor_together(any_house: House) -> None:
    async with any_house.open():
        first, second = (
            open_booth(any_house, trusted_proxies=(PROXY,), limits=FEW) for _ in range(2)
        )
        async with first as one, second as other:
            token = await one.public()
            opened = [
                (await at(door, token, ATTACKER).post("/v1/conversations")).status_code
                for door in (one, other) * 4
            ]

    assert opened == [201] * 5 + [429] * 3


async def test_a_proxy_that_is_not_trusted_is_named_once(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    async with house.open(), open_booth(house) as booth:
        token = await booth.public()
        for address in (ATTACKER, NEIGHBOUR):
            await at(booth, token, address).post("/v1/conversations")

        told = capsys.readouterr()

    assert (told.out + told.err).count("proxy_not_trusted") == 1


async def test_many_at_once_take_no_more_than_there_is(house: House) -> None:
    async with shop(house) as booth:
        token = await booth.public(visitor_questions_per_day=3)
        visitor = await come(booth, token, ATTACKER)

        answers = await asyncio.gather(*(ask(visitor, f"Question {n}?") for n in range(9)))

    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 6


async def visit_key(house: House, visitor: Visitor) -> bytes:
    async def look() -> list[bytes]:
        return [
            key async for key in house.client.scan_iter(f"rd:*{visitor.conversation_id}*:visit")
        ]

    found: list[bytes] = await eventually(look)
    return found[0]


async def lives(house: House) -> dict[str, int]:
    """Seconds that each visit is kept."""
    return {
        key.decode(): int(await house.client.ttl(key))
        async for key in house.client.scan_iter("rd:*:visit")
    }
