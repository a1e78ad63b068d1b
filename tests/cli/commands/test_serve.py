"""`refdesk serve` opens every part of the HTTP server."""

import re
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run

import httpx
import pytest

from tests.support.app_harness import ROOT, command, environment
from tests.support.ports import free_port
from tests.support.waiting import block_until


@pytest.mark.slow
def test_the_desk_serves_its_page_its_widget_and_its_answers(tmp_path: Path) -> None:
    health_port = str(free_port())
    health = f"http://127.0.0.1:{health_port}"
    settings = {"domain_name": "SMS", "domain_scope": "messages", "health_port": health_port}
    serving = Popen(
        command("serve", "--port", "0"),
        cwd=tmp_path,
        env=environment(tmp_path / "data", **settings),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        text=True,
    )
    try:
        assert serving.stdout is not None
        results = re.search(r"http://\S+:\d+", serving.stdout.readline())
        assert results is not None
        with httpx.Client(base_url=results[0], timeout=None) as client:
            script = client.get("/widget").json()["src"]
            page = client.get("/").text
            kind = client.get(script).headers["content-type"]
            answer = client.post("/v1/conversations/c1/messages", json={"text": "/help"}).json()
            figures = [_await_figures(client, f"{place}/metrics") for place in (results[0], health)]
            questions = _open_console(client, tmp_path)
    finally:
        serving.terminate()
        serving.communicate()

    assert script in page
    assert kind == "text/javascript; charset=utf-8"
    assert answer["outcome"] == "answered"
    assert all('refdesk_http_outcomes_total{outcome="answered"} 1.0' in page for page in figures)
    assert ROOT.as_posix() not in page
    assert ">/help</a>" in questions


def _await_figures(client: httpx.Client, address: str) -> str:
    """Return the metrics, once the question is in them; the first look begins the counting."""
    awaited = (
        'refdesk_questions_total{assistant="default",channel="http",outcome="answered"',
        'refdesk_handling_seconds_count{role="command"} 1.0',
        'refdesk_depth{role="command"} 0.0',
    )

    def look() -> str:
        page = client.get(address).text
        return page if all(item in page for item in awaited) else ""

    found: str = block_until(look)
    return found


def _open_console(client: httpx.Client, folder: Path) -> str:
    """Return the list of questions, as the owner sees it, once the first one is recorded."""
    told = run(
        command("console", "--port", str(client.base_url.port)),
        cwd=folder,
        env=environment(folder / "data"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert client.get(told.stdout.split()[0], follow_redirects=True).status_code == 200

    def look() -> str:
        page = client.get("/console/questions?all=true").text
        return page if "/help" in page else ""

    found: str = block_until(look)
    return found
