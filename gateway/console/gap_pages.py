"""The pages of gaps, and of questions that are asked again."""

from collections import Counter
from functools import partial
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from envelope.question import CONSOLE, Question, copy_question
from gateway.console.access import (
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
    require,
    user_of,
)
from gateway.console.again import Again, find_repeated
from gateway.console.attention import END, ISOLATE, Concern
from gateway.console.frame import ConsolePart, Frame, identify_message, lead, no_question, receive
from gateway.console.gap_export import write_csv, write_json
from gateway.console.pages import HEADERS, message_fields_of, times
from records.gaps import STATES, Gap, GapFinder, GapQuestion
from records.record import Record
from records.store import RecordStore

MOST_AGAIN = 10
"""Maximum number of questions of a gap that are asked again at once, the most typical first."""
_MOST_CONCERNS = 5
LABELS = {"open": "open", "writing": "being written", "done": "done"}
WHY = {
    "refused": "not answered",
    "unanswered": "ended with an unanswered clarification",
    "down": "rated as not helpful",
}
Text = Annotated[str, Query(max_length=200)]


class GapPages(ConsolePart):
    """Shows gaps, stores their states, asks their questions again and exports them."""

    def __init__(self, frame: Frame, gaps: GapFinder, again: Again) -> None:
        self._frame = frame
        self._gaps = gaps
        self._again = again

    @require(ConsoleRole.VIEWER, get="gaps")
    async def list_gaps(self, request: Request, state: Text = "") -> Response:
        """List the gaps of all assistants that the user can see, the largest first."""
        gaps = await self.find(user_of(request))
        return self._frame.show(
            request,
            "gaps.html",
            gaps=[gap for gap in gaps if (gap.state == state if state else gap.state != "done")],
            counts={name: sum(gap.state == name for gap in gaps) for name in STATES},
            chosen=state,
            labels=LABELS,
            why=WHY,
        )

    @require(ConsoleRole.VIEWER, get="gap")
    async def show_gap(self, request: Request, tenant: Text, assistant: Text, id: Text) -> Response:  # noqa: A002 - as the address has it
        """Show one gap with all its questions, and the results of those that were asked again."""
        gap = await self._find_gap((tenant, assistant), id)
        return self._frame.show(
            request,
            "gap.html",
            gap=gap,
            repeated=await self._frame.query(partial(_find_repeated, gap)),
            different=_count_different(gap),
            labels=LABELS,
            why=WHY,
            most_again=MOST_AGAIN,
        )

    @require(ConsoleRole.EDITOR, post="gap/state")
    async def set_state(self, request: Request) -> Response:
        """Store the state of a gap."""
        form = await receive(request, ConsoleRole.EDITOR)
        gap_id, state = form.read("id"), form.read("state")
        if not await self._frame.query(
            lambda _: self._gaps.set_state(form.assistant, gap_id, state)
        ):
            raise _no_gap()
        return lead("gap", form.assistant, id=gap_id, said="saved")

    @require(ConsoleRole.EDITOR, post="gap/again")
    async def ask_gap_again(self, request: Request) -> Response:
        """Ask the most typical questions of a gap again, without duplicates."""
        form = await receive(request, ConsoleRole.EDITOR)
        gap = await self._find_gap(form.assistant, form.read("id"))
        different = {question.text: question.record for question in reversed(gap.questions)}
        for record in list(reversed(different.values()))[:MOST_AGAIN]:
            await self._ask(record)
        return lead("gap", form.assistant, id=gap.id, said="asked")

    @require(ConsoleRole.EDITOR, post="question/again")
    async def ask_again(self, request: Request) -> Response:
        """Ask one question again, and redirect to the comparison of the old and the new answer."""
        form = await receive(request, ConsoleRole.EDITOR)
        asked = form.read_message()
        record = await self._frame.query(partial(_get, asked))
        if record is None:
            raise no_question()
        again = await self._ask(record)
        return lead("again", **message_fields_of(record), again=again.message_id)

    @require(ConsoleRole.VIEWER, get="again")
    async def compare(
        self,
        request: Request,
        tenant: Text,
        assistant: Text,
        conversation: Text,
        message: Text,
        again: Text,
    ) -> Response:
        """Show the old answer next to the new one, for which the page waits a limited time."""
        asked = identify_message(tenant, assistant, conversation, message)
        before = None if asked is None else await self._frame.query(partial(_get, asked))
        if asked is None or before is None:
            raise self._frame.missing()
        repeated = copy_question(asked, CONSOLE).model_copy(update={"message_id": again})
        now = await self._frame.query(partial(_get, repeated))
        now = await self._again.read(repeated) if now is None else now
        return self._frame.show(request, "again.html", before=before, now=now, again=again)

    @require(ConsoleRole.VIEWER, get="gaps.csv")
    async def export_csv(self, request: Request) -> Response:
        """Return all gaps as CSV."""
        return _export(write_csv(await self.find(user_of(request))), "text/csv", "gaps.csv")

    @require(ConsoleRole.VIEWER, get="gaps.json")
    async def export_json(self, request: Request) -> Response:
        """Return all gaps with examples of their questions."""
        gaps = await self.find(user_of(request))
        return _export(write_json(gaps), "application/json", "gaps.json")

    async def find(self, user: ConsoleUser) -> list[Gap]:
        """Return the gaps of the assistants that a person can see, the largest first."""
        await self._frame.query(lambda _: None)
        gap_lists = [await self._gaps.find(name) for name in user.list_assistants()]
        return sorted((gap for gaps in gap_lists for gap in gaps), key=lambda gap: -gap.size)

    async def find_concerns(self, user: ConsoleUser) -> list[Concern]:
        """Return the growing gaps."""
        growing = [gap for gap in await self.find(user) if gap.grows]
        return [_describe_growth(gap) for gap in growing[:_MOST_CONCERNS]]

    async def _find_gap(self, assistant: Assistant, gap_id: str) -> Gap:
        await self._frame.query(lambda _: None)
        gaps = await self._gaps.find(assistant)
        gap = next((gap for gap in gaps if gap.id == gap_id), None)
        if gap is None:
            raise _no_gap()
        return gap

    async def _ask(self, record: Record) -> Question:
        earlier = await self._frame.query(lambda store: store.find_conversation(record.id))
        return await self._again.ask(record, earlier)


def _count_different(gap: Gap) -> list[tuple[GapQuestion, int]]:
    """Return the distinct questions of a gap, each with the number of times it was asked."""
    counts = Counter(question.text for question in gap.questions)
    different = {question.text: question for question in reversed(gap.questions)}
    return [(question, counts[question.text]) for question in reversed(different.values())]


def _find_repeated(gap: Gap, store: RecordStore) -> dict[str, Record]:
    """Return the latest repetition of each question, by the id of its message."""
    repeated: dict[str, Record] = {}
    for question in gap.questions:
        again = find_repeated(store, question.record)
        if again:
            repeated[question.record.message_id] = again[0]
    return repeated


def _describe_growth(gap: Gap) -> Concern:
    named = {"tenant": gap.tenant, "assistant": gap.assistant, "id": gap.id}
    since = (
        f"{times(gap.since_change)} since it was marked as done"
        if gap.state == "done"
        else f"{times(gap.week_before)} in the 7 days before"
    )
    return Concern(
        f"Not in the documents: “{ISOLATE}{gap.title}{END}”",
        f"asked {times(gap.last_week)} in 7 days, {since}",
        f"gap?{urlencode(named)}",
        "Close the gap",
    )


def _get(question: Question, store: RecordStore) -> Record | None:
    return store.get(question)


def _export(text: bytes, kind: str, name: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type=kind, headers=headers)


def _no_gap() -> ConsoleRefusedError:
    return ConsoleRefusedError(
        404,
        "This gap does not exist",
        "Its questions were erased, or they belong to another gap now.",
    )
