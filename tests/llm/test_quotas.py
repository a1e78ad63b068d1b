from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.quotas import InProcessLimiter, ModelQuota, PatientLimiter, SharedLimits
from tests.support.waiting import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def limiter(clock: Callable[[], float], **limit: float) -> InProcessLimiter:
    return InProcessLimiter({"m": ModelQuota(**limit)}, clock=clock)


async def test_requests_above_the_limit_wait_until_there_is_place(clock: Clock) -> None:
    limits = limiter(clock, requests_per_minute=2)

    waits = [await limits.acquire("m", 10) for _ in range(3)]
    clock.now += waits[-1]
    after = await limits.acquire("m", 10)

    assert waits == [0, 0, 30]
    assert after == 0


async def test_tokens_are_limited_too_and_a_wait_reserves_nothing(clock: Clock) -> None:
    limits = limiter(clock, requests_per_minute=2, tokens_per_minute=600)

    first = await limits.acquire("m", 600)
    waiting = await limits.acquire("m", 60)
    clock.now += 6
    second = await limits.acquire("m", 60)

    assert (first, waiting, second) == (0, 6, 0)


async def test_a_request_larger_than_a_minute_waits_for_a_full_minute_only(clock: Clock) -> None:
    limits = limiter(clock, tokens_per_minute=600)

    first = await limits.acquire("m", 10_000)
    second = await limits.acquire("m", 10_000)

    assert (first, second) == (0, 60)


async def test_a_model_without_a_limit_passes(clock: Clock) -> None:
    limits = limiter(clock, requests_per_minute=1)

    assert [await limits.acquire("other", 10**9) for _ in range(5)] == [0] * 5


@given(
    st.lists(st.tuples(st.floats(0, 20), st.integers(0, 800)), min_size=1, max_size=40),
)
async def test_no_minute_ever_holds_more_than_two_limits(
    arrivals: list[tuple[float, int]],
) -> None:
    clock = Clock()
    limits = limiter(clock, requests_per_minute=6, tokens_per_minute=600)
    passed: list[tuple[float, int]] = []

    for pause, tokens in arrivals:
        clock.now += pause
        if await limits.acquire("m", tokens) == 0:
            passed.append((clock.now, min(tokens, 600)))

    for start, _ in passed:
        within = [tokens for at, tokens in passed if start <= at < start + 60]
        assert len(within) <= 2 * 6
        assert sum(within) <= 2 * 600 + 1e-6


async def test_a_patient_limiter_waits_itself_and_counts() -> None:
    patient = PatientLimiter(InProcessLimiter({"m": ModelQuota(tokens_per_minute=60_000)}))

    waits = [await patient.acquire("m", tokens) for tokens in (60_000, 20, 1)]

    assert waits == [0, 0, 0]
    assert 1 <= patient.waits <= 2
    assert 0 < patient.seconds < 1


async def test_limits_of_a_process_can_be_counted_with_others_later(clock: Clock) -> None:
    limits = SharedLimits(limiter(clock, requests_per_minute=2))
    other = limiter(clock, requests_per_minute=1)
    await other.acquire("m", 1)

    alone = await limits.acquire("m", 1)
    limits.count_with(other)

    assert (alone, await limits.acquire("m", 1)) == (0, 60)
