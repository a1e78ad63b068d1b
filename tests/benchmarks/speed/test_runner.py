import pytest

from benchmarks.speed.payload import HOPS, payloads
from benchmarks.speed.runner import Mode, Spans, measure_speed, measure_trips, run
from benchmarks.speed.systems.port import SYSTEMS, System
from benchmarks.speed.tables import Row

pytestmark = [pytest.mark.redis, pytest.mark.slow]

SHORT = Spans(alone=0.5, questions=10, warm=0.3, window=0.5, idle=0.2)
KNOWN = {system.name: system for system in SYSTEMS}


@pytest.mark.parametrize("payload", ["4 kB", "conversation"])
def test_refdesk_answers_what_it_is_measured_with(payload: str) -> None:
    row = Row("refdesk", payload, "")

    measure_speed(row, KNOWN["refdesk"], payloads()[payload], 1, SHORT)

    speed, alone = row.speeds[1], row.alone
    assert speed.questions_a_second > 0
    assert speed.client_ms > 0
    assert speed.redis_ms > 0
    assert speed.megabytes > 10
    assert alone is not None
    assert 0 < alone.picked_up_p95 < alone.p99


def test_the_raw_limit_takes_two_round_trips_a_hop_and_shares_them_in_a_crowd() -> None:
    row = Row("raw limit", "4 kB", "")

    measure_trips([(row, KNOWN["raw limit"])], payloads()["4 kB"], SHORT)

    trips = row.trips
    assert trips is not None
    # The last pipeline may still be in flight when the answer is already known.
    assert 2 * HOPS - 1 < trips.sparse < 3 * HOPS
    assert 0 < trips.saturated < HOPS


def test_a_system_that_does_not_start_is_reported_with_its_reason() -> None:
    broken = System("broken", "no_such_system", ("redis",), "", {})

    report = run(Mode("speed", ("4 kB",), (1,), SHORT), [broken])

    row = report.row("broken", "4 kB")
    assert row is not None
    assert not row.speeds
    assert "no_such_system" in row.error
