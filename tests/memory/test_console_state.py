from typing import Any

from memory.console_state import RedisConsoleSessions


async def test_a_code_opens_one_session_which_lasts_until_it_is_ended(client: Any) -> None:
    sessions = RedisConsoleSessions(client)
    code = await sessions.make_code()

    token = await sessions.open(code)

    assert token is not None
    assert await sessions.open(code) is None
    assert await sessions.is_open(token)
    await sessions.end(token)
    assert not await sessions.is_open(token)


async def test_a_guessed_code_opens_nothing_and_no_secret_stands_in_redis(client: Any) -> None:
    sessions = RedisConsoleSessions(client)
    code = await sessions.make_code()

    assert await sessions.open("guessed") is None
    token = await sessions.open(code)

    keys = [key.decode() async for key in client.scan_iter("*")]
    assert not any(secret in key for key in keys for secret in (code, token or "-"))
    assert all([await client.ttl(key) > 0 for key in keys])
