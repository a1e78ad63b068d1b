"""The desk as it is put together for users, on a Redis and with models of the test's choice."""

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pytest
import structlog

from broker.embedded_redis import Endpoint
from broker.values import JournalEntry
from cli.commands.ask import COMMANDS
from cli.main import main
from config.settings import Settings, load_settings
from deploy.assembly.knowledge import Knowledge, open_index
from deploy.assembly.runtime import ROLES, connect_runtime, desk, run_workers
from envelope.run import OUTSIDE, Run
from gateway.desk import Desk, Message
from gateway.text import parse_command
from knowledge.embedding import Embedder
from knowledge.search.searcher import LevelSearcher
from llm.missing_model import MissingModel
from llm.port import I, Model, ModelAnswer, ModelStep, O, Task, TextListener, ToolConversation
from llm.tasks.search import JudgeOutput, Verdict
from memory.key_names import conversation_keys
from tests.support.scripted_model import Scripted, ScriptedModel

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
DOMAIN = "SMS platform documentation"
TOPIC = "setting up and running an SMS messaging platform"
Fields = dict[str, Any]


def settings_of(data: Path, **changes: object) -> Settings:
    """Settings of a desk about the example documents, whatever the environment says."""
    return load_settings(
        **{
            "_env_file": None,
            "refdesk_data": data,
            "domain_name": DOMAIN,
            "domain_scope": TOPIC,
            "lease_seconds": 4.0,
            **changes,
        }
    )


@asynccontextmanager
async def open_knowledge_with(settings: Settings, embedder: Embedder) -> AsyncIterator[Knowledge]:
    """Open the index of these settings with an embedder that is loaded already."""
    index = await open_index(settings, embedder)
    try:
        yield Knowledge(
            index,
            embedder,
            LevelSearcher(index, embedder),
        )
    finally:
        await index.close()


def command(*words: str) -> list[str]:
    """A `refdesk` command to be started as a process."""
    return [sys.executable, "-m", "cli.main", *words]


def environment(data: Path, **settings: str) -> dict[str, str]:
    """The environment of such a process: the machine's variables, our code, these settings."""
    named = {name.upper(): value for name, value in settings.items()}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path, "REFDESK_DATA": str(data), **named}


def refdesk(
    data: Path, *words: str, given: bytes = b"", **settings: str
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end in this process, which has imported everything."""
    given_text = io.TextIOWrapper(io.BytesIO(given), "utf-8")
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(data)
        for name, value in {"refdesk_data": str(data), **settings}.items():
            patch.setenv(name.upper(), value)
        for name, stream in (("stdin", given_text), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        status = _run_beside_the_loop(words) if _has_a_loop() else _run_main(words)
    return subprocess.CompletedProcess(words, status, out.getvalue(), err.getvalue())


def _has_a_loop() -> bool:
    """Return whether this is a test with an event loop: a command needs one of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_beside_the_loop(words: Sequence[str]) -> int:
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(_run_main, words).result()


def _run_main(words: Sequence[str]) -> int:
    umask = os.umask(0o077)
    logging = structlog.get_config()
    try:
        return main(words)
    except SystemExit as left:
        return int(str(left.code))
    finally:
        os.umask(umask)
        structlog.configure(**logging)


class PartlyScriptedModel:
    """Asks the script for the tasks that are in it, and has no model for the others."""

    name = "scripted"

    def __init__(self, **script: Iterable[Scripted]) -> None:
        self.script = ScriptedModel({task: list(steps) for task, steps in script.items()})
        self.tasks = set(script)
        self._offline = MissingModel()

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        model: Model = self.script if task.name in self.tasks else self._offline
        return await model.ask(task, inputs, OUTSIDE, skip=skip, listener=listener)

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        model = self.script if conversation.task in self.tasks else self._offline
        return await model.converse(conversation, skip=skip)

    def find_asked(self, task: str) -> list[Any]:
        """What the script was asked for a task, in order."""
        return [call.inputs for call in self.script.calls if call.task == task]


def judge_all(decision: Literal["approve", "research", "regenerate"]) -> Any:
    """Return the script of a judge that finds the whole answer supported, or none of it."""

    def answer(inputs: Any) -> JudgeOutput:
        is_supported = decision != "regenerate"
        verdict = Verdict(passage=0, quote=inputs.answer, supported=is_supported)
        share = 1.0 if decision == "approve" else 0.1
        return JudgeOutput(
            claims_read=1,
            verdicts=() if is_supported else (verdict,),
            completeness=share,
            accuracy=share,
            language_matches=True,
            analysis="" if decision == "approve" else "not good enough",
            decision=decision,
        )

    return answer


@dataclass
class ConversationDriver:
    """One conversation with the desk."""

    desk: Desk
    broker: Any
    conversation_id: str = field(default_factory=lambda: f"talk-{uuid4().hex[:8]}")
    expects_faults: bool = False
    people: tuple[str, ...] = ()
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def message(self, text: str, name: str = "") -> Message:
        """A message as the terminal would send it, where it shows no drafts."""
        command, arguments = parse_command(text, COMMANDS)
        named = name or f"{self.conversation_id}-{next(self._numbers)}"
        return Message(text, self.conversation_id, named, command, arguments, people=self.people)

    async def say(self, text: str) -> Fields:
        """Say something and return the reply, checked to be the only one."""
        message = self.message(text)
        reply: Fields = dict(await self.desk.ask(message))
        entries = await self.journal(message)
        faults = [entry.fields["faults"] for entry in entries if entry.fields.get("faults")]
        assert sum(entry.kind == "finished" for entry in entries) == 1
        assert reply["message_id"] == message.message_id
        assert self.expects_faults or not faults, faults
        return reply

    async def journal(self, message: Message | Fields) -> list[JournalEntry]:
        """What happened to a message, or to the message of a reply."""
        name = message["message_id"] if isinstance(message, dict) else message.message_id
        question = self.desk.question(Message("-", self.conversation_id, name))
        return list(await self.broker.replies.read_journal(question))

    async def roles(self, reply: Fields) -> list[str]:
        """The roles that worked on the message of a reply, in order."""
        return [
            str(entry.fields["role"])
            for entry in await self.journal(reply)
            if entry.kind == "agent_run"
        ]

    async def read_writes(self, reply: Fields, role: str) -> list[Fields]:
        """What a role wrote for the message of a reply, each time."""
        return [
            entry.fields["writes"]
            for entry in await self.journal(reply)
            if entry.kind == "agent_run"
            and entry.fields["role"] == role
            and isinstance(entry.fields["writes"], dict)
        ]


@dataclass
class AppHarness:
    """An open desk with all of its workers."""

    settings: Settings
    broker: Any
    desk: Desk
    client: Any

    def driver(
        self, *, expects_faults: bool = False, people: tuple[str, ...] = ()
    ) -> ConversationDriver:
        """Begin a conversation; a fault in the work behind an answer fails unless expected."""
        return ConversationDriver(
            self.desk, self.broker, expects_faults=expects_faults, people=people
        )


@asynccontextmanager
async def run_app(
    settings: Settings, endpoint: Endpoint, knowledge: Knowledge, model: Model | None = None
) -> AsyncIterator[AppHarness]:
    """Open the desk while inside; without a model, with those that the settings name."""
    models = None if model is None else lambda _task: model
    if model is not None:
        # A script that names the parts of a turn's meaning is asked for each of them alone.
        combines = isinstance(model, PartlyScriptedModel) and "understand" in model.tasks
        settings = settings.model_copy(update={"gen_model": "scripted", "combine_calls": combines})
    async with connect_runtime(settings, endpoint=endpoint) as post:
        client = endpoint.client()
        try:
            async with run_workers(post, ROLES, knowledge, models=models):
                yield AppHarness(settings, post.broker, desk(post, "test"), client)
        finally:
            await client.aclose()


def options(reply: Fields) -> list[str]:
    """The options of a question back."""
    return [action["value"] for action in reply["suggested_actions"] if action["kind"] == "option"]


def say_plainly(reply: Fields) -> str:
    """The text of a reply without the marks of the question's words."""
    return str(reply["text"]).replace("**", "")


def keys(driver: ConversationDriver) -> dict[str, str]:
    """Where Redis keeps the pause and the history of a conversation."""
    result = conversation_keys(driver.desk.question(driver.message("-", "any")), 1)
    return {"pause": result.pause, "history": result.history}
