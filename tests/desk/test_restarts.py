"""Processes die during a question and come back: no answer is lost, doubled or paid twice."""

import asyncio
import json
import multiprocessing
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.embedded_redis import answers
from deploy.assembly.assistant_prompts import TASK_OF_ROLE
from deploy.assembly.runtime import KNOWING, ROLES, connect_runtime, desk
from memory.key_names import conversation_keys
from tests.desk import killable_worker
from tests.desk.conftest import OpenApp
from tests.support.app_harness import (
    AppHarness,
    ConversationDriver,
    command,
    environment,
    options,
    refdesk,
    settings_of,
)
from tests.support.flow_path import main_path
from tests.support.model_server import ModelServer, Received, Response, running_server
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.redis, pytest.mark.usefixtures("redis_url")]

QUESTION = "How do I configure SMS routing rules?"
STAGES = tuple(main_path())
TASKS = tuple(TASK_OF_ROLE[stage] for stage in STAGES if stage in TASK_OF_ROLE)
AFTER = tuple(f"after-{stage}" for stage in STAGES[1:])
DECIDED = tuple(f"after-manager-{stage}" for stage in STAGES)
ASKING = tuple(f"in-{task}" for task in TASKS)
AGENTS = tuple(role for role in ROLES if role != "manager")
CREWS = {
    # The manager in the agents' process decides inside their settlements, but for the start.
    "together": ((*AFTER, "after-manager-start", *ASKING), [ROLES]),
    "apart": ((*AFTER, *DECIDED, *ASKING), [("manager",), AGENTS]),
}
"""Where the processes of a fleet stop, and the roles of each process."""


@pytest.fixture(scope="session")
def workers() -> Any:
    """Starts processes that have everything imported already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.desk.killable_worker"])
    return context


@contextmanager
def working(
    workers: Any, url: str, data: Path, roles: Sequence[str] = ROLES, *, stopping: bool = False
) -> Iterator[None]:
    """A worker process while inside; it is killed, never asked to stop."""
    process = workers.Process(target=killable_worker.main, args=(url, str(data), roles, stopping))
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


@pytest.mark.timeout(180)
@pytest.mark.parametrize("fleet", CREWS)
async def test_a_worker_killed_at_any_stage_loses_doubles_and_pays_nothing_twice(
    fleet: str, workers: Any, client: Any, redis_url: str, library: Path
) -> None:
    names, processes = CREWS[fleet]
    settings = settings_of(library, redis_url=redis_url)
    async with connect_runtime(settings) as post:
        opened = desk(post, "test")
        talks = {name: ConversationDriver(opened, post.broker) for name in names}
        for name, driver in talks.items():
            await opened.submit(driver.message(QUESTION, name))

        async def all_stopped() -> bool:
            return set(await client.lrange(killable_worker.REACHED, 0, -1)) == {
                n.encode() for n in names
            }

        with ExitStack() as stack:
            for roles in processes:
                stack.enter_context(working(workers, redis_url, library, roles, stopping=True))
            await wait_until(all_stopped)
        with working(workers, redis_url, library):
            replies = {
                name: await opened.ask(driver.message(QUESTION, name))
                for name, driver in talks.items()
            }
        journals = {name: await driver.journal(replies[name]) for name, driver in talks.items()}

    assert {name: reply["outcome"] for name, reply in replies.items()} == dict.fromkeys(
        names, "answered"
    )
    finished = {
        name: [e.kind for e in journal].count("finished") for name, journal in journals.items()
    }
    assert finished == dict.fromkeys(names, 1)
    wrote = {
        name: [e.fields["role"] for e in journal if e.kind == "agent_run"]
        for name, journal in journals.items()
    }
    assert wrote == {name: list(STAGES[1:]) for name in names}
    turns = [
        await client.llen(conversation_keys(opened.question(driver.message("-")), 1).history)
        for driver in talks.values()
    ]
    assert turns == [2] * len(names)
    asked = {
        key.decode(): int(count)
        for key, count in (await client.hgetall(killable_worker.ASKED)).items()
    }
    # A call that was cut off in the middle was never finished: only that one is made again.
    expected = {
        f"{name}/{task}": 2 if name == f"in-{task}" else 1 for name in names for task in TASKS
    }
    assert asked == expected


async def test_two_messages_of_a_conversation_take_turns_over_two_worker_processes(
    workers: Any, client: Any, redis_url: str, library: Path
) -> None:
    settings = settings_of(library, redis_url=redis_url)
    async with connect_runtime(settings) as post:
        driver = ConversationDriver(desk(post, "test"), post.broker)
        messages = [
            driver.message(QUESTION, "first"),
            driver.message("How do I test them?", "second"),
        ]
        for message in messages:
            await driver.desk.submit(message)
        with (
            working(workers, redis_url, library),
            working(workers, redis_url, library, [r for r in ROLES if r not in KNOWING]),
        ):
            replies = [await driver.desk.ask(message) for message in messages]
        journals = [await driver.journal(message) for message in messages]

    assert [reply["outcome"] for reply in replies] == ["answered", "answered"]
    ended = next(entry.at for entry in journals[0] if entry.kind == "finished")
    began = next(entry.at for entry in journals[1] if entry.kind == "routed")
    assert began >= ended
    # The second is searched for together with the first, which had ended before.
    assert "routing/test-routing-rules.md" in str(replies[1]["sources"])


DAY_MILLISECONDS = 86_400_000


async def pass_days(client: Any, days: int) -> None:
    """Move the clock: everything that dies is so much nearer to its end, or gone."""
    for key in [key async for key in client.scan_iter()]:
        left = await client.pttl(key)
        if left >= 0:
            await client.pexpire(key, left - days * DAY_MILLISECONDS)


async def pause_conversation(harness: AppHarness) -> tuple[ConversationDriver, str]:
    driver = harness.driver()
    asked = await driver.say("How do I set it up?")
    assert asked["outcome"] == "clarification"
    return driver, options(asked)[1]


async def test_a_question_back_can_be_answered_a_day_later(open_app: OpenApp) -> None:
    async with open_app() as harness:
        driver, choice = await pause_conversation(harness)
    async with open_app() as harness:
        await pass_days(harness.client, 1)
        resumed = ConversationDriver(
            harness.desk, harness.broker, conversation_id=driver.conversation_id
        )
        reply = await resumed.say("2")

    assert reply["outcome"] == "answered"
    assert choice in {source["title"] for source in reply["sources"]}


async def test_a_question_back_is_forgotten_with_its_conversation_after_a_month(
    open_app: OpenApp,
) -> None:
    async with open_app() as harness:
        driver, _ = await pause_conversation(harness)
        await pass_days(harness.client, 31)
        reply = await driver.say("2")
        [found] = await driver.read_writes(reply, "essence")

    assert found["context_type"] == "new_topic"
    assert "clarification_result" not in found or found["clarification_result"] is None


def keeper_of(data: Path) -> tuple[int, Path]:
    broker = data / "broker"
    return int((broker / "keeper.pid").read_text()), broker / (broker / "socket").read_text()


def runs(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


async def until_stopped(data: Path) -> None:
    """Wait until the data folder's server is gone, and nothing is left of it."""
    keeper, path = keeper_of(data)

    async def has_stopped() -> bool:
        return not runs(keeper) and not answers(path)

    await wait_until(has_stopped)


async def test_a_question_back_survives_a_restart_of_everything(own_library: Path) -> None:
    asked = refdesk(own_library, "ask", "--json", "--conversation", "c", "How do I set it up?")
    await until_stopped(own_library)
    second = json.loads(asked.stdout)["suggested_actions"][1]["label"]
    reply = refdesk(own_library, "ask", "--json", "--conversation", "c", "2")
    await until_stopped(own_library)

    assert (asked.returncode, asked.stderr) == (3, "")
    assert (reply.returncode, reply.stderr) == (0, "")
    assert second in {source["title"] for source in json.loads(reply.stdout)["sources"]}


@contextmanager
def serving(data: Path, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that works for others while inside, up and at work."""
    with subprocess.Popen(
        command(*words),
        cwd=data,
        env=environment(data, pythonunbuffered="1"),
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        try:
            assert b"working as" in process.stdout.readline()
            yield process
        finally:
            process.kill()


async def test_commands_at_once_share_one_server_and_the_last_one_stops_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(serving(tmp_path, "worker", "--role", "lang"))
        keeper, path = keeper_of(tmp_path)
        second = stack.enter_context(serving(tmp_path, "worker", "--role", "command"))
        shared = keeper_of(tmp_path) == (keeper, path)
        first.send_signal(signal.SIGTERM)
        assert first.wait() == 0
        still_there = answers(path) and runs(keeper)
        second.send_signal(signal.SIGTERM)
        assert second.wait() == 0
        await until_stopped(tmp_path)

    assert (shared, still_there) == (True, True)


async def test_two_questions_asked_at_once_share_the_index_and_are_both_answered(
    own_library: Path,
) -> None:
    asking = [
        await asyncio.create_subprocess_exec(
            *command("ask", "--json", question),
            cwd=own_library,
            env=environment(own_library),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for question in (QUESTION, "What does error 4029 mean?")
    ]
    outputs = await asyncio.gather(*(process.communicate() for process in asking))
    await until_stopped(own_library)

    assert [process.returncode for process in asking] == [0, 0]
    assert [errors for _, errors in outputs] == [b"", b""]
    assert [json.loads(out)["outcome"] for out, _ in outputs] == ["answered", "answered"]


class HoldingServer(ModelServer):
    """Understands every question, and holds the answers to all but `first` until `released`."""

    def __init__(self, first: str) -> None:
        super().__init__("")
        self._first = first
        self.released = asyncio.Event()

    def choose_response(self, received: Received) -> Response:
        prompt = json.dumps(received.body["messages"])
        if "canonical_question" in json.dumps(received.body.get("response_format")):
            output = {"canonical_question": "", "context_type": "new_topic", "verdict": "within"}
            return Response(body=complete({**output, "details": None}))
        answer = {"status": "answered", "answer": "The page states it. [1]", "missing": ""}
        gates = {} if self._first in prompt else {0: self.released}
        return Response(body=complete({**answer, "confidence": 0.9}), gates=gates)


def complete(output: dict[str, object]) -> bytes:
    """A completion with this output."""
    message = {"role": "assistant", "content": json.dumps(output)}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "small"}
    return json.dumps({**body, "choices": [choice], "usage": usage}).encode() + b"\n\n"


async def test_a_command_that_ends_first_costs_no_other_a_second_model_call(
    own_library: Path,
) -> None:
    questions = (QUESTION, "What does error 4029 mean?", "How long is an invitation valid?")
    server = HoldingServer(QUESTION)
    async with running_server(server):
        settings = {
            "gen_model": "small@openai", "openai_api_key": "k",
            "openai_base_url": f"{server.url}/v1", "judge": "never",
        }  # fmt: skip
        asking = [
            await asyncio.create_subprocess_exec(
                *command("ask", "--json", question),
                cwd=own_library,
                env=environment(own_library, **settings),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for question in questions
        ]
        assert asking[0].stdout is not None
        reply = await asking[0].stdout.readline()
        server.released.set()
        outputs = await asyncio.gather(*(process.communicate() for process in asking))
        await until_stopped(own_library)

    prompts = [json.dumps(received.body["messages"]) for received in server.received]
    assert len(prompts) == len(set(prompts)) == 2 * len(questions)
    assert [process.returncode for process in asking] == [0] * len(asking)
    whole = [reply + outputs[0][0], *(out for out, _ in outputs[1:])]
    assert [json.loads(out)["outcome"] for out in whole] == ["answered"] * len(asking)


async def test_a_desk_killed_with_everything_leaves_nothing_behind_and_can_be_asked_again(
    own_library: Path,
) -> None:
    with serving(own_library, "up") as desk_process:
        beside = refdesk(own_library, "ask", "--json", "--conversation", "c", QUESTION)
        desk_process.kill()
    await until_stopped(own_library)
    again = refdesk(own_library, "ask", "--json", "--conversation", "c", "How do I test them?")
    await until_stopped(own_library)

    assert [beside.returncode, again.returncode] == [0, 0]
    assert json.loads(beside.stdout)["outcome"] == "answered"
    assert json.loads(again.stdout)["outcome"] == "answered"
