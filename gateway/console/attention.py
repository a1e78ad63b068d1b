"""The concerns that need the owner's attention, shown at the top of the overview."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from gateway.console.access import ConsoleRole, ConsoleUser
from gateway.console.figures import PeriodFigures
from gateway.console.gap_pages import GapPages
from gateway.console.operation_pages import OperationPages, Operations
from memory.job_reports import JobReport

ISOLATE, END = "\u2068", "\u2069"
"""Keep a title that runs from right to left from turning the sentence around it."""
NO_MODEL = "no_model"
"""The reason of passages if no model is configured, which is not a fault."""
_MOST_GAPS = 5


@dataclass(frozen=True, slots=True)
class Concern:
    """One concern; `place` is a page of the console, below its address."""

    title: str
    text: str
    place: str


FindConcerns = Callable[[ConsoleUser], Awaitable[Sequence[Concern]]]
ListJobReports = Callable[[], Awaitable[Sequence[JobReport]]]
"""Returns the reports of the live processes on their background jobs."""


def find_in_gaps(pages: GapPages) -> FindConcerns:
    """Return what finds the gaps that grow."""

    async def find(user: ConsoleUser) -> list[Concern]:
        growing = [gap for gap in await pages.find(user) if gap.grows]
        return [
            Concern(
                "A gap grows",
                f"“{ISOLATE}{gap.title}{END}” and the like: asked {gap.last_week} times in 7 days, "
                + (
                    f"{gap.since_change} times since it was marked as done"
                    if gap.state == "done"
                    else f"{gap.week_before} times in the 7 days before"
                ),
                pages.place(gap),
            )
            for gap in growing[:_MOST_GAPS]
        ]

    return find


def find_in_operations(pages: OperationPages, operations: Operations) -> FindConcerns:
    """Return what finds sources that failed, and dead letters."""

    async def find(user: ConsoleUser) -> list[Concern]:
        found = []
        for tenant, assistant in user.list_assistants(ConsoleRole.EDITOR):
            for source in operations.list_sources((tenant, assistant)):
                if (source.failed or source.has_fault) and not source.is_running:
                    place = f"sources?{urlencode({'tenant': tenant, 'assistant': assistant})}"
                    reason = next(iter(source.reasons), "")
                    count = f"{source.failed} failed. " if source.failed else ""
                    text = f"{source.place}: {count}{reason}"
                    found.append(Concern("Documents of a source could not be read", text, place))
        if letters := await pages.find_letters(user):
            text = f"{len(letters)} messages could not be answered; the people received an apology."
            found.append(Concern("Dead letters", text, "dead"))
        return found

    return find


def find_turned_away(began_at: float, count_turned_away: Callable[[], int]) -> FindConcerns:
    """Return what finds the requests that this process turned away, which have no record.

    They are counted since `began_at` (Unix seconds).
    """

    async def find(user: ConsoleUser) -> list[Concern]:
        count = count_turned_away()
        if not count or not user.owns_all:
            return []
        began = f"{datetime.fromtimestamp(began_at, UTC):%Y-%m-%d %H:%M} UTC"
        text = (
            f"{count} since {began}, when this process started: Redis did not answer, or too many "
            "questions waited. The callers were told to try again. No record has these requests; "
            "the log has the time of each (status 503)."
        )
        return [Concern("Requests were turned away while the desk was busy", text, "")]

    return find


def find_in_jobs(list_reports: ListJobReports) -> FindConcerns:
    """Return what finds background jobs that failed, or that report something to operators."""

    async def find(user: ConsoleUser) -> list[Concern]:
        if not user.owns_all:
            return []
        found = []
        for one in await list_reports():
            if one.notice:
                found.append(Concern("A background job needs attention", one.notice, ""))
            if one.failures:
                found.append(Concern("A background job failed", one.describe_failure(), ""))
        return found

    return find


def find_in_figures(figures: PeriodFigures, days: int) -> list[Concern]:
    """Return the outages that the questions of a period show."""
    found = []
    for outcome, reason, count in figures.reasons:
        about = reason.replace("_", " ") or "an unknown reason"
        if outcome == "passages" and reason not in ("", NO_MODEL):
            text = f"{count} questions were answered with passages instead: {about}."
            found.append(Concern("Models did not answer", text, _list(days, "answered", reason)))
        elif outcome == "failed":
            text = f"{count} questions ended without an answer: {about}."
            found.append(Concern("Questions failed", text, _list(days, "failed", reason)))
    return found


def _list(days: int, outcome: str, reason: str) -> str:
    return f"questions?{urlencode({'days': days, 'outcome': outcome, 'reason': reason})}"
