"""The reports of a check are safe to paste into a pull request, a log and a test report."""

import io
import json
import re
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.check_reports import (
    describe_run,
    make_annotations,
    make_junit,
    make_markdown,
    make_table,
)
from cli.printing import print_line, say_json
from cli.workflow_commands import without_commands, write_command
from deploy.assembly.checks import AnswerChange, CheckRun
from knowledge.checks import CheckQuestion, CheckResult, QuestionResult, SectionChange

HOSTILE = "a|b <script>x</script>\n::error::x 100%, \x1b[31m @all #1 \u202e"
LOST = CheckQuestion("lost", HOSTILE, "golden")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckRun:
    monkeypatch.chdir(tmp_path)
    gone = SectionChange("Errors", "api/errors.md", f"{tmp_path}/docs/api/errors,1.md", "deleted")
    results = (
        QuestionResult(LOST, "broken", lost=("50 requests",), sections=(gone,), rank_before=1),
        QuestionResult(CheckQuestion("gap", "Refunds?", "gap"), "changed", newly_answered=True),
        QuestionResult(CheckQuestion("same", "Who?", "golden"), "unchanged"),
    )
    answers = (AnswerChange(LOST, "50 | requests", "none", (("50 requests", "not said"),)),)
    return CheckRun(CheckResult(results, removed=1), 1.0, ("a note",), answers)


def test_an_annotation_is_one_command_at_the_deleted_document(run: CheckRun) -> None:
    out = io.StringIO()
    with redirect_stdout(out), without_commands():
        for kind, properties, text in make_annotations(run):
            write_command(sys.stdout, kind, properties, text)

    note, first, second = out.getvalue().splitlines()
    assert note == "::warning title=Not checked::a note"
    assert first.startswith("::error file=docs/api/errors%2C1.md,title=Question broken::a|b ")
    assert "100%25" in first
    assert second == (
        "::notice title=Question changed::Refunds?%0Anewly answered: the documents did not cover "
        "it before"
    )


@pytest.mark.parametrize("start", ["", "  ", "\t\u2003", "x\r", "x\n "])
def test_no_line_for_a_terminal_is_a_command_of_a_runner(
    run: CheckRun, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = (
        f"{start}::error file=a::x",
        f"{'wide ' * 13}{start}::add-mask::y",
        f"{start}##[error]z",
    )
    questions = [CheckQuestion(text, text, "golden") for text in texts]
    results = tuple(QuestionResult(question, "broken", lost=texts) for question in questions)
    answers = tuple(
        AnswerChange(question, *texts[:2], ((texts[0], texts[2]),)) for question in questions
    )
    hostile = replace(
        run, result=replace(run.result, results=results), notes=texts, answers=answers
    )

    with without_commands():
        for line in make_table(hostile):
            print_line(line)
        print_line(make_markdown(hostile))
        say_json(describe_run(hostile))
        for text in texts:
            sys.stderr.write(start)
            sys.stderr.write(f"{text}\n")

    out, err = capsys.readouterr()
    lines = [line.strip() for line in re.split(r"[\r\n]", out + err)]
    assert not [line for line in lines if line.startswith("::") or "##[" in line]
    printed = json.loads(out[out.index("\n{\n") :])
    assert [question["id"] for question in printed["questions"]] == list(texts)


def test_a_broken_question_is_a_failed_test_of_junit(run: CheckRun) -> None:
    suite = ET.fromstring(make_junit(run)).find("testsuite")  # noqa: S314

    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [match.get("classname") for match in suite.findall("testcase/failure/..")] == [
        "refdesk.golden"
    ]


def test_a_summary_contains_no_markup_of_questions_and_documents(run: CheckRun) -> None:
    text = make_markdown(run)

    assert "<script" not in text
    assert "\n::error" not in text
    assert "@all" not in text
    assert all(line.count("|") == 4 for line in text.splitlines() if line.startswith("| BROKEN"))
    assert "Lost or contradicted facts: 50 requests (not said)" in text
    assert "Who?" not in text


def test_a_terminal_shows_both_answers_and_the_numbers_in_80_columns(run: CheckRun) -> None:
    lines = list(make_table(run))

    assert max(map(len, lines)) <= 80
    assert "  - lost or contradicted: 50 requests (not said)" in lines
    assert not any(sign in "".join(lines) for sign in "\x1b\u202e")
    assert json.loads(json.dumps(describe_run(run)))["newly_answered"] == 1


def test_unchecked_items_are_listed_in_every_report(run: CheckRun) -> None:
    failed = replace(run, notes=("docs/a.md could not be read: it is encrypted",))

    for report in (
        make_junit(failed).decode(),
        make_markdown(failed),
        "\n".join(make_table(failed)),
        json.dumps(describe_run(failed)),
        "\n".join(text for _, _, text in make_annotations(failed)),
    ):
        assert "could not be read" in report


def test_answers_that_were_not_judged_lost_nothing_that_is_known(run: CheckRun) -> None:
    unjudged = replace(run, answers=(AnswerChange(LOST, "before", "after", error="too slow"),))

    markdown = make_markdown(unjudged)

    assert "Lost or contradicted facts: not judged" in markdown
    assert "Not judged: too slow" in markdown
