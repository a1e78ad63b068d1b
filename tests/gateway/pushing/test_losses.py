"""A question that Redis lost ends where it was asked, too."""

from tests.gateway.pushing.rig import ANSWER, AT_ONCE, TEXTS, acknowledged, push_door_of, until
from tests.gateway.pushing.wall import Wall, said
from tests.worker.cast import House

APOLOGY = TEXTS.text("apology", "en")


async def test_a_question_that_redis_lost_ends_with_an_apology_in_its_placeholder(
    house: House,
) -> None:
    wall = Wall()
    async with push_door_of(house, wall, manners=AT_ONCE) as door:
        await door.intake.accept(said(door.named("c", "1"), "How?", 1.0))
        await until(lambda: len(wall.posts) == 1)

        await house.client.flushall()

        await until(lambda: list(wall.posts.values()) == [APOLOGY])


async def test_a_question_that_is_answered_gets_nothing_but_its_answer(house: House) -> None:
    wall = Wall()
    async with push_door_of(house, wall, manners=AT_ONCE) as door, house.open():
        await door.intake.accept(said(door.named("c", "1"), "How?", 1.0))
        await until(lambda: ANSWER in wall.posts.values())
        await acknowledged(house, "wall")
        # What watches for losses hears of the end as well; a further question has its turn after.
        await door.intake.accept(said(door.named("c", "2"), "How?", 2.0))
        await until(lambda: list(wall.posts.values()) == [ANSWER, ANSWER])
