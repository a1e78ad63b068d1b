"""`refdesk serve` opens every part of the HTTP server."""

import re
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, run

import httpx
import pytest

from tests.support.app_harness import PATIENCE_SECONDS, ROOT, command, environment
from tests.support.waiting import block_until


@pytest.mark.slow
def test_the_desk_serves_its_page_its_widget_and_its_answers(tmp_path: Path) -> None:
    serving = Popen(
        command("serve", "--port", "0"),
        cwd=tmp_path,
        env=environment(tmp_path / "data", domain_name="SMS", domain_scope="messages"),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        text=True,
    )
    try:
        assert serving.stdout is not None
        found = re.search(r"http://\S+:\d+", serving.stdout.readline())
        assert found is not None
        with httpx.Client(base_url=found[0], timeout=PATIENCE_SECONDS) as client:
            script = client.get("/widget").json()["src"]
            page = client.get("/").text
            kind = client.get(script).headers["content-type"]
            answer = client.post("/v1/conversations/c1/messages", json={"text": "/help"}).json()
            questions = _open_console(client, tmp_path)
    finally:
        serving.terminate()
        serving.communicate(timeout=PATIENCE_SECONDS)

    assert script in page
    assert kind == "text/javascript; charset=utf-8"
    assert answer["outcome"] == "answered"
    assert ROOT.as_posix() not in page
    assert ">/help</a>" in questions


def _open_console(client: httpx.Client, folder: Path) -> str:
    """Return the list of questions, as the owner sees it, once the first one is recorded."""
    told = run(
        command("console", "--port", str(client.base_url.port)),
        cwd=folder,
        env=environment(folder / "data"),
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    assert client.get(told.stdout.split()[0], follow_redirects=True).status_code == 200

    def look() -> str:
        page = client.get("/console/questions").text
        return page if "/help" in page else ""

    found: str = block_until(look)
    return found
