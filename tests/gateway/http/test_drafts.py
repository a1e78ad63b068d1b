"""What an HTTP client sees of an answer while it is written, and what is taken back."""

from typing import Any

import openai
import pytest

from broker.values import JournalEntry
from citations.marking import remove_marks
from envelope.question import Question
from gateway.answer import answer_of
from gateway.events import DraftFollower
from gateway.http.context import Release
from tests.gateway.erasing.canary import make_canary
from tests.support.drafting import FIRST, SECOND, DraftedAnswer
from tests.support.http_server import (
    HttpServerFixture,
    RecordedRequests,
    events,
    open_http_server,
    read_events,
)
from tests.support.worker_harness import WorkerHarness

MESSAGES = "/v1/conversations/c1/messages"
BODY = {"text": "How do I add a rule?", "message_id": "m1"}
STREAM = {"Accept": "text/event-stream"}
WHOLE = f"{FIRST} {SECOND}"


def drafts_of(seen: list[RecordedRequests]) -> list[str]:
    """Return the text that a client shows after each event of a draft."""
    texts, shown = [], ""
    for event in seen:
        if event.name == "draft":
            data: Any = event.data
            shown = shown[: data["offset"]] + data["text"]
            texts.append(shown)
    return texts


async def read_until_whole(http_server: HttpServerFixture, drafted: DraftedAnswer) -> Any:
    """Send a question and follow it; the agent goes on when its drafts were seen."""
    seen: list[RecordedRequests] = []
    client = http_server.client()
    async with client.stream("POST", MESSAGES, json=BODY, headers=STREAM) as answer:
        async for event in read_events(answer):
            seen.append(event)
            shown = drafts_of(seen)
            if shown:
                drafted.first.set()
            if shown and shown[-1] == WHOLE:
                drafted.whole.set()
    return seen


async def test_a_draft_grows_by_what_is_new_until_the_answer_replaces_it(
    http_server: HttpServerFixture,
) -> None:
    drafted = DraftedAnswer(http_server.harness)
    drafted.script()

    seen = await read_until_whole(http_server, drafted)

    drafts: list[Any] = [event.data for event in seen if event.name == "draft"]
    assert [draft["offset"] for draft in drafts] == [0, len(FIRST)]
    assert drafts_of(seen) == [FIRST, WHOLE]
    assert drafts[0]["sources"][0]["link"] == "https://docs.acme.test/rules"
    assert seen[-1].data["text"] == WHOLE
    assert [event.name for event in seen if event.name == "retracted"] == []


async def test_a_rejected_draft_is_retracted_before_the_answer(
    http_server: HttpServerFixture,
) -> None:
    drafted = DraftedAnswer(http_server.harness)
    drafted.script(approved=FIRST)

    seen = await read_until_whole(http_server, drafted)

    names = [event.name for event in seen]
    [retracted] = [event.data for event in seen if event.name == "retracted"]
    assert retracted["sentences"] == ["Rules are tried by priority."]
    assert names.index("retracted") < names.index("text")
    assert len({event.id for event in seen}) == len(seen)


@pytest.mark.parametrize(
    ("target", "is_quoted", "taken_back"),
    [("loop_judge", False, []), ("reason", False, [WHOLE]), ("reason", True, [])],
    ids=["judged next", "more is looked for", "passages of the documents"],
)
def test_a_draft_is_taken_back_when_more_is_looked_for_unless_it_quotes_the_documents(
    target: str, is_quoted: bool, taken_back: list[str]
) -> None:
    question = Question(tenant="acme", assistant="docs", conversation_id="c1", message_id="m1")
    follower = DraftFollower(question, shows=lambda reply, _: answer_of(reply, words=str.join))
    steps: list[tuple[str, dict[str, Any]]] = [
        (
            "draft",
            {
                "draft": "a",
                "text": WHOLE,
                "language": "en",
                "sources": [],
                "is_quoted": is_quoted,
            },
        ),
        ("routed", {"stage": "write", "target": target, "event": "completed"}),
    ]

    seen = [
        event
        for number, (kind, fields) in enumerate(steps)
        for event in follower.read(JournalEntry(kind, fields, f"{number}-0"))
    ]

    found: list[Any] = [event.data["sentences"] for event in seen if event.name == "retracted"]
    assert [" ".join(item) for item in found] == [remove_marks(item) for item in taken_back]


async def test_a_client_that_comes_back_gets_the_whole_draft_and_every_retraction(
    http_server: HttpServerFixture,
) -> None:
    drafted = DraftedAnswer(http_server.harness)
    drafted.script(approved=FIRST)
    client = http_server.client()
    seen: list[RecordedRequests] = []
    async with client.stream("POST", MESSAGES, json=BODY, headers=STREAM) as answer:
        async for event in read_events(answer):
            seen.append(event)
            if event.name == "draft":
                break

    drafted.first.set()
    drafted.whole.set()
    path, resumed = f"{MESSAGES}/m1/events", {"Last-Event-ID": seen[-1].id}
    seen += await events(client, "GET", path, headers=resumed)

    assert drafts_of(seen)[0] == FIRST
    assert [event.data["offset"] for event in seen if event.name == "draft"][1:] in ([], [0])
    assert [event.data["sentences"] for event in seen if event.name == "retracted"] == [
        ["Rules are tried by priority."]
    ]
    assert "".join(str(event.data["text"]) for event in seen if event.name == "text") == FIRST
    assert [event.name for event in seen].count("done") == 1
    assert len({event.id for event in seen}) == len(seen)


async def test_a_client_that_comes_late_is_shown_no_draft(http_server: HttpServerFixture) -> None:
    drafted = DraftedAnswer(http_server.harness)
    drafted.script()
    await read_until_whole(http_server, drafted)

    seen = await events(http_server.client(), "GET", f"{MESSAGES}/m1/events")

    assert drafts_of(seen) == []
    assert seen[-1].data["text"] == WHOLE


async def test_approved_release_sends_no_draft(harness: WorkerHarness) -> None:
    drafted = DraftedAnswer(harness)
    drafted.script()
    drafted.first.set()
    drafted.whole.set()

    server = open_http_server(harness, release="approved")
    async with harness.open(), server as http_server:
        seen = await events(http_server.client(), "POST", MESSAGES, json=BODY)

    assert drafts_of(seen) == []
    assert seen[-1].data["text"] == WHOLE


async def test_a_visitor_sees_drafts_of_the_own_conversation_alone(
    http_server: HttpServerFixture,
) -> None:
    token = await http_server.public()
    one, other = await http_server.visitor(token), await http_server.visitor(token)
    first, second = DraftedAnswer(http_server.harness), DraftedAnswer(http_server.harness)
    first.script()
    path = f"{one.path}/messages"
    async with one.client.stream("POST", path, json=BODY, headers=STREAM) as answer:
        seen = [event async for event in until_drafted(answer)]
        foreign = await other.client.get(f"{path}/m1/events")
        second.script()
        second.first.set()
        second.whole.set()
        own = await events(other.client, "POST", f"{other.path}/messages", json=BODY)
        first.first.set()
        first.whole.set()

    assert drafts_of(seen) == [FIRST]
    assert foreign.status_code in {403, 404}
    assert "Routing" not in foreign.text
    ids = {event.data["conversation_id"] for event in own if event.name == "done"}
    assert ids == {other.conversation_id}
    assert not {event.id for event in own if event.name == "draft"} & {event.id for event in seen}


async def until_drafted(answer: Any) -> Any:
    """Yield the events of a stream up to its first draft."""
    async for event in read_events(answer):
        yield event
        if event.name == "draft":
            return


async def test_nothing_is_left_of_a_draft_whose_conversation_is_forgotten(
    http_server: HttpServerFixture,
) -> None:
    harness, word = http_server.harness, make_canary()
    drafted = DraftedAnswer(harness, sentences=(f"Open {word}. [1]", f"Close {word}. [1]"))
    drafted.script()
    client = http_server.client()
    async with client.stream("POST", MESSAGES, json=BODY, headers=STREAM) as answer:
        seen = [event async for event in until_drafted(answer)]
        before = await find_keys(harness, word)
        forgotten = await client.delete("/v1/conversations/c1")
        after = await find_keys(harness, word)
        drafted.first.set()
        await drafted.went_on.wait()
        later = await find_keys(harness, word)
        drafted.whole.set()

    assert drafts_of(seen) == [f"Open {word}. [1]"]
    assert before
    assert forgotten.status_code == 204
    assert (after, later) == ([], [])


async def find_keys(harness: WorkerHarness, word: str) -> list[str]:
    """Return the keys of Redis whose content holds a word."""
    dumps = {key: await harness.client.dump(key) for key in await harness.client.keys("*")}
    return [key.decode() for key, dump in dumps.items() if word.encode() in (dump or b"")]


async def complete(harness: WorkerHarness, release: Release | None, approved: str) -> list[Any]:
    """Return the chunks of a completion, read by the official client."""
    drafted = DraftedAnswer(harness)
    drafted.script(approved)
    chunks: list[Any] = []
    async with harness.open(), open_http_server(harness, release=release) as http_server:
        key = await http_server.key()
        async with openai.AsyncOpenAI(base_url=f"{http_server.url}/v1", api_key=key) as desk:
            stream: Any = await desk.chat.completions.create(
                model="docs", messages=[{"role": "user", "content": BODY["text"]}], stream=True
            )
            if release is None:
                drafted.first.set()
                drafted.whole.set()
            async for chunk in stream:
                chunks.append(chunk)
                said = content_of(chunks)
                if said:
                    drafted.first.set()
                if said == WHOLE:
                    drafted.whole.set()
    return chunks


def content_of(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


@pytest.mark.parametrize(
    ("release", "approved"),
    [(None, FIRST), ("checked", f"{WHOLE}\n\nThe documents do not say: the price")],
)
async def test_a_completion_shows_drafts_only_where_it_is_released_early_and_continues_them(
    harness: WorkerHarness, release: Release | None, approved: str
) -> None:
    assert content_of(await complete(harness, release, approved)) == approved


@pytest.mark.parametrize("approved", [FIRST, "Something else. [1]"])
async def test_a_completion_corrects_visibly_what_was_taken_back(
    harness: WorkerHarness, approved: str
) -> None:
    chunks = await complete(harness, "checked", approved)

    content = content_of(chunks)
    assert content == f"{WHOLE}\n\nretracted/en\n\n{approved}"
    [annotation] = chunks[-1].choices[0].delta.annotations
    place = annotation["url_citation"]
    assert content[place["start_index"] : place["end_index"]] == "[1]"
    assert place["start_index"] > len(WHOLE)
