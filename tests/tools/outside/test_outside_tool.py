from pathlib import Path

import pytest

from tools.calls import EffectClass
from tools.errors import InvalidToolSet
from tools.outside.outside_tool import load_outside_tools

GOOD = """
[servers.weather]
command = ["weather-server", "--key", "${WEATHER_KEY}"]
environment = { WEATHER_KEY = "${WEATHER_KEY}", MODE = "desk" }
[servers.weather.tools.get_forecast]
effect = "read"
[servers.news]
url = "https://news.example.org/mcp"
headers = { Authorization = "Bearer ${NEWS_TOKEN}" }
[servers.news.tools."news/list"]
effect = "idempotent"
name = "list_news"
[apis.tickets]
document = "tickets.yaml"
base_url = "https://tickets.example.org/v2"
[apis.tickets.operations.createTicket]
effect = "dangerous"
most_cost_micros = 500
"""
ENVIRONMENT = {"WEATHER_KEY": "w1", "NEWS_TOKEN": "n1"}


def test_servers_and_interfaces_are_read_with_the_variables_that_they_name(tmp_path: Path) -> None:
    path = tmp_path / "outside.toml"
    path.write_text(GOOD)

    configured = load_outside_tools(path, ENVIRONMENT)

    weather, news = configured.servers["weather"], configured.servers["news"]
    assert weather.command == ("weather-server", "--key", "w1")
    assert weather.environment == {"WEATHER_KEY": "w1", "MODE": "desk"}
    assert weather.tools["get_forecast"].effect is EffectClass.READ
    assert news.headers == {"Authorization": "Bearer n1"}
    assert news.tools["news/list"].name == "list_news"
    operation = configured.apis["tickets"].operations["createTicket"]
    assert (operation.effect, operation.most_cost_micros) == (EffectClass.DANGEROUS, 500)


SERVER = "[servers.weather]\n"
TOOL = "\n[servers.weather.tools.t]\neffect = 'read'\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[servers", "the tools in 'outside.toml'"),
        ("[tools]\n", "tools: Extra inputs are not permitted"),
        (f"{SERVER}{TOOL}", "expected either a command or a url"),
        (f"{SERVER}command = ['a']\nurl = 'https://a.b'{TOOL}", "either a command or a url"),
        (f"{SERVER}url = 'ftp://a.b'{TOOL}", "begins with https:// or http://"),
        (f"{SERVER}url = 'https://u:p@a.b'{TOOL}", "must not contain a user, query or fragment"),
        (
            f"{SERVER}url = 'https://a.b'\nenvironment = {{A = 'b'}}{TOOL}",
            "are only allowed with a command",
        ),
        (
            f"{SERVER}command = ['a']\nheaders = {{A = 'b'}}{TOOL}",
            "headers are only allowed with a url",
        ),
        (f"{SERVER}command = ['a']\n", "servers.weather.tools"),
        (f"{SERVER}command = ['a']\n[servers.weather.tools.t]\n", "tools.t.effect: Field required"),
        (f"{SERVER}command = ['a']\n[servers.weather.tools.t]\neffect = 'safe'", "tools.t.effect"),
        (f"{SERVER}command = ['a']{TOOL}name = 'a b'", "tools.t.name"),
        (f"{SERVER}command = ['a']{TOOL}pin = 'sha256:1'", "tools.t.pin"),
        (
            f"{SERVER}command = ['${{ABSENT}}']{TOOL}",
            "the environment variable 'ABSENT' is not set",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place_and_the_expected_form(
    tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "outside.toml"
    path.write_text(content)

    with pytest.raises(InvalidToolSet) as raised:
        load_outside_tools(path, ENVIRONMENT)

    assert reason in str(raised.value)
    assert "w1" not in str(raised.value)


def test_a_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidToolSet, match=r"'absent\.toml'"):
        load_outside_tools(tmp_path / "absent.toml", {})
