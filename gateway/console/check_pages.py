"""The pages of checks: the latest check of each source, and the questions that the owner marked."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response

from envelope.question import Question
from gateway.console.access import (
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
    NotSavedError,
    require,
    user_of,
)
from gateway.console.attention import Concern
from gateway.console.frame import ConsolePart, Frame, lead, no_question, receive
from gateway.console.pages import HEADERS
from gateway.sources import SourceState
from knowledge.checks import CheckQuestion
from records.checks import (
    LONGEST_QUESTION,
    MOST_FACTS,
    CheckStore,
    StoredCheck,
    TooManyMarkedError,
    list_citations,
)
from records.store import RecordStore

Text = Annotated[str, Query(max_length=2_000)]
_LONGEST_FACTS = 4_000
ListSources = Callable[[Assistant], Sequence[SourceState]]


@dataclass(frozen=True, slots=True)
class AssistantChecks:
    """The latest checks of an assistant, those with broken questions first, and its marked
    questions.
    """

    assistant: Assistant
    checks: Sequence[StoredCheck]
    marked: Sequence[CheckQuestion]


class CheckPages(ConsolePart):
    """Shows the checks, and marks questions as test questions."""

    def __init__(self, frame: Frame, list_sources: ListSources = lambda _: ()) -> None:
        self._frame = frame
        self._list_sources = list_sources

    @require(ConsoleRole.VIEWER, get="checks")
    async def list_checks(self, request: Request) -> Response:
        """Show the latest check of each source, and the marked questions."""
        user = user_of(request)
        return self._frame.show(
            request,
            "checks.html",
            found=await self.find(user),
            editable=user.list_assistants(ConsoleRole.EDITOR),
            names=self._name_sources(user.list_assistants()),
        )

    @require(ConsoleRole.VIEWER, get="check")
    async def show(self, request: Request, tenant: Text, assistant: Text, source: Text) -> Response:
        """Show one check, question by question."""
        name = (tenant, assistant)
        check = await self._frame.query(partial(_read_check, name=name, source=source))
        if check is None:
            raise self._frame.missing()
        names = self._name_sources([name])
        return self._frame.show(request, "check.html", check=check, names=names)

    @require(ConsoleRole.EDITOR, get="checks.json")
    async def export(self, request: Request, tenant: Text, assistant: Text) -> Response:
        """Return the marked questions as a file of golden questions."""
        name = (tenant, assistant)
        user_of(request).require(ConsoleRole.EDITOR, name)
        marked = await self._frame.query(lambda store: CheckStore(store).list_marked(name))
        text = json.dumps({"questions": list(map(_export, marked))}, ensure_ascii=False, indent=2)
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="questions.json"'}
        return Response(text, media_type="application/json", headers=headers)

    @require(ConsoleRole.EDITOR, post="checks/mark")
    async def mark(self, request: Request) -> Response:
        """Mark a recorded question as a test question, with the wording and facts from the form."""
        form = await receive(request, ConsoleRole.EDITOR)
        text = form.read("question", most=LONGEST_QUESTION)
        lines = form.read("facts", most=_LONGEST_FACTS).splitlines()
        facts = list(filter(None, (line.strip() for line in lines)))
        if not text or len(facts) > MOST_FACTS:
            raise NotSavedError(f"Enter a question, and at most {MOST_FACTS} facts.")
        asked = form.read_message()
        try:
            await self._frame.query(lambda store: _mark(store, asked, text, facts))
        except TooManyMarkedError as error:
            raise NotSavedError(f"Remove another marked question first: {error}.") from error
        return lead("checks", said="saved")

    @require(ConsoleRole.EDITOR, post="checks/remove")
    async def remove(self, request: Request) -> Response:
        """Remove a marked question."""
        form = await receive(request, ConsoleRole.EDITOR)
        name, question_id = form.assistant, form.read("id")
        is_removed = await self._frame.query(
            lambda store: CheckStore(store).unmark(name, question_id)
        )
        if not is_removed:
            raise ConsoleRefusedError(
                404, "This question does not exist", "The question was removed in the meantime."
            )
        return lead("checks", said="removed")

    def _name_sources(self, assistants: Sequence[Assistant]) -> dict[str, str]:
        """Return readable names for the locations of sources."""
        return {
            source.place: source.name for name in assistants for source in self._list_sources(name)
        }

    async def find(self, user: ConsoleUser) -> list[AssistantChecks]:
        """Return the checks and marked questions of the assistants that a person can see."""
        return [
            await self._frame.query(partial(_read_all, name=name))
            for name in user.list_assistants()
        ]

    async def find_concerns(self, user: ConsoleUser) -> list[Concern]:
        """Return the ingestions that broke questions."""
        found = [
            (check.source, check.result.count("broken"))
            for assistant_checks in await self.find(user)
            for check in assistant_checks.checks
        ]
        return [
            Concern(
                "A change of the documents broke questions",
                f"{source}: {'1 question' if count == 1 else f'{count} questions'} lost a fact or "
                "a section that the answer cites",
                "checks",
                "See the questions",
            )
            for source, count in found
            if count
        ]


def _read_all(store: RecordStore, *, name: Assistant) -> AssistantChecks:
    own = CheckStore(store)
    checks = own.list_checks(name).values()
    broken_first = sorted(checks, key=lambda item: (-item.result.count("broken"), -item.at))
    return AssistantChecks(name, broken_first, own.list_marked(name))


def _read_check(store: RecordStore, *, name: Assistant, source: str) -> StoredCheck | None:
    own = CheckStore(store)
    check = own.list_checks(name).get(source)
    return None if check is None else own.show_texts(check)


def _mark(store: RecordStore, asked: Question, text: str, facts: Sequence[str]) -> None:
    record = store.get(asked)
    if record is None:
        raise no_question()
    pages = dict.fromkeys(
        str(source.get("path") or source.get("url") or "") for source in record.sources
    )
    CheckStore(store).mark(
        (asked.tenant, asked.assistant),
        CheckQuestion(
            id="",
            text=text,
            origin="marked",
            language=record.language,
            facts=tuple((fact,) for fact in facts),
            pages=tuple(filter(None, pages)),
            citations=tuple(list_citations(record.sources)),
            groups=record.groups,
        ),
    )


def _export(question: CheckQuestion) -> dict[str, Any]:
    fields = {
        "question": question.text,
        "language": question.language,
        "facts": [list(fact) for fact in question.facts],
        "pages": list(question.pages),
    }
    return {name: value for name, value in fields.items() if value}
