"""Runs a demonstration on the example documents: three questions and one trace."""

import argparse
import asyncio
import shlex
import shutil
import sys
from pathlib import Path
from uuid import uuid4

from cli.commands.ingest import report_on_terminal, result_lines
from cli.commands.trace import trace_lines
from cli.printing import WIDTH, print_line, print_reply
from config.settings import Settings, load_settings
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.runtime import open_desk
from deploy.errors import CommandError
from envelope.question import Question
from gateway.desk import Desk, Message

EXAMPLES = Path(__file__).parents[2] / "examples" / "sms_platform"
QUESTIONS = (
    ("a clear one", "How do I configure SMS routing rules?"),
    ("a vague one", "How do I set it up?"),
    ("one that the documents do not cover", "What will the weather be like tomorrow?"),
)
NEXT = """\
What next? The demo keeps its documents and data apart from yours, in {data}:
  export REFDESK_DATA={data}     to go on with the demo
  {command} chat                      talk to it; it remembers the conversation
  {command} ask "What does error 4029 mean?"
  {command} trace MESSAGE             everything that happened to a question
Without that variable, {own} holds your own documents:
  {command} ingest YOUR-DOCUMENTS     set DOMAIN_NAME too
  GEN_MODEL=gpt-5-mini@openai OPENAI_API_KEY=... {command} chat"""
NO_MODEL = "No model was used: these are passages that the search found."
RULE = "-" * WIDTH
DEMO = "demo"
"""The name of the data folder and of the assistant of the demo."""
DOMAIN_NAME = "SMS platform documentation"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`refdesk demo` needs no arguments."""


def run(_chosen: argparse.Namespace) -> int:
    """Run `refdesk demo`."""
    if not EXAMPLES.is_dir():
        raise CommandError("the example documents are missing: install Refdesk again")
    asyncio.run(_demo(demo_settings()))
    return 0


def demo_settings() -> Settings:
    """Return the user's settings, with a domain that fits the example documents.

    The demo has a separate data folder, `demo` in `REFDESK_DATA`, and a separate assistant on
    a Qdrant server: its documents never mix with the user's.
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
    async with open_desk(settings) as desk:
        asked = [await _ask(desk, kind, text) for kind, text in QUESTIONS]
        print_line(f"\n{RULE}\nWhat happened to the first question (refdesk trace)\n")
        entries = [entry async for entry in desk.follow(asked[0])]
        for line in trace_lines(asked[0], entries):
            print_line(line)
    data = settings.refdesk_data
    print_line(f"\n{RULE}\n{NEXT.format(data=data, own=data.parent, command=_find_command())}")
    if settings.gen_model == "offline":
        print_line(NO_MODEL)


def _find_command() -> str:
    """Return what starts this command in a shell: its name if `PATH` leads to it, else its path."""
    started = Path(sys.argv[0])
    found = shutil.which(started.name)
    is_on_path = found is not None and Path(found).samefile(started)
    return started.name if is_on_path else shlex.quote(str(started))


async def _ask(desk: Desk, kind: str, text: str) -> Question:
    print_line(f"\n{RULE}\nQuestion, {kind}: {text}\n")
    name = uuid4().hex[:8]
    message = Message(text, f"demo-{name}", name)
    print_reply(await desk.ask(message))
    return desk.question(message)
