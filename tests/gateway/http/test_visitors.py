"""What one visitor can use up, and what an attacker with the public key of a website cannot."""

import asyncio
from itertools import product

import pytest

from broker.transport.connect import connect
from gateway.http.visitors import SITE_FACTOR, VisitorLimits
from tests.gateway.http.visitor_driver import (
    ATTACKER,
    FEW,
    MAPPED,
    NEIGHBOUR,
    ONE_ADDRESS,
    ONE_NETWORK,
    ONE_SITE,
    PROXY,
    QUESTION,
    WAYS,
    ask,
    at,
    come,
    key_of_shop,
    shop,
    with_a_bad_token,
    without_a_token,
)
from tests.support.http_server import WEBSITE, VisitorClient, open_http_server
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness

ADDRESSES = (ONE_ADDRESS, ONE_NETWORK, MAPPED, ONE_SITE)
EACH_ONCE = list(zip(WAYS, ADDRESSES, strict=True))
OTHERS = [pair for pair in product(WAYS, ADDRESSES) if pair not in EACH_ONCE]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "addresses"),
    [*EACH_ONCE, *(pytest.param(*pair, marks=pytest.mark.long) for pair in OTHERS)],
)
async def test_an_attacker_with_the_public_key_switches_nobody_off(
    harness: WorkerHarness, attack: object, addresses: list[str]
) -> None:
    async with shop(harness) as http_server:
        token = await key_of_shop(http_server)
        early = await come(http_server, token, "192.0.2.10")

        statuses = await attack(http_server, token, addresses)  # type: ignore[operator] # one of `WAYS`

        late = await come(http_server, token, "2001:db8:ffff::1")
        answers = [await ask(early), await ask(late)]

    assert {200, 201} & set(statuses) != set(statuses)
    assert [answer.status_code for answer in answers] == [200, 200]


@pytest.mark.parametrize("attack", [without_a_token, with_a_bad_token])
async def test_nothing_of_a_keys_budget_is_charged_before_the_token_is_good(
    harness: WorkerHarness, attack: object
) -> None:
    async with shop(harness) as http_server:
        token = await http_server.public(requests_per_minute=1, questions_per_day=1)
        visitor = await come(http_server, token, NEIGHBOUR)

        await attack(http_server, token, [ATTACKER] * 5)  # type: ignore[operator] # one of `WAYS`

        assert (await ask(visitor)).status_code == 200


@pytest.mark.redis
async def test_guesses_over_the_limit_ask_redis_nothing_and_good_tokens_still_pass(
    redis_url: str,
) -> None:
    harness = WorkerHarness(lambda: connect(redis_url), played=False)
    await harness.client.flushall()
    async with open_http_server(harness, open_tenant=None, limits=FEW) as http_server:
        token = await key_of_shop(http_server)
        visitor = await http_server.visitor(token)
        assert (await visitor.client.get(visitor.path)).status_code == 200
        statuses = await with_a_bad_token(http_server, token, [ATTACKER] * 12)
        guesser = http_server.client(f"{token[:-4]}AAAA", Origin=WEBSITE)
        tried = await guesser.post("/v1/conversations")

        before = await lookups(harness)
        guesses = [await guesser.post("/v1/conversations") for _ in range(10)]
        spent = await lookups(harness) - before
        own = await visitor.client.get(visitor.path)
    await harness.close()

    assert statuses.count(404) == FEW.failures_per_minute
    assert set(statuses) == {404, 429}
    assert tried.status_code == 429
    assert {answer.status_code for answer in guesses} == {429}
    assert guesses[0].json()["error"]["code"] == "too_many_failures"
    assert int(guesses[0].headers["retry-after"]) >= 1
    # One every ten seconds is looked at again, when the limit has room for one more.
    assert spent <= 2
    assert own.status_code == 200


async def lookups(harness: WorkerHarness) -> int:
    """How often Redis was asked for a key or for a limit."""
    info = await harness.client.info("commandstats")
    counted = [info.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("hget", "eval")]
    return sum(counted)


async def test_guessed_keys_are_bounded_and_a_neighbours_key_is_not(harness: WorkerHarness) -> None:
    async with shop(harness) as http_server:
        token = await http_server.key()
        shopkeeper = at(http_server, token, ATTACKER)
        assert (await shopkeeper.get("/v1/models")).status_code == 200

        forged = [f"{token[:-4]}{number:04d}" for number in range(12)]
        statuses = [
            (await at(http_server, item, ATTACKER).get("/v1/models")).status_code for item in forged
        ]
        own = await shopkeeper.get("/v1/models")
        elsewhere = await at(http_server, forged[0], NEIGHBOUR).get("/v1/models")

    assert statuses == [401] * FEW.failures_per_minute + [429] * 6
    assert (own.status_code, elsewhere.status_code) == (200, 401)


async def test_a_visitor_has_a_share_of_the_keys_day_without_a_word_about_it(
    harness: WorkerHarness,
) -> None:
    async with shop(harness, VisitorLimits()) as http_server:
        token = await http_server.public(questions_per_day=8)
        one, other = (
            await come(http_server, token, ATTACKER),
            await come(http_server, token, NEIGHBOUR),
        )

        own = [await ask(one) for _ in range(3)]
        answer = await ask(other)

    assert [response.status_code for response in own] == [200, 200, 429]
    assert own[-1].json()["error"]["code"] == "visitor_limit_exceeded"
    assert "visitor has used up the questions a day" in own[-1].json()["error"]["message"]
    assert int(own[-1].headers["retry-after"]) > 3600
    assert answer.status_code == 200


async def test_a_refusal_says_whether_the_visitors_or_the_keys_limit_is_used_up(
    harness: WorkerHarness,
) -> None:
    async with shop(harness) as http_server:
        token = await http_server.public(questions_per_day=2, visitor_questions_per_day=2)
        first, second = (
            await come(http_server, token, ATTACKER),
            await come(http_server, token, NEIGHBOUR),
        )
        for visitor in (first, second):
            assert (await ask(visitor)).status_code == 200

        used_up = await ask(await come(http_server, token, "192.0.2.7"))
        opened = [
            await at(http_server, token, ATTACKER).post("/v1/conversations") for _ in range(6)
        ]

    assert used_up.json()["error"]["code"] == "rate_limit_exceeded"
    assert "this key has used up its questions a day" in used_up.json()["error"]["message"]
    assert (opened[-1].status_code, opened[-1].json()["error"]["code"]) == (
        429,
        "visitor_limit_exceeded",
    )
    assert "conversations a minute" in opened[-1].json()["error"]["message"]
    # The page of the website may read it.
    assert opened[-1].headers["access-control-allow-origin"] == WEBSITE


async def test_a_message_that_is_sent_again_counts_once(harness: WorkerHarness) -> None:
    async with shop(harness) as http_server:
        token = await http_server.public(visitor_questions_per_day=2)
        visitor = await come(http_server, token, ATTACKER)
        path, sent = f"{visitor.path}/messages", {**QUESTION, "message_id": "m1"}

        again = [await visitor.client.post(path, json=sent) for _ in range(4)]
        other = [await ask(visitor), await ask(visitor)]

    assert [answer.status_code for answer in again] == [200] * 4
    assert [answer.status_code for answer in other] == [200, 429]


async def test_links_of_one_visitor_use_up_nobody_elses_requests(harness: WorkerHarness) -> None:
    async with shop(harness) as http_server:
        token = await key_of_shop(http_server)
        one, other = (
            await come(http_server, token, ATTACKER),
            await come(http_server, token, NEIGHBOUR),
        )

        statuses = [(await one.client.get(one.path)).status_code for _ in range(30)]
        answer = await other.client.get(other.path)

    assert statuses.count(429) >= 15
    assert answer.status_code == 200


async def test_an_empty_conversation_lives_minutes_and_one_with_a_question_days(
    harness: WorkerHarness,
) -> None:
    async with shop(harness) as http_server:
        token = await key_of_shop(http_server)
        empty, asked = (
            await come(http_server, token, ATTACKER),
            await come(http_server, token, NEIGHBOUR),
        )
        for visitor in (empty, asked):
            assert (await visitor.client.get(visitor.path)).status_code == 200
        before = await lives(harness)
        await ask(asked)
        after = await lives(harness)
        await harness.client.expire(await visit_key(harness, empty), 0)

        assert (await empty.client.get(empty.path)).status_code == 404
        assert (await ask(asked)).status_code == 200

    assert all(0 < seconds <= 900 for seconds in before.values())
    assert sorted(seconds > 900 for seconds in after.values()) == [False, True]


async def test_a_conversation_that_is_streamed_lives_on_as_well(harness: WorkerHarness) -> None:
    async with shop(harness) as http_server:
        visitor = await come(http_server, await key_of_shop(http_server), ATTACKER)
        headers = {"Accept": "text/event-stream"}
        sent = visitor.client.stream(
            "POST", f"{visitor.path}/messages", json=QUESTION, headers=headers
        )
        async with sent as answer:
            assert answer.status_code == 200
            await answer.aread()

        assert min((await lives(harness)).values()) > 900


async def test_buckets_hold_no_address_and_die_when_they_are_full(harness: WorkerHarness) -> None:
    async with shop(harness) as http_server:
        token = await key_of_shop(http_server)
        visitor = await come(http_server, token, "2001:db8:1:2::3")
        await ask(visitor)
        await with_a_bad_token(http_server, token, [ATTACKER] * 8)
        keys = [key.decode() async for key in harness.client.scan_iter("rd:rate:*")]
        lives_ = {key: await harness.client.ttl(key) for key in keys}

    assert keys
    for key, seconds in lives_.items():
        assert not any(part in key for part in ("2001:", "db8:", "203.0.113"))
        assert 0 < seconds <= 86_400
    days = [seconds for key, seconds in lives_.items() if "requests" in key or "failures" in key]
    assert max(days) <= 61


@pytest.mark.slow
async def test_an_attack_leaves_few_keys_in_redis(harness: WorkerHarness) -> None:
    async with shop(harness) as http_server:
        token = await key_of_shop(http_server)
        for attack in WAYS[:3]:
            await attack(http_server, token, ONE_SITE)

        keys = [key async for key in harness.client.scan_iter("rd:rate:*")]
        visits = [key async for key in harness.client.scan_iter("rd:*:visit")]

    most = SITE_FACTOR * (FEW.questions_per_minute + FEW.failures_per_minute)
    # A minute's, and what was free again meanwhile.
    assert len(visits) <= 2 * SITE_FACTOR * FEW.questions_per_minute
    assert len(keys) <= 4 * most


@pytest.mark.parametrize(
    ("second", "status"),
    [("2001:db8:1:2:ffff::9", 429), ("2001:db8:1:3::1", 201), (f"::ffff:{NEIGHBOUR}", 201)],
)
async def test_addresses_of_one_line_are_one_visitor(
    harness: WorkerHarness, second: str, status: int
) -> None:
    async with shop(harness) as http_server:
        client = http_server.client(await http_server.public(), Origin=WEBSITE)
        opened = []
        for address in ["2001:db8:1:2::1"] * FEW.questions_per_minute + [second]:
            client.headers["X-Forwarded-For"] = address
            opened.append((await client.post("/v1/conversations")).status_code)

    assert opened == [201] * FEW.questions_per_minute + [status]


async def test_two_servers_count_a_visitor_together(any_harness: WorkerHarness) -> None:
    async with any_harness.open():
        first, second = (
            open_http_server(any_harness, trusted_proxies=(PROXY,), limits=FEW) for _ in range(2)
        )
        async with first as one, second as other:
            token = await one.public()
            opened = [
                (await at(server, token, ATTACKER).post("/v1/conversations")).status_code
                for server in (one, other) * 4
            ]

    assert opened == [201] * 4 + [429] * 4


async def test_a_proxy_that_is_not_trusted_is_named_once(
    harness: WorkerHarness, capsys: pytest.CaptureFixture[str]
) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        token = await http_server.public()
        for address in (ATTACKER, NEIGHBOUR):
            await at(http_server, token, address).post("/v1/conversations")

        output = capsys.readouterr()

    assert (output.out + output.err).count("proxy_not_trusted") == 1


async def test_many_at_once_take_no_more_than_there_is(harness: WorkerHarness) -> None:
    async with shop(harness) as http_server:
        token = await http_server.public(visitor_questions_per_day=3)
        visitor = await come(http_server, token, ATTACKER)

        answers = await asyncio.gather(*(ask(visitor, f"Question {n}?") for n in range(9)))

    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 6


async def visit_key(harness: WorkerHarness, visitor: VisitorClient) -> bytes:
    async def look() -> list[bytes]:
        return [
            key async for key in harness.client.scan_iter(f"rd:*{visitor.conversation_id}*:visit")
        ]

    found: list[bytes] = await wait_until(look)
    return found[0]


async def lives(harness: WorkerHarness) -> dict[str, int]:
    """Seconds that each visit is kept."""
    return {
        key.decode(): int(await harness.client.ttl(key))
        async for key in harness.client.scan_iter("rd:*:visit")
    }
