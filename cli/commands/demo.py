"""Runs a demonstration on the example documents: three questions, one trace, and, without a model,
one question with the recorded outputs of a model.
"""

import argparse
import asyncio
import shlex
import shutil
import sys
from pathlib import Path
from uuid import uuid4

from cli.commands.ingest import report_on_terminal, result_lines
from cli.commands.trace import trace_lines
from cli.demo_recording import NAME, RecordedModel
from cli.demo_recording import QUESTION as RECORDED_QUESTION
from cli.printing import WIDTH, print_line, print_reply, wrap, write_lines
from config.settings import Settings, load_settings
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import open_knowledge
from deploy.assembly.model_choice import vendor_access
from deploy.assembly.runtime import ROLES, connect_runtime, desk, open_desk, run_workers
from deploy.errors import CommandError
from envelope.question import Question
from envelope.tool_loop import WayName
from gateway.desk import Desk, Message
from llm.vendors.catalogue import vendors_by_name
from llm.vendors.context_window import list_models

EXAMPLES = Path(__file__).parents[2] / "examples" / "sms_platform"
QUESTIONS = (
    ("clear", "How do I configure SMS routing rules?"),
    ("vague", "How do I set it up?"),
    ("not covered by the documents", "What will the weather be like tomorrow?"),
)
NEXT = """\
What next? The demo keeps its documents and data apart from yours, in
{data}. To go on with the demo:
  export REFDESK_DATA={data}
  {command} chat
  {command} ask "What does error 4029 mean?"
  {command} trace MESSAGE    (everything that happened to a question)
Without that variable, your own documents are in {own}:
  DOMAIN_NAME="..." {command} ingest YOUR-DOCUMENTS"""
RECORDED = """\
This is a recorded example. No model was called: its replies were recorded. The
search and the checks of the citations ran as for any answer."""
WITH_KEY = """\
To use your own model:
  GEN_MODEL=gpt-5-mini@openai OPENAI_API_KEY=... {command} chat"""
WITH_OLLAMA = """\
Ollama answers on this machine, with {models}:
  GEN_MODEL={first}@ollama {command} chat"""
RULE = "-" * WIDTH
DEMO = "demo"
"""The name of the data folder and of the assistant of the demo."""
DOMAIN_NAME = "SMS platform documentation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments, because `refdesk demo` does not have any."""


def run(_chosen: argparse.Namespace) -> int:
    """Run `refdesk demo`."""
    if not EXAMPLES.is_dir():
        raise CommandError("the example documents are missing: install Refdesk again")
    asyncio.run(_demo(demo_settings()))
    return 0


def demo_settings() -> Settings:
    """Return the user's settings, with a domain that fits the example documents.

    The demo uses a separate data folder, `demo` in `REFDESK_DATA`, and a separate assistant on a
    Qdrant server, so that its documents are never mixed with the user's.
    """
    settings = load_settings()
    separate: dict[str, object] = {"refdesk_data": settings.refdesk_data / DEMO}
    if settings.qdrant_url is not None:
        separate["assistant"] = DEMO
    settings = settings.model_copy(update=separate)
    if "domain_name" in settings.model_fields_set:
        return settings
    return settings.model_copy(
        update={
            "domain_name": DOMAIN_NAME,
            "domain_scope": "setting up and running an SMS messaging platform",
        }
    )


async def _demo(settings: Settings) -> None:
    print_line("Reading the example documents")
    with report_on_terminal(quiet=False) as report:
        result = await run_ingestion(settings, [EXAMPLES], report)
    for line in result_lines(result):
        print_line(line)
    async with open_desk(settings) as opened:
        asked = [await _ask(opened, kind, text) for kind, text in QUESTIONS]
        print_line(f"\n{RULE}\nWhat happened to the first question (refdesk trace)\n")
        entries = [entry async for entry in opened.follow(asked[0])]
        for line in trace_lines(asked[0], entries):
            print_line(line)
    command = _find_command()
    if not settings.uses_model:
        await _show_recording(settings)
        await _describe_models(settings, command)
    data = settings.refdesk_data
    print_line(f"\n{RULE}\n{NEXT.format(data=data, own=data.parent, command=command)}")


async def _show_recording(settings: Settings) -> None:
    """Ask one question, with a model that replays a recording."""
    # The settings only have to accept the name: no vendor is called. Workers of other processes on
    # `REDIS_URL` would answer without the recording.
    like_a_model = {"gen_model": f"{NAME}@openai", "redis_url": None}
    separate = {**like_a_model, "way": WayName.SEARCH, "combine_calls": True}
    settings = settings.model_copy(update=separate)
    async with (
        connect_runtime(settings) as runtime,
        open_knowledge(settings) as knowledge,
        run_workers(runtime, ROLES, knowledge, models=lambda _task: RecordedModel()),
    ):
        note = f"{RECORDED}\n\n"
        await _ask(desk(runtime, "cli"), "example with a model", RECORDED_QUESTION, note)


async def _describe_models(settings: Settings, command: str) -> None:
    """Print how to use a model, either with a key or, if a server responds, on this machine."""
    print_line(f"\n{WITH_KEY.format(command=command)}")
    access = vendor_access(settings)["ollama"]
    if names := await list_models(vendors_by_name()["ollama"], access):
        shown = {"models": ", ".join(names), "first": shlex.quote(names[0]), "command": command}
        print_line(WITH_OLLAMA.format(**shown))


def _find_command() -> str:
    """Return how to start this command in a shell: by name if it is on `PATH`, otherwise by
    path.
    """
    started = Path(sys.argv[0])
    installed = shutil.which(started.name)
    # A relative path does not exist in another working directory than that of the start.
    is_on_path = installed is not None and started.exists() and started.samefile(installed)
    return started.name if is_on_path else shlex.quote(str(started))


async def _ask(desk: Desk, kind: str, text: str, note: str = "") -> Question:
    print_line(f"\n{RULE}")
    write_lines([*wrap(f"Question ({kind}): {text}"), "", *note.splitlines()])
    name = uuid4().hex[:8]
    message = Message(text, f"demo-{name}", name)
    print_reply(await desk.ask(message))
    return desk.question(message)
