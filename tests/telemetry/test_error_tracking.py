"""Errors are reported by their kind and place, and by no text of people."""

import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from broker.background_jobs import BackgroundJobs
from deploy.assembly.observing import connect_tracker, observing
from deploy.errors import CommandError
from deploy.logging_setup import configure_logging
from tests.support.app_harness import settings_of
from tests.support.broker_harness import BrokerHarness
from tests.telemetry.receiver import Receiver, open_receiver

TEXT = "Is Ann Smith ill?"


def list_events(receiver: Receiver) -> list[dict[str, Any]]:
    """The events in the envelopes: lines of JSON, a header before each item."""
    lines = [line for _, body, _ in receiver.bodies for line in body.splitlines()]
    envelopes = [json.loads(line) for line in lines if line]
    return [item for item in envelopes if "message" in item]


async def test_an_error_is_reported_with_its_place_and_without_its_text(
    harness: BrokerHarness, tmp_path: Path
) -> None:
    configure_logging("warning")
    log = structlog.get_logger("gateway")
    with open_receiver() as receiver:
        dsn = receiver.address.replace("http://", "http://key@") + "/7"
        async with observing(
            harness.broker, settings_of(tmp_path, sentry_dsn=dsn), None, BackgroundJobs()
        ):
            try:
                raise ValueError(TEXT)
            except ValueError as error:
                log.error("request_failed", exc_info=error)
            log.warning("hop_failed", role="search", error="ValueError")
            log.warning("records_delayed", error="away")
            for severity in ("low", "medium", "high"):
                log.warning("specialist_failed", error_id=severity, specialist="compliance",
                            severity=severity, phase="verification")  # fmt: skip

        failed, run, lost = list_events(receiver)

    assert (failed["message"], failed["level"]) == ("request_failed", "error")
    assert "test_error_tracking.py" in failed["extra"]["exception"]
    assert failed["fingerprint"] == ["request_failed", "builtins.ValueError"]
    assert run["message"] == "hop_failed"
    assert (lost["message"], lost["fingerprint"][1]) == ("specialist_failed", "compliance")
    assert (lost["extra"]["error_id"], lost["extra"]["phase"]) == ("high", "verification")
    assert TEXT not in json.dumps([failed, run])
    assert Path.cwd().name not in json.dumps(run)


def test_an_invalid_dsn_is_rejected_with_the_name_of_its_setting(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"^SENTRY_DSN: expected an address such as"):
        connect_tracker(settings_of(tmp_path, sentry_dsn="no-address").sentry_dsn)
