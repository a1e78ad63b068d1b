import json

from benchmarks.speed import tables
from benchmarks.speed.page import document
from benchmarks.speed.payload import HOPS, ROLES, payloads
from benchmarks.speed.systems.port import COLUMNS, SYSTEMS
from benchmarks.speed.tables import Alone, Recovery, Report, Row, Speed, Trips, quantile


def _row(system: str, rate: float) -> Row:
    return Row(
        system,
        "4 kB",
        f"{system} 1.0",
        speeds={
            1: _speed(rate),
            4: Speed(4, 2 * rate, 600 / rate, 0.5, 0.5, 0.0, 60.0),
        },
        alone=Alone(100, 1000 / rate, 2000 / rate, 0.5),
        trips=Trips(2.0 * HOPS, 1.0 * HOPS, 0.5),
        recovery=Recovery(10, 0, 1.0, 1.125),
    )


def _speed(rate: float) -> Speed:
    return Speed(1, rate, 500 / rate, 0.5, 0.25, 0.0, 60.0)


def _report(*rows: Row) -> Report:
    return Report("quick", "today", "a machine", "7.0", 0.5, {"4 kB": 4000}, list(rows))


def test_the_goals_are_reported_as_ratios_of_one_run() -> None:
    report = _report(_row("refdesk", 1000.0), _row("faststream", 125.0), _row("raw limit", 4000.0))

    table = tables.goals(report, "4 kB")

    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    results = {cell[0]: cell[2] for cell in cells}
    assert results["questions per second, relative to FastStream"] == "8.00"
    assert results["a single question, p50, relative to FastStream"] == "0.12"
    assert results["share of the raw limit"] == "0.25"
    assert results["round trips per hop, single questions"] == "2.00"
    assert results["round trips per hop, 200 in flight"] == "1.00"
    assert results["recovery p99 on an idle queue, leases"] == "1.12"
    assert results["four processes, relative to one"] == "2.00"


def test_a_ratio_is_the_median_of_adjacent_turns_and_shows_their_range() -> None:
    refdesk, peer = _row("refdesk", 1.0), _row("faststream", 1.0)
    for ours, theirs in [(1000.0, 100.0), (600.0, 50.0), (900.0, 150.0)]:
        refdesk.add(_speed(ours), None)
        peer.add(_speed(theirs), None)

    table = tables.goals(_report(refdesk, peer), "4 kB")

    assert "questions per second, relative to FastStream   | 5         | 10.00" in table
    assert "| 6.00 - 12.00 " in table


def test_a_peer_that_is_not_installed_keeps_its_row() -> None:
    report = _report(_row("refdesk", 1000.0), Row("faststream", "4 kB", "not installed"))

    table = tables.speed(report, "4 kB").splitlines()

    assert "not installed" in table[-1]
    assert {line.count("|") for line in table} == {table[0].count("|")}


def test_work_that_was_never_taken_over_is_reported_as_such() -> None:
    lost = _row("faststream", 100.0)
    lost.recovery = Recovery(3, 3, 0.0, 0.0)

    assert "not in 6 (3 of 3)" in tables.broker(_report(lost))


def test_a_report_becomes_json_and_a_document_with_every_part() -> None:
    report = _report(_row("refdesk", 1000.0), _row("faststream", 125.0), _row("raw limit", 4000.0))

    page = document(report)

    assert json.loads(json.dumps(report.fields()))["rows"][0]["speeds"]["4"]["processes"] == 4
    assert "at about 2000 questions per second" in page
    assert all(f"**{system.name}**" in page for system in SYSTEMS)


def test_a_run_on_a_busy_machine_says_so() -> None:
    quiet, busy = _row("refdesk", 1000.0), _row("refdesk", 1000.0)
    busy.speeds[1] = Speed(1, 1000.0, 0.5, 0.5, 0.25, 0.6, 60.0)

    assert "was busy" not in document(_report(quiet))
    assert "waited 60% to" in document(_report(busy))


def test_every_system_says_what_it_guarantees() -> None:
    assert all(set(system.guarantees) == set(COLUMNS) for system in SYSTEMS)


def test_every_payload_lets_each_role_write() -> None:
    known = payloads()

    assert all(tuple(payload.writes) == ROLES for payload in known.values())
    assert known["4 kB"].size() > 4000
    assert known["conversation"].history
    assert known["conversation"].size() > known["4 kB"].size()


def test_a_quantile_is_a_value_that_was_seen() -> None:
    seen = [float(number) for number in range(100)]

    assert (quantile(seen, 0.5), quantile(seen, 0.99), quantile([7.0], 0.99)) == (50.0, 99.0, 7.0)
