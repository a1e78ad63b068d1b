"""A question that ends at a limit says why, in the language of the user."""

import re
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import httpx
import pytest

from deploy.assembly.agent_factory import MODEL_RESERVE_SECONDS
from tests.deploy.conftest import OpenApp
from tests.support.app_harness import PATIENCE_SECONDS, command, environment
from tests.support.folder_copy import copy_folder

pytestmark = pytest.mark.slow
VAGUE = "How do I change it?"
ROUNDS = "Ich habe so oft nachgefragt, wie es sinnvoll ist"
LIMITS = {
    "domain_name": "SMS platform documentation",
    "domain_scope": "setting up and running an SMS messaging platform",
    "max_clarification_rounds": "1",
}


@pytest.fixture
def data(library: Path, tmp_path: Path) -> Path:
    """A data folder of this test alone, with the example documents."""
    return copy_folder(library, tmp_path / "data")


def test_a_limit_is_explained_over_http_in_the_language_of_the_user(
    data: Path, tmp_path: Path
) -> None:
    serving = Popen(
        command("serve", "--port", "0"),
        cwd=tmp_path,
        env=environment(data, **LIMITS),
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
            path = "/v1/conversations/c1/messages"
            client.post(path, json={"text": "/set_language de"})
            client.post(path, json={"text": VAGUE})
            answer = client.post(path, json={"text": "hm"})
    finally:
        serving.terminate()
        serving.communicate(timeout=PATIENCE_SECONDS)

    reply = answer.json()
    assert answer.is_success, reply
    assert (reply["outcome"], reply["termination_reason"]) == ("refused", "round_limit")
    assert reply["text"].startswith(ROUNDS)


async def test_a_question_without_an_answer_at_its_time_limit_says_that_it_took_too_long(
    open_app: OpenApp,
) -> None:
    seconds = MODEL_RESERVE_SECONDS + 0.001
    async with open_app(deadline_seconds=seconds, agent_timeout_seconds=5.0) as harness:
        reply = await harness.driver().say("Wie konfiguriere ich Regeln für das Routing von SMS?")

    assert (reply["outcome"], reply["termination_reason"]) == ("failed", "total_time_limit")
    assert reply["text"].startswith("Entschuldigung, das hat zu lange gedauert")
    assert reply["message_id"] in reply["text"]
