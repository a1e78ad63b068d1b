from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

from broker.transport.connect import PAUSE_SECONDS, Outage
from tests.support.waiting import Clock

ERROR = ConnectionError("gone")


@pytest.fixture
def captured() -> LogCapture:
    return LogCapture()


@pytest.fixture(autouse=True)
def _logging_to(captured: LogCapture) -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(processors=[captured])
    yield
    structlog.configure(**before)


def test_however_many_fail_it_is_reported_once_in_a_while(captured: LogCapture) -> None:
    clock = Clock()
    outage = Outage(clock=clock)

    for _ in range(1000):
        outage.record_failure("take", ERROR)
    clock.now += PAUSE_SECONDS
    outage.record_failure("settle", ERROR)

    assert [(line["operation"], line["failures"]) for line in captured.entries] == [
        ("take", 1),
        ("settle", 1001),
    ]


def test_the_end_is_reported_once(captured: LogCapture) -> None:
    outage = Outage(clock=Clock())
    outage.record_success()
    outage.record_failure("take", ERROR)

    outage.record_success()
    outage.record_success()

    assert [line["event"] for line in captured.entries] == [
        "broker_unreachable",
        "broker_reconnected",
    ]


def test_repeated_short_outages_are_logged_once(captured: LogCapture) -> None:
    outage = Outage(clock=Clock())

    for _ in range(100):
        outage.record_failure("take", ERROR)
        outage.record_success()

    assert len(captured.entries) == 2
    assert outage.troubles == 100
