"""The Slack app that is described may do what the desk does, and nothing more."""

import inspect
import json
import re
from pathlib import Path

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from cli.main import main
from gateway.slack import app, web_api
from gateway.slack.app import manifest
from gateway.slack.events import EVENT_NAMES, EVENTS
from gateway.slack.transport import PATH
from gateway.slack.web_api import RATES, SCOPES

FREE = {"auth.test"}
"""Needs no scope."""


def find_called_methods() -> set[str]:
    """The methods of Slack that the code calls, as Slack names them."""
    text = inspect.getsource(web_api) + inspect.getsource(app)
    names = set(re.findall(r"client\.([a-z]+_[A-Za-z_]+)\(", text))
    assert all(hasattr(AsyncWebClient, name) for name in names)
    return {name.replace("_", ".") for name in names}


def test_the_manifest_asks_for_the_scopes_of_what_is_called_and_received() -> None:
    scopes = json.loads(json.dumps(manifest(None)))["oauth_config"]["scopes"]["bot"]

    assert find_called_methods() - FREE == set(SCOPES) == set(RATES)
    assert scopes == sorted(set(SCOPES.values()) | set(EVENTS.values()))
    assert {scope for scope in scopes if scope.endswith(":history")} == {
        f"{name.partition('.')[2]}:history" for name in EVENTS if name.startswith("message.")
    }


def test_the_manifest_asks_for_the_events_that_the_app_listens_to() -> None:
    settings = json.loads(json.dumps(manifest(None)))["settings"]

    assert set(settings["event_subscriptions"]["bot_events"]) == set(EVENTS)
    assert {"app_mention", "message"} == EVENT_NAMES
    assert settings["interactivity"]["is_enabled"]


def test_the_page_explains_what_each_scope_is_for() -> None:
    page = (Path(__file__).parents[3] / "docs" / "channels.md").read_text("utf-8")
    table = page.partition("| scope | used for |")[2].partition("\n\n")[0]

    assert set(re.findall(r"`([a-z_]+:[a-z]+)`", table)) == {*SCOPES.values(), *EVENTS.values()}
    assert set(re.findall(r"`(app_mention|message\.[a-z]+)`", table)) == set(EVENTS)


@pytest.mark.parametrize("url", ["https://desk.example.org", "https://desk.example.org/"])
def test_the_command_prints_a_manifest_for_an_address(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("slack", "--manifest", url)) == 0

    settings = json.loads(capsys.readouterr().out)["settings"]
    where = f"https://desk.example.org{PATH}"
    assert settings["event_subscriptions"]["request_url"] == where
    assert settings["interactivity"]["request_url"] == where
    assert not settings["socket_mode_enabled"]


def test_the_command_prints_a_manifest_for_socket_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(("slack", "--manifest")) == 0

    output = capsys.readouterr().out
    assert json.loads(output)["settings"]["socket_mode_enabled"]
    assert "request_url" not in output


@pytest.mark.parametrize("url", ["http://desk.example.org", "desk.example.org", "https://x/y"])
def test_an_address_that_slack_would_not_call_is_refused(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("slack", "--manifest", url)) != 0

    assert "https://desk.example.org" in capsys.readouterr().err
