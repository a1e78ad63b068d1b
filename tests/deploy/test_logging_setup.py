"""Logs go to standard error, one line each, with the envelope they belong to."""

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest
import structlog
from structlog.contextvars import bound_contextvars

from config.settings import load_settings
from deploy.assembly.gateways.console import list_settings
from deploy.logging_setup import HIDDEN, RETRY, configure_logging, secrets_of


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    handlers = list(logging.getLogger().handlers)
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_a_line_names_the_conversation_and_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")

    with bound_contextvars(conversation_id="c-1", message_id="m-1"):
        structlog.get_logger("worker").info("hop_failed", role="lang")

    (line,) = lines(capsys)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "hop_failed",
        "role": "lang",
        "conversation_id": "c-1",
        "message_id": "m-1",
        "logger": "worker",
        "level": "info",
    }


def test_events_below_the_level_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning")

    structlog.get_logger("worker").info("quiet")
    logging.getLogger("somebody").info("quiet")
    structlog.get_logger("worker").warning("loud")

    assert [line["event"] for line in lines(capsys)] == ["loud"]


def test_events_of_libraries_are_logged_once_in_the_same_format(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("warning")
    configure_logging("warning")

    logging.getLogger("somebody").warning("the %s is late", "train")

    (line,) = lines(capsys)
    assert (line["event"], line["logger"]) == ("the train is late", "somebody")


def test_text_of_users_cannot_begin_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")

    structlog.get_logger("worker").warning("failed", error='x\n{"event": "forged"}')

    assert [line["event"] for line in lines(capsys)] == ["failed"]


@pytest.mark.parametrize(("level", "levels"), [("warning", []), ("info", [RETRY])])
def test_a_retry_is_news_and_no_warning(
    level: str, levels: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(level)

    structlog.get_logger("stamina").warning(RETRY, retry_num=1)

    assert [line["event"] for line in lines(capsys)] == levels


def test_secret_settings_are_never_logged(capsys: pytest.CaptureFixture[str]) -> None:
    settings = load_settings(
        _env_file=None, openai_api_key='sk-"quoted"-key', redis_url="redis://:p%40ss@redis:6379/0"
    )
    configure_logging("info", secrets=secrets_of(settings))

    structlog.get_logger("worker").warning("failed", error='refused: sk-"quoted"-key')
    logging.getLogger("somebody").warning("cannot log in with %s", "p@ss")

    assert [line.get("error", line["event"]) for line in lines(capsys)] == [
        f"refused: {HIDDEN}",
        f"cannot log in with {HIDDEN}",
    ]


def test_secrets_inside_addresses_stand_in_no_line_and_not_on_the_page_of_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret, signature = "s3cr3t%2Fvalue", f"whsec_{b64encode(b'k' * 24).decode()}"
    addresses = {
        "webhooks": f"https://hooks.slack.com/services/T012/B345/{'x' * 24}",
        "handover": f"https://hooks.acme.com/in?token={secret}&v=1",
        "server": f"https://{secret}@models.acme.com/v1",
        "records": f"postgresql://refdesk:{secret}@db.acme.com/records",
        "redis": f"redis://:{secret}@redis:6379/0",
    }
    settings = load_settings(
        _env_file=None,
        webhooks={"chat": {"url": addresses["webhooks"], "secret": signature}},
        handover_webhook={"url": addresses["handover"], "secret": signature},
        compatible_servers={"own": {"base_url": addresses["server"]}},
        records_url=addresses["records"],
        redis_url=addresses["redis"],
    )
    configure_logging("info", secrets=secrets_of(settings))

    for address in addresses.values():
        structlog.get_logger("worker").warning("failed", error=f"{address} {unquote(address)}")

    shown = [line["error"] for line in lines(capsys)]
    shown += [setting.value for setting in list_settings(settings)]
    for part in (secret, unquote(secret), "x" * 24, signature):
        assert not [line for line in shown if part in line]
    assert any("hooks.slack.com/services/T012" in line for line in shown)
    assert any("/in?token=" in line and "v=1" in line for line in shown)


def test_a_placeholder_of_a_key_is_hidden_as_a_word_and_leaves_other_words_readable(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("info", secrets={"k"})

    structlog.get_logger("worker").warning("broken", error="the key 'k' was refused")

    (line,) = lines(capsys)
    assert (line["event"], line["logger"]) == ("broken", "worker")
    assert line["error"] == f"the key '{HIDDEN}' was refused"


CANARY = "canary-7f3a"


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_an_error_is_logged_with_its_kind_and_location_but_without_personal_text(
    level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(level)
    try:
        try:
            raise ValueError(f"found {CANARY}")
        except ValueError as error:
            raise ExceptionGroup(CANARY, [KeyError(CANARY)]) from error
    except ExceptionGroup as error:
        structlog.get_logger("gateway").error("request_failed", exc_info=error)
        structlog.get_logger("gateway").exception("request_failed")
        logging.getLogger("somebody").exception("it failed")

    logged = lines(capsys)
    assert len(logged) == 3
    for line in logged:
        assert CANARY not in str(line)
        assert "builtins.KeyError" in line["exception"]
        assert "test_logging_setup.py:" in line["exception"]
        assert "builtins.ValueError" in line["exception"]


@pytest.mark.parametrize("level", ["debug", "info"])
def test_libraries_that_log_what_they_send_are_silenced(
    level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging(level)
    names = ("openai", "httpx", "slack_bolt", "slack_sdk", "telegram", "google_genai")
    before = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            # Some read their own variables, such as OPENAI_LOG.
            logging.getLogger(name).setLevel(logging.DEBUG)
            logging.getLogger(name).debug("request: %s", {"text": CANARY})
            logging.getLogger(name).info("request: %s", {"text": CANARY})
    finally:
        for name, known in before.items():
            logging.getLogger(name).setLevel(known)

    assert lines(capsys) == []


def test_a_retry_logs_nothing_of_what_is_retried(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("debug")

    structlog.get_logger("stamina").warning(
        RETRY, args=(CANARY,), kwargs={"a": CANARY}, caused_by=CANARY, retry_num=1
    )

    (line,) = lines(capsys)
    assert CANARY not in str(line)
    assert line["retry_num"] == 1
