from typing import Any

from memory.console_state import RedisConsoleSessions

HOUR = 3600


async def test_a_code_is_valid_once_and_a_guessed_one_never(client: Any) -> None:
    sessions = RedisConsoleSessions(client)
    code = await sessions.make_code()

    assert not await sessions.redeem("guessed")
    assert await sessions.redeem(code)
    assert not await sessions.redeem(code)


async def test_a_session_lasts_until_it_is_ended(client: Any) -> None:
    sessions = RedisConsoleSessions(client)

    token = await sessions.open("ada", "Ada")

    assert await sessions.read(token) == "Ada"
    assert await sessions.read("guessed") is None
    await sessions.end(token)
    assert await sessions.read(token) is None


async def test_every_session_of_a_person_ends_and_none_of_another(client: Any) -> None:
    sessions = RedisConsoleSessions(client)
    mine = [await sessions.open("ada", "Ada") for _ in range(2)]
    other = await sessions.open("bob", "Bob")

    await sessions.end_all("ada")

    assert [await sessions.read(token) for token in mine] == [None, None]
    assert await sessions.read(other) == "Bob"
    await sessions.end_all("nobody")


async def test_a_session_ends_when_it_is_not_used_and_use_extends_it(client: Any) -> None:
    sessions = RedisConsoleSessions(client, idle_seconds=HOUR, longest_seconds=12 * HOUR)
    token = await sessions.open("ada", "Ada")
    [key] = [key async for key in client.scan_iter("*:session:*")]
    assert HOUR - 5 <= await client.ttl(key) <= HOUR
    await client.expire(key, 7)

    await sessions.read(token)

    assert await client.ttl(key) > HOUR - 5


async def test_a_session_that_is_used_all_the_time_ends_too(client: Any) -> None:
    sessions = RedisConsoleSessions(client, idle_seconds=HOUR, longest_seconds=12 * HOUR)
    token = await sessions.open("ada", "Ada")
    [key] = [key async for key in client.scan_iter("*:session:*")]
    opened = int(await client.hget(key, "opened"))
    await client.hset(key, "opened", opened - 12 * HOUR + 60)

    assert await sessions.read(token) == "Ada"
    assert await client.ttl(key) <= 60
    await client.hset(key, "opened", opened - 12 * HOUR)
    assert await sessions.read(token) is None


async def test_redis_contains_no_secrets_and_every_key_expires(client: Any) -> None:
    sessions = RedisConsoleSessions(client)
    secrets = [await sessions.make_code(), await sessions.open("ada", "Ada")]

    keys = [key.decode() async for key in client.scan_iter("*")]

    assert len(keys) == 3
    assert not any(secret in key for key in keys for secret in secrets)
    assert all([await client.ttl(key) > 0 for key in keys])
