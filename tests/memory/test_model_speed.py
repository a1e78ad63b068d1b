from datetime import date
from typing import Any

from memory.model_speed import RedisModelSpeeds

MONDAY, FRIDAY, LATER = date(2030, 1, 7), date(2030, 1, 11), date(2030, 1, 20)


async def test_the_speed_of_a_model_is_the_mean_of_all_processes_in_the_last_week(
    client: Any,
) -> None:
    await RedisModelSpeeds(client, lambda: MONDAY).add("m@openai", 1_000, 10_000.0)
    await RedisModelSpeeds(client, lambda: FRIDAY).add("m@openai", 3_000, 10_000.0)

    async def read_on(day: date) -> float | None:
        return await RedisModelSpeeds(client, lambda: day).read("m@openai")

    speeds = [await read_on(day) for day in (MONDAY, FRIDAY, LATER)]

    assert speeds == [100.0, 200.0, None]


async def test_a_model_that_has_not_answered_has_no_speed(client: Any) -> None:
    assert await RedisModelSpeeds(client).read("m@openai") is None
