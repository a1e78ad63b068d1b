"""Dead letters on the command line: shown, run again, dropped."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker.keys import question_keys
from broker.redis_broker import RedisBroker
from broker.values import Bury, DeadLetter
from cli.commands.dead import find_branch
from config.settings import load_settings
from deploy.assembly.runtime import connect_runtime
from envelope.role import Role
from gateway.dead_letters import DeadLetters
from gateway.desk import Desk, Message
from gateway.errors import MessageError
from tests.support.broker_harness import carrying
from tests.support.command_line import CLEAR, Run


@pytest.mark.slow
def test_no_dead_letters_is_said_so(run: Run) -> None:
    assert run("dead", "list").out == "no dead letters\n"
    assert run("dead", "list", "--json").json == []


@pytest.mark.slow
def test_a_dead_letter_is_shown_run_again_whole_and_dropped(served: Run, library: Path) -> None:
    original = _bury(library, CLEAR)

    (letter,) = _letters_of(original, served)
    assert (letter["reason"], letter["role"]) == ("failed", "manager")
    assert letter["id"] in served("dead", "list").out
    assert CLEAR in served("dead", "show", letter["id"]).out
    assert letter["accepted_at"] <= letter["queued_at"] <= letter["at"]

    again = served("dead", "retry", letter["id"])

    fresh = again.out.split("message ")[1].split(";")[0]
    assert fresh.startswith(f"{original}-retry-")
    entries = read_finished(fresh, served)
    assert entries[0]["fields"]["retry_of"] == original
    assert entries[1]["fields"]["stage"] == "start"
    assert (entries[-1]["kind"], entries[-1]["fields"]["outcome"]) == ("finished", "answered")

    assert served("dead", "drop", letter["id"]).out == f"dropped {letter['id']}\n"
    assert _letters_of(original, served) == []


@pytest.mark.slow
def test_a_dead_letter_that_is_run_again_delivers_only_on_request(
    served: Run, library: Path
) -> None:
    original = _bury(library, CLEAR, result_list="chat")
    (letter,) = _letters_of(original, served)

    quiet = served("dead", "retry", letter["id"]).out.split("message ")[1].split(";")[0]
    message_id = (
        served("dead", "retry", letter["id"], "--deliver").out.split("message ")[1].split(";")[0]
    )
    read_finished(quiet, served)
    read_finished(message_id, served)

    assert list_delivered(library, "chat") == [original, message_id]
    assert _record_of(library, message_id)[b"of"].decode() == original


def _letters_of(message_id: str, served: Run) -> list[Any]:
    listed = served("dead", "list", "--json").json
    return [letter for letter in listed if letter["message"] == message_id]


def read_finished(message_id: str, served: Run) -> Any:
    """The journal of a message that waits; whoever asks works through what came before."""
    for _ in range(5):
        assert served("ask", CLEAR).status == 0
        entries = served("trace", message_id, "--json").json
        if entries[-1]["kind"] == "finished":
            return entries
    pytest.fail(f"{message_id} was not worked through")


def list_delivered(data: Path, name: str) -> list[str]:
    """The messages whose replies stand on a result list, oldest first."""

    async def read() -> list[str]:
        async with connect_runtime(load_settings(refdesk_data=data)) as post:
            assert isinstance(post.broker, RedisBroker)
            results = post.broker.result_list(name, "w-1")
            taken = await results.take(slots=10, block_seconds=0.0)
            return [result.question.message_id for result in taken]

    return asyncio.run(read())


def _record_of(data: Path, message_id: str) -> dict[bytes, bytes]:
    async def read() -> dict[bytes, bytes]:
        async with connect_runtime(load_settings(refdesk_data=data)) as post:
            (question,) = await post.broker.admin.find_questions(message_id)
            client: Any = post.endpoint.client()
            found: dict[bytes, bytes] = await client.hgetall(question_keys(question, 0).record)
            await client.aclose()
            return found

    return asyncio.run(read())


def _bury(data: Path, text: str, *, result_list: str = "") -> str:
    """Accept a question, and give it up as a worker does whose agent failed thrice."""
    name = f"m-dead-{result_list}" if result_list else "m-dead"

    async def act() -> str:
        settings = load_settings(refdesk_data=data)
        async with connect_runtime(settings) as runtime:
            broker = runtime.broker
            desk = Desk(
                broker.producer,
                broker.replies,
                tenant=settings.tenant,
                assistant=settings.assistant,
                channel="cli",
                deadline_seconds=60.0,
                words=lambda _key, _language: "sorry",
                result_list=result_list,
            )
            await desk.submit(Message(text, "c-dead", name))
            role = Role.MANAGER.value
            taken = await broker.consumer.take(role, "w-1", slots=1, block_seconds=1.0)
            settled = await broker.settle([(taken[0], Bury("failed", "ValueError: no rule"))])
            assert list(settled) == [True]
        return name

    return asyncio.run(act())


def make_letter(frame: bytes) -> DeadLetter:
    return DeadLetter(
        id="0-1-1",
        role="tool",
        shard=0,
        question=carrying().question,
        reason="failed",
        error="ValueError",
        attempts=3,
        worker="w",
        at=1.0,
        frame=frame,
    )


def test_a_letter_shows_the_branch_that_it_ended() -> None:
    branch = carrying().with_branch("w2/t1", {"stage": "call"})

    assert find_branch(make_letter(branch.encode())) == "w2/t1"
    assert find_branch(make_letter(carrying().encode())) == ""
    assert find_branch(make_letter(b"no frame")) == ""


async def test_a_branch_does_not_run_again_without_its_question() -> None:
    envelope = carrying()
    letter = make_letter(envelope.with_branch("t1", {"stage": "call"}).encode())
    producer: Any = None  # nothing is submitted
    letters = DeadLetters(producer, lambda _key, _language: "", "en", 60.0, lambda *_: 60.0)

    with pytest.raises(MessageError, match=f"branch t1 of message {envelope.message_id}"):
        await letters.retry(letter, deliver=False)
