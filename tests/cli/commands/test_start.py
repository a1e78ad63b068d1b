"""What a command imports: only what its question needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.roster import AGENTS
from manager.flows import FLOWS, NEWEST
from tests.support.app_harness import environment
from tests.support.folder_copy import copy_folder

pytestmark = pytest.mark.slow
ASK = """\
import sys
from cli.main import main
try:
    status = main(sys.argv[1:])
except SystemExit as end:
    status = end.code
print("", *sorted(sys.modules), sep="\\n", file=sys.stderr)
sys.exit(status)
"""
OTHERS = (
    "anthropic", "fastapi", "genai_prices", "google.genai", "httpx", "httpx2", "mcp", "openai",
    "pypdfium2", "slack_bolt", "sqlalchemy", "stamina", "starlette", "telegram", "uvicorn",
)  # fmt: skip
"""Vendors of models, web frameworks, chats, the database, and readers of documents."""


def test_a_question_without_a_model_imports_no_vendor_reader_server_or_other_way(
    library: Path, tmp_path: Path
) -> None:
    copy_folder(library / "index", tmp_path / "index")
    command = [sys.executable, "-c", ASK, "ask", "What does error 4029 mean?"]
    asked = subprocess.run(
        command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True
    )

    assert asked.returncode == 0, asked.stderr
    imported = set(asked.stderr.splitlines())
    usual = {stage.role for stage in FLOWS[NEWEST["search"]].stages.values()}
    agents = {f"{spec.package}.{spec.role}" for spec in AGENTS if spec.role not in usual}
    assert "agents.question.guardrails" in imported
    assert imported & {*OTHERS, *agents, "knowledge.documents.formats", "llm.tasks.review"} == set()


def test_the_help_imports_no_library_of_the_settings() -> None:
    command = [sys.executable, "-c", ASK, "--help"]
    helped = subprocess.run(
        command, env=dict(os.environ), capture_output=True, text=True, check=False
    )

    assert "pydantic" not in helped.stderr.splitlines()
    assert helped.stdout.startswith("usage: refdesk")
