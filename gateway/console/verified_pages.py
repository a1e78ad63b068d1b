"""The page of verified answers, which the owner writes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from envelope.verified import CitedPage, VerifiedAnswer
from gateway.console.access import (
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
    require,
)
from gateway.console.attention import Concern, FindConcerns
from gateway.console.frame import Frame, Pages, SentForm, add_pages, lead, receive
from gateway.port import CatalogSelection, DocumentCatalog
from records.verified import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    RecordedAnswer,
    TooManyAnswersError,
    VerifiedStore,
)

MOST_PAGES = 10
Text = Annotated[str, Query(max_length=LONGEST_QUESTION)]
Publish = Callable[[Assistant, Sequence[VerifiedAnswer]], Awaitable[None]]
"""Gives the answers of an assistant to the agents."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer with its assistant; `stale` names the pages whose text or rights changed
    since, and those that are no longer there."""

    assistant: Assistant
    kept: RecordedAnswer
    stale: Sequence[str]


class VerifiedPages:
    """Lists, writes and removes verified answers."""

    def __init__(
        self, frame: Frame, store: VerifiedStore, catalog: DocumentCatalog, publish: Publish
    ) -> None:
        self._frame = frame
        self._store = store
        self._catalog = catalog
        self._publish = publish

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        shown: Pages = {"verified": self.list_answers}
        changed: Pages = {"verified/save": self.save, "verified/remove": self.remove}
        add_pages(router, "GET", shown)
        add_pages(router, "POST", changed)

    @require(ConsoleRole.VIEWER)
    async def list_answers(
        self,
        request: Request,
        tenant: Text = "",
        assistant: Text = "",
        question: Text = "",
        id: Text = "",  # noqa: A002 - as the address has it
    ) -> Response:
        """Show the verified answers, and the form for one of an assistant."""

        async def read(user: ConsoleUser) -> Mapping[str, Any]:
            found = await self.find(user)
            editable = user.list_assistants(ConsoleRole.EDITOR)
            chosen = next((one for one in found if one.kept.answer.id == id), None)
            name = (tenant, assistant) if assistant else (editable or user.list_assistants())[0]
            name = name if chosen is None else chosen.assistant
            return {
                "answers": found,
                "editable": editable,
                "named": {"tenant": name[0], "assistant": name[1]},
                "written": None if chosen is None else chosen.kept.answer,
            }

        return await self._frame.show(
            request,
            "verified.html",
            read,
            question=question,
            longest_question=LONGEST_QUESTION,
            longest_answer=LONGEST_ANSWER,
        )

    @require(ConsoleRole.EDITOR)
    async def save(self, request: Request) -> Response:
        """Store an answer with its pages as they are now."""
        form = await receive(request, ConsoleRole.EDITOR)
        question, answer = (
            form.read("question", most=LONGEST_QUESTION),
            form.read("answer", most=LONGEST_ANSWER),
        )
        if not question or not answer:
            raise ConsoleRefusedError(400, "Not saved", "Enter both a question and its answer.")
        pages = await self._read_pages(form)
        save = partial(self._store.save, form.assistant, form.read("id"), question, answer, pages)
        try:
            saved = await self._frame.query(lambda _: save())
        except TooManyAnswersError as error:
            raise ConsoleRefusedError(
                400, "Not saved", f"Remove another verified answer first: {error}."
            ) from error
        if saved is None:
            raise _no_answer()
        return await self._lead_back(form.assistant, "saved")

    @require(ConsoleRole.EDITOR)
    async def remove(self, request: Request) -> Response:
        """Delete an answer."""
        form = await receive(request, ConsoleRole.EDITOR)
        remove = partial(self._store.remove, form.assistant, form.read("id"))
        if not await self._frame.query(lambda _: remove()):
            raise _no_answer()
        return await self._lead_back(form.assistant, "removed")

    async def publish(self, assistant: Assistant) -> None:
        """Give the stored answers of an assistant to the agents."""
        kept = await self._frame.query(partial(self._list, assistant))
        await self._publish(assistant, [one.answer for one in kept])

    async def find(self, user: ConsoleUser) -> list[ShownAnswer]:
        """Return the answers of a person's assistants, the stale ones first."""
        found = [
            ShownAnswer(name, kept, await self._find_stale(name, kept.answer))
            for name in user.list_assistants()
            for kept in await self._frame.query(partial(self._list, name))
        ]
        return sorted(found, key=lambda one: not one.stale)

    def _list(self, assistant: Assistant, _: object) -> Sequence[RecordedAnswer]:
        return self._store.list_of(assistant)

    async def _lead_back(self, assistant: Assistant, said: str) -> Response:
        await self.publish(assistant)
        return lead("verified", tenant=assistant[0], assistant=assistant[1], said=said)

    async def _read_pages(self, form: SentForm) -> list[CitedPage]:
        """Return the pages that a form names, one a line; raise for one that is not there."""
        lines = form.read("pages", most=MOST_PAGES * 500).splitlines()
        wanted = list(dict.fromkeys(filter(None, (line.strip() for line in lines))))
        if len(wanted) > MOST_PAGES:
            raise ConsoleRefusedError(
                400, "Not saved", f"A verified answer can cite at most {MOST_PAGES} pages."
            )
        pages = []
        for one in wanted:
            selection = CatalogSelection(patterns=(one,))
            found, total = await self._catalog.find(*form.assistant, selection, limit=1)
            if total != 1:
                raise ConsoleRefusedError(
                    400,
                    "Not saved",
                    f"Expected one document named {one!r}, found {total}. Name it by the id, file "
                    "or address that the page of documents shows.",
                )
            pages.append(
                CitedPage(
                    document_id=found[0].id,
                    title=found[0].title,
                    url=found[0].url,
                    path=found[0].source,
                    content_hash=found[0].content_hash,
                    groups=found[0].groups,
                )
            )
        return pages

    async def _find_stale(self, name: Assistant, answer: VerifiedAnswer) -> list[str]:
        if not answer.pages:
            return []
        ids = tuple(page.document_id for page in answer.pages)
        found, _ = await self._catalog.find(*name, CatalogSelection(ids=ids), limit=len(ids))
        now = {one.id: one for one in found}
        return [page.title for page in answer.pages if _is_changed(page, now)]


def find_in_answers(pages: VerifiedPages) -> FindConcerns:
    """Return what finds the verified answers that are stale."""

    async def find(user: ConsoleUser) -> list[Concern]:
        stale = [one for one in await pages.find(user) if one.stale]
        if not stale:
            return []
        text = (
            f"{len(stale)} verified answers cite pages whose text or access rights have changed: "
            f"{stale[0].kept.answer.question}"
        )
        return [Concern("Verified answers may be out of date", text, "verified")]

    return find


def _is_changed(page: CitedPage, now: Mapping[str, Any]) -> bool:
    known = now.get(page.document_id)
    if known is None or known.content_hash != page.content_hash:
        return True
    return set(known.groups) != set(page.groups)


def _no_answer() -> ConsoleRefusedError:
    return ConsoleRefusedError(404, "No such answer", "Somebody has removed it in the meantime.")
