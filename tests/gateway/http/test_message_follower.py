"""Messages as jobs: accepted at once, read later, by another way, with more time."""

from broker.values import Fields
from envelope.question import Question
from envelope.role import Role
from gateway.desk import read_deadline
from gateway.events import Event
from gateway.http.routes.message_follower import count_progress
from tests.support.http_server import HttpServerFixture, events, open_http_server
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
SENT = {"text": "How do I add a rule?", "message_id": "m1"}
ASYNC = {"Prefer": "respond-async"}
QUESTION = Question(tenant="acme", assistant="docs", conversation_id="c1", message_id="m1")


async def test_a_job_is_accepted_at_once_and_read_when_it_has_ended(
    http_server: HttpServerFixture,
) -> None:
    held = http_server.harness.script.hold(Role.SEARCH)
    client = http_server.client()

    started = await client.post(MESSAGES, json=SENT, headers={"Prefer": "wait=5, respond-async"})
    await held.reached.wait()
    running = (await client.get(f"{MESSAGES}/m1")).json()
    held.goes_on.set()
    seen = await events(client, "GET", f"{MESSAGES}/m1/events")
    ended = (await client.get(f"{MESSAGES}/m1")).json()

    assert started.status_code == 202
    assert started.headers["location"] == f"{MESSAGES}/m1"
    assert started.headers["preference-applied"] == "respond-async"
    assert started.json()["status"] == running["status"] == "running"
    assert running["progress"] == {"stage": "search", "branches": 0, "ended": 0}
    assert (ended["status"], ended["answer"]) == ("ended", seen[-1].data)
    assert (ended["text"], ended["answer"]["outcome"]) == (SENT["text"], "answered")


async def test_a_newer_message_replaces_the_one_that_it_names(
    http_server: HttpServerFixture,
) -> None:
    hanging = http_server.harness.script.hold(Role.SEARCH)
    client = http_server.client()
    newer = {"text": "How is an invoice paid?", "message_id": "m2", "supersedes": "m1"}

    await client.post(MESSAGES, json=SENT, headers=ASYNC)
    await hanging.reached.wait()
    unknown = await client.post(MESSAGES, json={**newer, "supersedes": "m9"})
    answered = await client.post(MESSAGES, json=newer)
    again = await client.post(MESSAGES, json={**newer, "message_id": "m3", "supersedes": "m2"})
    replaced = (await client.get(f"{MESSAGES}/m1")).json()
    kept = (await client.get(f"{MESSAGES}/m2")).json()

    assert unknown.status_code == 404
    assert (answered.json()["outcome"], again.json()["outcome"]) == ("answered", "answered")
    assert (replaced["status"], replaced["answer"]["outcome"]) == ("ended", "superseded")
    assert kept["answer"]["outcome"] == "answered", "a message that has ended is not replaced"


async def test_a_job_that_is_sent_twice_is_done_once(http_server: HttpServerFixture) -> None:
    client = http_server.client()

    first = await client.post(MESSAGES, json=SENT, headers=ASYNC)
    again = await client.post(MESSAGES, json=SENT, headers=ASYNC)
    other = await client.post(MESSAGES, json={**SENT, "text": "Else?"}, headers=ASYNC)
    await events(client, "GET", f"{MESSAGES}/m1/events")

    assert [first.status_code, again.status_code, other.status_code] == [202, 202, 409]
    assert len(http_server.harness.script.seen[Role.LANG]) == 1


async def test_a_job_has_the_time_of_a_job_and_a_message_that_of_a_message(
    harness: WorkerHarness,
) -> None:
    async with harness.open(), open_http_server(harness, job_seconds=500.0) as server:
        client = server.client()
        await client.post(MESSAGES, json=SENT, headers=ASYNC)
        await client.post(MESSAGES, json={**SENT, "message_id": "m2"})
        long, short = [
            (
                await server.channel.replies.read_journal(
                    QUESTION.model_copy(update={"message_id": name})
                )
            )[0]
            for name in ("m1", "m2")
        ]

    assert (read_deadline(long), read_deadline(short)) == (500.0, None)


async def test_a_message_names_its_way_and_an_unknown_one_is_refused(
    http_server: HttpServerFixture,
) -> None:
    client = http_server.client()

    known = await client.post(MESSAGES, json={**SENT, "way": "search"})
    unknown = await client.post(MESSAGES, json={**SENT, "message_id": "m2", "way": "fly"})
    visitor = await http_server.visitor(await http_server.public())
    refused = await visitor.client.post(
        f"{visitor.path}/messages", json={"text": "How?", "way": "search"}
    )

    assert known.json()["outcome"] == "answered"
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "way")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "way_refused")


def test_the_calls_of_a_worker_are_no_parts_that_have_ended() -> None:
    fields: list[tuple[str, Fields]] = [
        ("stage", {"stage": "worked", "branches": ["w1", "w2"]}),
        ("branch", {"branch": "w1/t1", "status": "completed"}),
        ("branch", {"branch": "w2/t1", "status": "completed"}),
        ("branch", {"branch": "w2", "status": "completed"}),
    ]

    progress = count_progress(Event("1-0.0", name, data) for name, data in fields)

    assert (progress.stage, progress.branches, progress.ended) == ("worked", 2, 1)
