"""Lists what needs the owner's attention, for the top of the overview."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from urllib.parse import urlencode

from gateway.console.access import Assistant, ConsoleUser
from gateway.console.figures import PeriodFigures
from gateway.console.pages import label
from memory.job_reports import JobReport
from records.record import Record

ISOLATE, END = "\u2068", "\u2069"
"""Isolate a title, so that right-to-left text does not reverse the sentence around it."""
NO_MODEL = "no_model"
"""The reason why passages are shown if no model is configured, which is not a fault."""
ListJobReports = Callable[[], Awaitable[Sequence[JobReport]]]
"""Returns the reports of the live processes on their background jobs."""


@dataclass(frozen=True, slots=True)
class Concern:
    """One item that needs attention; `place` is the console page on which `action` can be taken."""

    title: str
    text: str
    place: str
    action: str = "Look"


@dataclass(frozen=True, slots=True)
class SetupStep:
    """A step in setting up a desk; `code` is the command for the operator, `place` a page of the
    console.
    """

    title: str
    text: str
    is_done: bool
    place: str = ""
    action: str = ""
    code: str = ""


FindConcerns = Callable[[ConsoleUser], Awaitable[Sequence[Concern]]]
FindSetup = Callable[[ConsoleUser], Awaitable[Sequence[SetupStep]]]
"""Returns the steps until the desk answers everybody with a model, including completed steps."""


def find_steps(
    count_documents: Callable[[Assistant], Awaitable[int]],
    has_keys: Callable[[], Awaitable[bool]],
    *,
    has_model: bool,
) -> FindSetup:
    """Return the function that lists the next steps of a new desk."""

    async def find(user: ConsoleUser) -> list[SetupStep]:
        if not user.owns_all:
            return []
        counts = [await count_documents(assistant) for assistant in user.list_assistants()]
        return [
            SetupStep(
                "Add documents",
                "There are no documents yet. Write a page, upload a file, or add a website.",
                is_done=any(counts),
                place="documents",
                action="Add documents",
            ),
            SetupStep(
                "Choose a model",
                "Without a model, users see the passages that the search found. Set this on "
                "the server, with the key of the vendor, and restart:",
                is_done=has_model,
                place="settings",
                action="See the settings",
                code="GEN_MODEL=gpt-5-mini@openai",
            ),
            SetupStep(
                "Create a key",
                "Websites and programs need a key to ask questions. Without a key, only "
                "requests from this machine are answered.",
                is_done=await has_keys(),
                place="people#keys",
                action="Create a key",
            ),
        ]

    return find


def find_turned_away(
    began_at: float, count_turned_away: Callable[[], int], zone: tzinfo = UTC
) -> FindConcerns:
    """Return a check for requests that this process rejected, which are not recorded.

    They are counted since `began_at` (Unix seconds).
    """

    async def find(user: ConsoleUser) -> list[Concern]:
        count = count_turned_away()
        if not count or not user.owns_all:
            return []
        began = f"{datetime.fromtimestamp(began_at, zone):%Y-%m-%d %H:%M}"
        text = (
            f"{count} since {began}, when this server started: Redis did not respond, or too "
            "many questions were waiting. The clients were asked to try again. These requests "
            "are not recorded; the log contains the time of each (status 503)."
        )
        return [Concern("Requests were rejected while the desk was busy", text, "")]

    return find


def find_in_jobs(list_reports: ListJobReports) -> FindConcerns:
    """Return a check for background jobs that failed or report a notice."""

    async def find(user: ConsoleUser) -> list[Concern]:
        if not user.owns_all:
            return []
        concerns = []
        for report in await list_reports():
            if report.notice:
                concerns.append(Concern("Operation needs attention", report.notice, "health"))
            if report.failures:
                text = report.describe_failure()
                concerns.append(Concern("A background task failed", text, "health"))
        return concerns

    return find


def find_in_figures(figures: PeriodFigures, days: int, down: Sequence[Record]) -> list[Concern]:
    """Return the outages that the questions of a period reveal, and the answers rated `down`."""
    concerns = []
    if down:
        title = f"{figures.down} answer{'' if figures.down == 1 else 's'} rated as not helpful"
        different = dict.fromkeys(record.question for record in down)
        text = ", ".join(f"“{ISOLATE}{question}{END}”" for question in different)
        place = f"questions?{urlencode({'days': days, 'rating': 'down'})}"
        concerns.append(Concern(title, text, place, "Read them"))
    for outcome, reason, count in figures.reasons:
        about = label(reason) or "an unknown reason"
        if outcome == "passages" and reason not in ("", NO_MODEL):
            text = f"{count} questions were answered with passages instead: {about}."
            concerns.append(_link("Models did not answer", text, days, "passages", reason))
        elif outcome == "failed":
            text = f"{count} question{'' if count == 1 else 's'} ended without an answer: {about}."
            concerns.append(_link("Questions failed", text, days, "failed", reason))
    return concerns


def _link(title: str, text: str, days: int, outcome: str, reason: str) -> Concern:
    wanted = {"days": days, "outcome": outcome, "reason": reason}
    return Concern(title, text, f"questions?{urlencode(wanted)}", "See the questions")
