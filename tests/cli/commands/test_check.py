"""A change of the documents is checked against questions before it is published."""

import asyncio
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cli.commands.check import EXIT_BROKEN
from cli.evaluation.answer_changes import compare_answers
from deploy.assembly.checks import AnswerChange, Proposal, run_check
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge
from knowledge.checks import CheckQuestion, CheckResult
from knowledge.ingestion_report import PlainReport
from knowledge.source_registry import parse_source
from tests.support.app_harness import settings_of
from tests.support.checked_documents import PAGES, change, write_pages
from tests.support.command_line import Run, one_line
from tests.support.folder_copy import copy_folder

QUESTIONS = """\
questions:
  - id: invitation
    question: How long is an invitation valid?
    facts: ["7 days"]
    pages: accounts/invite.md
  - id: password
    question: How many characters must a new password have?
    facts: [["12 characters", "twelve characters"]]
    pages: accounts/password.md
  - id: limit
    question: How many requests per second may an account make?
    facts: ["50 requests per second"]
    pages: api/limits.md
  - id: error
    question: What does error 4013 mean?
    pages: api/errors.md
  - id: invoices
    question: When are invoices sent?
    language: en
    facts: ["first day of each month"]
  - id: refunds
    question: Within how many days are refunds paid?
    facts: ["refunds are paid within 5 days"]
"""


def git(folder: Path, *words: str) -> None:
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    subprocess.run(("git", "-C", folder, *author, *words), check=True, capture_output=True)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder and the documents in its index, which has their path: it is not copied."""
    folder = tmp_path_factory.mktemp("checked")
    docs = write_pages(folder / "docs", PAGES)
    quiet = PlainReport(lambda _line: None)
    asyncio.run(run_ingestion(settings_of(folder / "data"), [docs], quiet))
    return folder


@pytest.fixture
def desk(ingested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the documents, the questions and the data folder of a desk."""
    folder = copy_folder(ingested, tmp_path / "desk")
    (folder / "questions.yaml").write_text(QUESTIONS, "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("REFDESK_DATA", str(folder / "data"))
    return folder


def list_files(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def states(result: Any) -> dict[str, str]:
    return {question["id"]: question["state"] for question in result["questions"]}


def test_a_changed_folder_breaks_the_questions_that_lose_a_fact_or_every_page(
    run: Run, desk: Path, ingested: Path
) -> None:
    change(Path(shutil.copytree("docs", "changed")))
    before = list_files(desk / "data/index")
    root = str(ingested / "docs")

    result = run("check", "changed", "--as", root, "--questions", "questions.yaml", "--json",
                 "--junit", "junit.xml", "--markdown", "summary.md")  # fmt: skip

    assert result.status == EXIT_BROKEN
    assert states(result.json) == {
        "limit": "broken", "error": "broken", "invitation": "changed", "refunds": "changed",
        "password": "unchanged", "invoices": "unchanged",
    }  # fmt: skip
    results = {question["id"]: question for question in result.json["questions"]}
    assert results["limit"]["lost"] == ["50 requests per second"]
    assert results["error"]["sections"][-1]["fate"] == "deleted"
    assert results["invitation"]["sections"][0]["target"] == "people/invitations.md"
    assert results["invitation"]["rank_after"] == 1
    assert results["refunds"]["newly_answered"] is True
    assert result.json["documents"] == {"added": 1, "changed": 2, "removed": 2}
    assert list_files(desk / "data/index") == before
    assert [path.name for path in (desk / "data").glob("check-*")] == []
    failed = ET.parse("junit.xml").getroot().findall(".//testcase/failure/..")  # noqa: S314
    assert [element.get("name") for element in failed] == [
        "How many requests per second may an account make?", "What does error 4013 mean?",
    ]  # fmt: skip
    assert Path("summary.md").read_text().count("| BROKEN |") == 2


def test_a_branch_is_compared_with_its_base_without_an_index(
    run: Run, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = write_pages(elsewhere / "repository/docs", PAGES)
    monkeypatch.chdir(docs.parent)
    Path("questions.yaml").write_text(QUESTIONS, "utf-8")
    git(docs.parent, "init", "--initial-branch", "main")
    git(docs.parent, "add", ".")
    git(docs.parent, "commit", "--message", "first")
    git(docs.parent, "checkout", "-b", "$(id>hacked)")
    change(docs)
    git(docs.parent, "add", ".")
    git(docs.parent, "commit", "--message", "second")
    git(docs.parent, "checkout", "main")
    words = ("check", "docs", "--base", "main", "--questions", "questions.yaml")

    unknown = run(*words, "--revision", "no-such-branch")
    same = run(*words, "--json")
    changed = run(*words, "--revision", "$(id>hacked)", "--github")

    assert unknown.status == 1
    assert "no-such-branch" in unknown.err
    assert (same.status, set(states(same.json).values())) == (0, {"unchanged"})
    assert changed.status == EXIT_BROKEN
    errors = [line for line in changed.out.splitlines() if line.startswith("::error ")]
    assert [line.partition("title=")[0] for line in errors] == [
        "::error file=docs/api/limits.md,", "::error file=docs/api/errors.md,",
    ]  # fmt: skip
    assert sorted(path.name for path in docs.parent.iterdir()) == [".git", "docs", "questions.yaml"]
    assert not (elsewhere / "data").exists()


def test_a_table_names_what_happened_in_80_columns(run: Run, desk: Path, ingested: Path) -> None:
    root = ingested / "docs"
    (root / "api/errors.md").rename(desk / "errors.md")
    try:
        result = run("check", str(root), "--questions", "questions.yaml")
    finally:
        (desk / "errors.md").rename(root / "api/errors.md")

    assert result.status == EXIT_BROKEN
    lines = result.out.splitlines()
    assert lines[0] == "BROKEN     What does error 4013 mean?"
    assert "           - deleted: Errors of the API (api/errors.md)" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere",), "'nowhere' is neither an existing folder"),
        (("docs", "--base", "v9"), "there is no Git repository"),
        ((), "there are no configured sources"),
        (("docs",), "there is no index in"),
        (("https://example.com/new", "--as", "https://example.com/"), "--as compares folders"),
        (("docs", "--as", "docs", "--base", "main"), "cannot be used with --base"),
        (("docs", "--junit", "reports/junit.xml"), "there is no folder reports"),
    ],
)
def test_states_that_cannot_be_compared_are_refused_with_the_reason(
    run: Run, elsewhere: Path, words: tuple[str, ...], message: str
) -> None:
    write_pages(elsewhere / "docs", PAGES)
    (elsewhere / "questions.yaml").write_text(QUESTIONS, "utf-8")

    assert message in one_line(run("check", *words, "--questions", "questions.yaml"))


async def test_questions_can_be_asked_of_both_states(ingested: Path, tmp_path: Path) -> None:
    docs = Path(shutil.copytree(ingested / "docs", tmp_path / "docs"))
    change(docs)
    seen: list[bool] = []

    async def ask(result: CheckResult, before: Knowledge, after: Knowledge) -> list[AnswerChange]:
        assert result.count("broken") == 1
        results = [await knowledge.index.versions() for knowledge in (before, after)]
        seen.extend("docs/api/errors" in item for item in results)
        return []

    proposal = Proposal(parse_source(str(docs)), stands_for=str(ingested / "docs"))
    question = CheckQuestion("e", "What does error 4013 mean?", "golden", pages=("errors.md",))
    quiet = PlainReport(lambda _line: None)
    await run_check(settings_of(ingested / "data"), [question], [proposal], quiet, ask=ask)

    assert seen == [True, False]


def test_answers_need_a_model(run: Run, desk: Path) -> None:
    assert "GEN_MODEL" in one_line(run("check", "docs", "--answers"))


@pytest.mark.redis
@pytest.mark.slow
async def test_both_answers_stand_side_by_side_once_the_estimate_is_accepted(
    ingested: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = change(Path(shutil.copytree(ingested / "docs", tmp_path / "docs")))
    settings = settings_of(ingested / "data")
    proposal = Proposal(parse_source(str(docs)), stands_for=str(ingested / "docs"))
    question = CheckQuestion("e", "What does error 4013 mean?", "golden", pages=("errors.md",))
    quiet = PlainReport(lambda _line: None)
    results = []
    for is_accepted in (False, True):
        ask = partial(compare_answers, settings, is_accepted=is_accepted, report=print)
        check = await run_check(settings, [question], [proposal], quiet, ask=ask)
        results.append(check.answers)

    assert not results[0]
    [answers] = results[1]
    assert "opted out" in answers.before
    assert "opted out" not in answers.after
