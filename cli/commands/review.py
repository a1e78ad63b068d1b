"""Reviews a document against rules, shows the progress, and writes the report."""

import argparse
import asyncio
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic import JsonValue

from broker.values import Fields, JournalEntry
from citations.links import plain_line
from cli.arguments import add_groups_argument, read_groups
from cli.commands.trace import list_agent_costs
from cli.main import EXIT_STATUSES
from cli.printing import ERASE_LINE, WIDTH, cut_line, print_line, reply_lines, say_json, write_lines
from config.settings import Settings, load_settings
from config.texts import load_texts
from deploy.errors import CommandError
from envelope.json_values import read_list
from envelope.specialists import SpecialistName
from gateway.answer import safe_reply
from gateway.desk import JobOrder, Message
from gateway.review_ports import ReportForm

if TYPE_CHECKING:
    from cli.local_review import LocalReview
    from deploy.assembly.gateways.report_rendering import Report
    from gateway.desk import Desk

_JUDGED = re.compile(r"(\d{1,6})-(\d{1,6}): .*")
_MARKS = {"COMPLIANT": "ok  ", "VIOLATION": "FAIL", "GAP": "GAP ", "UNDECIDED": "?   "}
EXIT_FINDINGS = 8
WAY = "specialists"
ENGLISH = "en"
_SHOWN = 5


class ReviewProgress:
    """Follows the journal of a review; if `is_terminal` is true, one line is updated in place."""

    def __init__(self, write: Callable[[str], None], *, is_terminal: bool) -> None:
        self._write = write
        self._is_terminal = is_terminal
        self._labels: dict[str, str] = {}
        self._running: list[str] = []
        self._known: dict[str, int] = {}
        self._judged: dict[str, int] = {}
        self._shown = ""

    def read(self, entry: JournalEntry) -> None:
        """Show the progress reported by a journal entry."""
        if entry.kind != "routed":
            return
        self._end(entry.fields)
        self._begin(entry.fields)
        self._draw()

    def end(self) -> None:
        """Erase the progress line."""
        if self._is_terminal and self._shown:
            self._write(ERASE_LINE)

    def _begin(self, fields: Fields) -> None:
        names = [str(name) for name in read_list(fields.get("branches"))]
        labels = [plain_line(str(name)) for name in read_list(fields.get("plan"))]
        for name, label in zip(names, labels, strict=False):
            if name in self._labels:
                continue
            self._labels[name] = label
            # A part that is retried has the same requirements.
            if count := _count_requirements(label):
                self._known[label] = count
            elif label:
                self._running.append(label)

    def _end(self, fields: Fields) -> None:
        if fields.get("target") != "return":
            return
        label = self._labels.get(str(fields.get("branch")), "")
        if count := _count_requirements(label):
            self._judged[label] = count
        if label in self._running:
            self._running.remove(label)
        if label and not self._is_terminal:
            done = f"judged {label} ({self._state})" if count else f"done: {label}"
            self._write(f"{cut_line(done, WIDTH - 1)}\n")

    @property
    def _state(self) -> str:
        judged, known = sum(self._judged.values()), sum(self._known.values())
        return f"{judged} of {known} requirements"

    def _draw(self) -> None:
        if not self._is_terminal:
            return
        parts = [", ".join(self._running)] if self._running else []
        parts = [self._state, *parts] if self._known else parts
        line = cut_line(f"… {'; '.join(parts)}", WIDTH - 1) if parts else "…"
        if line != self._shown:
            self._write(f"{ERASE_LINE}{line}")
            self._shown = line


def write_progress(text: str) -> None:
    """Write to standard error without buffering."""
    sys.stderr.write(text)
    sys.stderr.flush()


def list_review_lines(reply: Mapping[str, JsonValue], report: "Report | None") -> Iterator[str]:
    """Yield a line for each requirement with its verdict, followed by the lines of the answer."""
    if report is not None:
        yield from list_matrix_lines(report)
        yield ""
    yield from reply_lines(reply)
    usage = reply.get("model_usage")
    if isinstance(usage, dict):
        yield from list_agent_costs(usage)


def list_matrix_lines(report: "Report") -> Iterator[str]:
    """Yield a line for each requirement: verdict, number, location in the law, and requirement."""
    for requirement in getattr(report, "requirements", ()):
        mark = _MARKS.get(requirement.status, requirement.status)
        place = requirement.law.heading.rpartition(" > ")[2]
        yield cut_line(f"{mark} {requirement.number:>3}  {place}: {requirement.requirement}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk review`."""
    parser.add_argument(
        "contract",
        metavar="CONTRACT",
        help="document to review: a file, a folder, or the id or title of a document of the index",
    )
    parser.add_argument(
        "--against",
        metavar="LAW",
        action="append",
        required=True,
        help="rules: a file, a folder of files, or an id, file, title or folder of the index; "
        "repeatable",
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        type=Path,
        help="write the report to a file: .md, .html, .pdf, .docx, or .json for programs",
    )
    parser.add_argument(
        "--checklist",
        metavar="FILE",
        type=Path,
        help="write the requirements of the rules to a file, as JSON",
    )
    parser.add_argument(
        "--specialists",
        metavar="NAMES",
        default="",
        help="specialists of the review, separated by commas; the specialists on which they "
        "depend are added (default: all)",
    )
    parser.add_argument("--focus", metavar="TEXT", help="focus of the review, as a sentence")
    parser.add_argument(
        "--language",
        metavar="CODE",
        type=read_language,
        help="language of the answer and report, such as de (default: the language of the "
        "titles and the focus)",
    )
    parser.add_argument(
        "--conversation",
        metavar="ID",
        help="keep the documents and the answer in this conversation (default: erase them at the "
        "end)",
    )
    add_groups_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the complete reply as JSON")
    parser.epilog = (
        f"exit status: 0 every requirement is fulfilled, {EXIT_FINDINGS} "
        "violations, gaps or undecided requirements, 4 refused, 5 failed, 1 error"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk review`."""
    form = read_form(chosen.report)
    read_specialists(chosen.specialists)
    return asyncio.run(_review(chosen, form, load_settings()))


def read_language(code: str) -> str:
    """Return a language code (ISO 639-1); raises `ArgumentTypeError` for anything else."""
    known = code.strip().lower()
    if not (known.isascii() and known.isalpha() and len(known) in (2, 3)):
        raise argparse.ArgumentTypeError(
            f"expected a language code such as en, de or cs, found {code!r}"
        )
    return known


def read_form(report: Path | None) -> ReportForm | None:
    """Return the format of the report, based on its file name, or None without a report.

    Raises `CommandError` before any work is done.
    """
    if report is None:
        return None
    known = {f".{form.value}": form for form in ReportForm}
    form = known.get(report.suffix.lower())
    if form is None:
        raise CommandError(f"expected a report named *{', *'.join(known)}, found {report.name!r}")
    if not report.parent.is_dir():
        raise CommandError(f"the folder for the report does not exist: {str(report.parent)!r}")
    return form


def read_specialists(names: str) -> tuple[SpecialistName, ...]:
    """Return the specialists in a comma-separated list; raises `CommandError` for an unknown
    name.
    """
    given = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in given if name not in set(SpecialistName)]
    if unknown:
        raise CommandError(
            f"expected specialists of {', '.join(SpecialistName)}, found {', '.join(unknown)}"
        )
    return tuple(map(SpecialistName, given))


def explain_no_report(chosen: argparse.Namespace, reply: Mapping[str, JsonValue]) -> str:
    """Return why a review has verdicts and no report."""
    name = SpecialistName.REPORT_GENERATOR
    if chosen.specialists and name not in read_specialists(chosen.specialists):
        return f"because --specialists leaves out {name}"
    errors = reply.get("errors")
    texts = [
        str(error.get("text"))
        for error in (errors if isinstance(errors, list) else ())
        if isinstance(error, dict) and error.get("specialist") == name
    ]
    return f"because {name} failed: {'; '.join(texts) or 'it had no result in time'}"


def _count_requirements(label: str) -> int:
    """Return the number of requirements that a part judges, based on a label such as `3-10: Article
    2 - Article 5`, or 0 for other labels.
    """
    match = _JUDGED.fullmatch(label)
    if match is None:
        return 0
    return max(0, int(match[2]) - int(match[1]) + 1)


async def _review(chosen: argparse.Namespace, form: ReportForm | None, settings: Settings) -> int:
    # Imported here: --help and wrong arguments do not need the index.
    from cli.local_review import open_local_review
    from deploy.assembly.runtime import desk, run_desk

    groups = read_groups(chosen.groups)
    is_kept = chosen.conversation is not None
    if not is_kept:
        chosen.conversation = f"review-{uuid4().hex[:12]}"
    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(run_desk(settings, empty=True))
        own = desk(runtime, "cli")
        question = own.name_question(chosen.conversation, uuid4().hex[:12])
        local = await stack.enter_async_context(open_local_review(runtime, question, groups))
        if not is_kept:
            stack.push_async_callback(local.erase)
        message = await _make_message(
            chosen,
            local,
            settings.gen_model if settings.uses_model else None,
            settings.job_deadline_seconds,
        )
        reply = await _ask(own, message, settings.job_deadline_seconds)
        report = await local.read_report(reply)
        if report is not None and form is not None:
            await asyncio.to_thread(_write_report, chosen.report, local, report, form)
        if chosen.checklist is not None:
            checklist = await local.read_checklist(reply)
            await asyncio.to_thread(chosen.checklist.write_bytes, checklist)
        return _print(chosen, reply, report)


async def _make_message(
    chosen: argparse.Namespace,
    local: "LocalReview",
    model: str | None,
    deadline_seconds: float,
) -> Message:
    """Return the message for the review, with the documents that the given names refer to."""
    from agents.review.passages import name_documents

    documents = await local.find(chosen.contract)
    against = [entry for name in chosen.against for entry in await local.find(name, is_rule=True)]
    if local.skipped:
        shown = ", ".join(local.skipped[:_SHOWN])
        sys.stderr.write(
            f"refdesk: {len(local.skipped)} files were skipped because they cannot "
            f"be read as documents: {shown}\n"
        )
    if model is not None:
        cost = await local.estimate(model, against, documents)
        price = "price unknown" if cost.usd is None else f"about {cost.usd:.2g} USD"
        took = (
            "time unknown, because the speed of the model has not been measured yet"
            if cost.seconds is None
            else f"about {ceil(cost.seconds / 60)} minutes"
        )
        sys.stderr.write(
            f"refdesk: this review requires about {cost.calls:,} calls to {model} and "
            f"{cost.tokens:,} tokens ({price}; {took})\n"
        )
    heading = load_texts().text("review_request", chosen.language or ENGLISH)
    titles = [
        name_documents([entry.title for entry in entries]) for entries in (documents, against)
    ]
    focus = f"\n{chosen.focus}" if chosen.focus else ""
    return Message(
        text=f"{heading} {' – '.join(titles)}{focus}",
        conversation_id=chosen.conversation,
        message_id=local.question.message_id,
        language=chosen.language or ENGLISH,
        groups=local.groups,
        order=JobOrder(
            way=WAY,
            deadline_seconds=deadline_seconds,
            payload={
                "review": {
                    "documents": [document.id for document in documents],
                    "against": [entry.id for entry in against],
                    "specialists": [*read_specialists(chosen.specialists)],
                    **({"language": chosen.language} if chosen.language else {}),
                }
            },
        ),
    )


async def _ask(desk: "Desk", message: Message, deadline_seconds: float) -> dict[str, JsonValue]:
    """Submit the review, show its progress, and return its reply."""
    question = desk.question(message)
    await desk.submit(message)
    progress = ReviewProgress(write_progress, is_terminal=sys.stderr.isatty())
    reply: dict[str, JsonValue] = {}
    try:
        async for entries in desk.watch(question, deadline_seconds=deadline_seconds):
            for entry in entries:
                progress.read(entry)
                if entry.kind == "finished":
                    reply = dict(entry.fields)
    finally:
        progress.end()
    return reply or desk.last_resort(question, message.language)


def _write_report(path: Path, local: "LocalReview", report: "Report", form: ReportForm) -> None:
    path.write_bytes(local.render(report, form))


def _print(chosen: argparse.Namespace, reply: dict[str, JsonValue], report: "Report | None") -> int:
    if chosen.json:
        say_json(safe_reply(reply)[0])
    else:
        write_lines(list_review_lines(reply, report))
        if report is not None and chosen.report is not None:
            print_line(f"the report is in {chosen.report}")
    if reply.get("outcome") != "answered":
        return EXIT_STATUSES.get(str(reply.get("outcome")), 1)
    verdicts = reply.get("verdicts")
    if not isinstance(verdicts, dict):
        sys.stderr.write(
            "refdesk: no report was written, because no document was compared with the rules\n"
        )
        return EXIT_STATUSES["failed"]
    if report is None and chosen.report is not None:
        sys.stderr.write(f"refdesk: no report was written, {explain_no_report(chosen, reply)}\n")
        return EXIT_STATUSES["failed"]
    stated = reply.get("review_report")
    counts = stated if isinstance(stated, dict) else verdicts
    undecided = verdicts.get("undecided")
    return EXIT_FINDINGS if counts.get("violations") or counts.get("gaps") or undecided else 0
