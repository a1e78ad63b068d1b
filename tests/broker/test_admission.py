import itertools
import time
from collections.abc import Sequence

from broker.producer import AdmissionPolicy
from broker.values import Accepted, Busy, Delivery, Duplicate
from tests.support.broker_harness import BrokerHarness, finish, question
from tests.support.empty_redis import ON_REAL
from tests.support.waiting import wait_until

AT_LEAST = 2
COLD = 4 * AT_LEAST
"""What a shard lets in that has not been measured yet."""
SHORTEST_TURN = 4
"""That many questions have to end before anything counts as measured."""


def record_pace(harness: BrokerHarness, *, quota: int = 1000, lanes: tuple[str, ...] = ()) -> None:
    harness.broker = harness.make(quota=quota, pace=AdmissionPolicy(at_least=AT_LEAST, lanes=lanes))


async def ask(harness: BrokerHarness, numbers: Sequence[int], tenant: str = "acme") -> list[object]:
    return [
        await harness.submit(question(conversation=f"{tenant}{number}", tenant=tenant))
        for number in numbers
    ]


def let_in(admissions: Sequence[object]) -> int:
    return sum(isinstance(admission, Accepted) for admission in admissions)


async def end_some(harness: BrokerHarness) -> Sequence[Delivery]:
    """End up to ten questions; return them."""
    taken = await harness.take_all()
    await harness.broker.settle([(delivery, finish()) for delivery in taken])
    return taken


async def test_more_than_workers_can_do_in_time_is_refused_with_a_time_to_come_again(
    harness: BrokerHarness,
) -> None:
    record_pace(harness)

    admissions = await ask(harness, range(COLD + 3))

    assert admissions[:COLD] == [Accepted()] * COLD
    assert admissions[COLD:] == [Busy(2.0, "overload")] * 3


async def test_a_question_that_ends_makes_room_for_another(harness: BrokerHarness) -> None:
    record_pace(harness)
    await ask(harness, range(COLD + 1))
    first, *_ = await harness.take_all()
    await harness.settle(first, finish())

    assert let_in(await ask(harness, range(100, 103))) == 1


async def test_a_duplicate_is_recognised_under_overload(harness: BrokerHarness) -> None:
    record_pace(harness)
    await ask(harness, range(COLD + 1))

    assert await ask(harness, [0]) == [Duplicate(None)]


@ON_REAL
async def test_waiting_messages_reduce_admission(harness: BrokerHarness) -> None:
    record_pace(harness)
    rounds = itertools.count(1)

    async def one_works() -> bool:
        """End one question with nobody working on another; return if seven more are too many."""
        admissions = await ask(harness, [100 * next(rounds) + number for number in range(COLD)])
        first, *rest = await harness.take_all()
        await harness.broker.consumer.give_back(rest)
        await harness.settle(first, finish())
        return (
            await harness.client.zcard("rd:{0}:deadlines") < COLD // 2 and let_in(admissions) == 0
        )

    assert await wait_until(one_works)


@ON_REAL
async def test_admission_increases_its_limit_while_nothing_waits(harness: BrokerHarness) -> None:
    record_pace(harness)
    held: list[Delivery] = []
    numbers = itertools.count()

    async def grown() -> bool:
        """Work on whatever is let in at once; end half of it."""
        for _ in range(4 * COLD):
            await ask(harness, [next(numbers)])
            held.extend(await harness.take_all())
        open_now = len(held)
        await harness.broker.settle([(delivery, finish()) for delivery in held[: open_now // 2]])
        del held[: open_now // 2]
        return open_now > 3 * COLD

    assert await wait_until(grown)


async def test_a_tenant_that_holds_less_than_its_part_still_gets_in(harness: BrokerHarness) -> None:
    record_pace(harness)
    noisy = await ask(harness, range(COLD + 2), "noisy")

    quiet = await ask(harness, [1], "quiet")
    again = await ask(harness, [99], "noisy")

    assert let_in(noisy) == COLD
    assert quiet == [Accepted()]
    assert [admission.reason for admission in again if isinstance(admission, Busy)] == [
        "tenant_share"
    ]


async def test_many_tenants_together_stay_within_the_measured_rate(
    harness: BrokerHarness,
) -> None:
    record_pace(harness)

    admissions = [
        admission
        for number in range(50)
        for admission in await ask(harness, [1], f"tenant{number}")
    ]

    assert let_in(admissions) <= COLD + 1


async def test_the_time_to_come_again_is_reckoned_from_what_ends_here(
    harness: BrokerHarness,
) -> None:
    record_pace(harness)
    began = time.monotonic()
    ended: list[Delivery] = []
    refused: list[Busy] = []

    async def has_measured() -> bool:
        admissions = await ask(harness, range(100 * len(ended), 100 * len(ended) + 3 * COLD))
        refused.extend(admission for admission in admissions if isinstance(admission, Busy))
        ended.extend(await end_some(harness))
        return bool(refused) and refused[-1].retry_after_seconds != 2.0

    await wait_until(has_measured)

    # No more than everybody who was ever refused can be before the last of them, or stay open, and
    # where the machine stood still a turn may have taken all the time there was, twice over.
    longest = (len(refused) + COLD) * 2 * (time.monotonic() - began) / SHORTEST_TURN
    assert 0.05 <= refused[-1].retry_after_seconds <= max(0.05, longest)


@ON_REAL
async def test_the_more_are_refused_the_later_they_are_asked_to_come(
    harness: BrokerHarness,
) -> None:
    record_pace(harness)
    for number in range(3):
        await ask(harness, range(100 * number, 100 * number + COLD))
        await end_some(harness)
    admissions = await ask(harness, range(1000, 1800))

    waits = [
        admission.retry_after_seconds for admission in admissions if isinstance(admission, Busy)
    ]

    assert waits[-1] > waits[0]


async def test_a_lane_of_its_own_is_not_held_up_by_questions(harness: BrokerHarness) -> None:
    record_pace(harness, lanes=("search",))
    await ask(harness, range(COLD + 1))

    aside = await harness.submit(question(conversation="aside"), role="search")

    assert aside == Accepted()


async def test_without_a_pace_the_quota_alone_bounds_the_shard(harness: BrokerHarness) -> None:
    harness.broker = harness.make(quota=100)

    assert let_in(await ask(harness, range(103))) == 100


async def test_the_hard_quota_holds_whatever_the_pace_allows(harness: BrokerHarness) -> None:
    record_pace(harness, quota=3)

    admissions = await ask(harness, range(5))

    assert [admission.reason for admission in admissions if isinstance(admission, Busy)] == [
        "shard_full"
    ] * 2


async def test_a_group_or_stream_that_is_gone_does_not_stop_the_channel(
    harness: BrokerHarness,
) -> None:
    record_pace(harness)
    await harness.client.delete("rd:{0}:stream:manager")

    assert await harness.submit() == Accepted()


async def test_measured_rates_expire(harness: BrokerHarness) -> None:
    record_pace(harness)
    await harness.submit()

    assert 0 < await harness.client.pttl("rd:{0}:pace") <= 86_400_000


async def test_a_refusal_leaves_nothing_behind(harness: BrokerHarness) -> None:
    harness.broker = harness.make(pace=AdmissionPolicy(at_least=1))
    await ask(harness, range(5))
    before = await harness.client.dbsize()

    await ask(harness, range(100, 200))

    assert await harness.client.dbsize() == before
