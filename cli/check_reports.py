"""Formats the result of a check for a terminal, or as JSON, JUnit XML, annotations, or Markdown."""

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from citations.links import clean_text
from cli.printing import WIDTH, wrap
from deploy.assembly.checks import AnswerChange, CheckRun
from knowledge.checks import STATES, QuestionResult
from knowledge.source_registry import GIT

_INDENT = "           "
_MOST_ROWS = 100
"""Maximum number of rows of a Markdown summary, because GitHub truncates longer ones."""


def describe_run(run: CheckRun) -> dict[str, Any]:
    """Return a check as values for JSON."""
    result = run.result
    return {
        **{state: result.count(state) for state in STATES},
        "newly_answered": sum(question_result.newly_answered for question_result in result.results),
        "documents": {
            "added": result.added, "changed": result.changed, "removed": result.removed,
        },
        "seconds": round(run.seconds, 3),
        "notes": list(run.notes),
        "questions": [_describe_result(question_result) for question_result in result.results],
        "answers": [
            {"id": answer.question.id, "question": answer.question.text, "before": answer.before,
             "after": answer.after, "error": answer.error,
             "lost": [{"sentence": text, "reason": reason} for text, reason in answer.lost]}
            for answer in run.answers
        ],
    }  # fmt: skip


def make_table(run: CheckRun, *, with_unchanged: bool = False) -> Iterator[str]:
    """Yield the lines for a terminal of 80 columns."""
    for result in run.result.results:
        if not (with_unchanged or result.reasons):
            continue
        yield from textwrap.wrap(
            clean_text(result.question.text), WIDTH,
            initial_indent=f"{_name(result):<{len(_INDENT)}}", subsequent_indent=_INDENT,
        )  # fmt: skip
        for reason in result.reasons:
            yield from textwrap.wrap(
                clean_text(reason), WIDTH, initial_indent=f"{_INDENT}- ",
                subsequent_indent=f"{_INDENT}  ", break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
    for each in run.answers:
        yield from _lay_out_answers(each)
    for line in (*(f"note: {note}" for note in run.notes), summarize(run)):
        yield from textwrap.wrap(clean_text(line), WIDTH, break_long_words=False)


def summarize(run: CheckRun) -> str:
    """Return the counts of a check on one line."""
    result = run.result
    states = ", ".join(f"{result.count(state)} {state}" for state in STATES)
    named = f"{len(result.results)} question{'' if len(result.results) == 1 else 's'}"
    return (
        f"{named}: {states}; documents: {result.added} added, "
        f"{result.changed} changed, {result.removed} removed; {run.seconds:.1f} s"
    )


def make_junit(run: CheckRun) -> bytes:
    """Return a check as JUnit XML; a broken question is a failed test."""
    counts = {"tests": str(len(run.result.results)), "failures": str(run.result.count("broken"))}
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(
        root, "testsuite", {**counts, "name": "refdesk check", "time": f"{run.seconds:.3f}"}
    )
    for result in run.result.results:
        case = ET.SubElement(
            suite, "testcase", classname=f"refdesk.{result.question.origin}",
            name=clean_text(result.question.text),
        )  # fmt: skip
        text = clean_text("\n".join(result.reasons))
        if result.state == "broken":
            ET.SubElement(case, "failure", message=text.partition("\n")[0]).text = text
        elif text:
            ET.SubElement(case, "system-out").text = text
    if run.notes:
        ET.SubElement(suite, "system-out").text = clean_text("\n".join(run.notes))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode").encode()


def make_annotations(run: CheckRun) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield the type, the properties, and the text of each annotation on a file of a pull request.

    Notes about what could not be checked are warnings that belong to no file.
    """
    for note in run.notes:
        yield "warning", {"title": "Not checked"}, clean_text(note)
    for result in run.result.results:
        if not result.reasons:
            continue
        kind = "error" if result.state == "broken" else "notice"
        place = _find_file(result)
        properties = {"file": clean_text(place)} if place else {}
        properties["title"] = f"Question {_name(result).lower()}"
        yield kind, properties, clean_text("\n".join([result.question.text, *result.reasons]))


def make_markdown(run: CheckRun) -> str:
    """Return the summary for a pull request."""
    shown = [result for result in run.result.results if result.reasons]
    lines = ["### Questions affected by this change", "", summarize(run) + "."]
    if shown:
        lines += ["", "| | Question | What changed |", "|---|---|---|"]
    for question_result in shown[:_MOST_ROWS]:
        reasons = "<br>".join(map(_cell, question_result.reasons))
        lines.append(
            f"| {_name(question_result)} | {_cell(question_result.question.text)} | {reasons} |"
        )
    if len(shown) > _MOST_ROWS:
        lines.append(f"\nand {len(shown) - _MOST_ROWS} more")
    for each in run.answers:
        lost = "<br>".join(_cell(f"{text} ({reason})") for text, reason in each.lost)
        lines += [
            "", f"<details><summary>{_cell(each.question.text)}</summary>", "",
            "| Answer before | Answer after |", "|---|---|",
            f"| {_cell(each.before)} | {_cell(each.after)} |", "",
            f"Lost or contradicted facts: {lost or ('not judged' if each.error else 'nothing')}",
            *([f"<br>Not judged: {_cell(each.error)}"] if each.error else []), "</details>",
        ]  # fmt: skip
    lines += [f"\n> {_cell(note)}" for note in run.notes]
    return "\n".join(lines) + "\n"


def _lay_out_answers(change: AnswerChange) -> Iterator[str]:
    yield from wrap(clean_text(f"Answers: {change.question.text}"))
    for name, text in (("before", change.before), ("after", change.after)):
        yield f"  {name}:"
        yield from (f"    {line}" for line in wrap(clean_text(text), WIDTH - 4))
    for text, reason in change.lost:
        yield from wrap(clean_text(f"  - lost or contradicted: {text} ({reason})"))
    if change.error:
        yield from wrap(clean_text(f"  - not judged: {change.error}"))


def _describe_result(result: QuestionResult) -> dict[str, Any]:
    question = result.question
    return {
        "id": question.id, "question": question.text, "origin": question.origin,
        "state": result.state, "lost": list(result.lost),
        "only_elsewhere": list(result.only_elsewhere), "missing": list(result.missing),
        "unknown_pages": list(result.unknown_pages),
        "sections": [
            {"title": each.title, "source": each.source, "fate": each.fate, "target": each.target}
            for each in result.sections
        ],
        "rank_before": result.rank_before, "rank_after": result.rank_after,
        "newly_answered": result.newly_answered, "no_longer_found": result.no_longer_found,
    }  # fmt: skip


def _name(result: QuestionResult) -> str:
    return "BROKEN" if result.state == "broken" else result.state


def _find_file(result: QuestionResult) -> str:
    """Return the file of the first changed section, relative to the working directory."""
    order = sorted(result.sections, key=lambda change: change.fate != "deleted")
    for change in order:
        path = Path(os.path.realpath(change.file.removeprefix(GIT)))
        if "://" not in change.file and path.is_relative_to(Path.cwd()):
            return path.relative_to(Path.cwd()).as_posix()
    return ""


def _cell(text: str) -> str:
    """Return the text as a table cell, with its markup escaped."""
    plain = " ".join(clean_text(text).split())
    return "".join(f"&#{ord(sign)};" if sign in "|<>&[]*_`#@!\\" else sign for sign in plain)
