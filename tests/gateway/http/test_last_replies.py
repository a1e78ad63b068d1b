"""An end without an answer reports its true reason over HTTP, with the pages that were found."""

from envelope.role import Role
from tests.support.held_answer import DEADLINE_SECONDS, PAGE, hold_answer
from tests.support.http_server import open_http_server
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
QUESTION = {"text": "How do I add a rule?"}


async def test_at_the_deadline_of_a_found_question_the_time_and_the_pages_are_shown(
    harness: WorkerHarness,
) -> None:
    go_on = hold_answer(harness)
    documentation = {("acme", "docs"): PAGE.url or ""}
    server = open_http_server(
        harness, deadline_seconds=DEADLINE_SECONDS, documentation=documentation
    )
    async with harness.open(), server as http_server:
        completed = {"model": "docs", "messages": [{"role": "user", "content": "How?"}]}
        reply = (await http_server.client().post(MESSAGES, json=QUESTION)).json()
        later = hold_answer(harness)
        plain = (await http_server.client().post("/v1/chat/completions", json=completed)).json()
        go_on.set()
        later.set()

    assert (reply["outcome"], reply["termination_reason"]) == ("failed", "deadline")
    assert reply["text"] == "deadline/en\n\nreference/en\n\nnearest_pages/en\n- Routing rules"
    assert reply["suggested_actions"][0]["link"] == PAGE.url
    content = plain["choices"][0]["message"]["content"]
    assert content.endswith(f"- [Routing rules]({PAGE.url})")


async def test_an_agent_that_always_fails_ends_its_question_with_a_fault_and_not_with_its_time(
    harness: WorkerHarness,
) -> None:
    async with harness.open(), open_http_server(harness) as http_server:
        harness.script.next(Role.LANG, *[ValueError("broken")] * 9)
        failed = (await http_server.client().post(MESSAGES, json=QUESTION)).json()

    assert failed["termination_reason"] == "lang_failed"
    assert failed["text"].startswith("apology/en")
