"""The page of verified answers, which the owner writes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response

from envelope.verified import CitedPage, VerifiedAnswer
from gateway.console.access import (
    Assistant,
    ConsoleRefusedError,
    ConsoleRole,
    ConsoleUser,
    NotSavedError,
    fields_of,
    require,
    user_of,
)
from gateway.console.attention import Concern
from gateway.console.frame import ConsolePart, Frame, SentForm, lead, receive
from gateway.port import CatalogEntry, CatalogSelection, DocumentCatalog
from records.verified import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    RecordedAnswer,
    TooManyAnswersError,
    VerifiedStore,
)

MOST_PAGES, MOST_FOUND = 10, 20
PAGE_FIELD = "page-"
"""The prefix of the form fields with the ids of the chosen pages."""
Text = Annotated[str, Query(max_length=LONGEST_QUESTION)]
Publish = Callable[[Assistant, Sequence[VerifiedAnswer]], Awaitable[None]]
"""Publishes the verified answers of an assistant to the agents."""


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer with its assistant; `stale` names the pages whose text or permissions have changed,
    and those that no longer exist.
    """

    assistant: Assistant
    kept: RecordedAnswer
    stale: Sequence[str]


class VerifiedPages(ConsolePart):
    """Lists, writes and removes verified answers."""

    def __init__(
        self, frame: Frame, store: VerifiedStore, catalog: DocumentCatalog, publish: Publish
    ) -> None:
        self._frame = frame
        self._store = store
        self._catalog = catalog
        self._publish = publish

    @require(ConsoleRole.VIEWER, get="verified")
    async def list_answers(self, request: Request) -> Response:
        """Show the verified answers."""
        user = user_of(request)
        editable = user.list_assistants(ConsoleRole.EDITOR)
        answers = await self.find(user)
        return self._frame.show(request, "verified.html", answers=answers, editable=editable)

    @require(ConsoleRole.EDITOR, get="verified/write")
    async def write(
        self,
        request: Request,
        tenant: Text = "",
        assistant: Text = "",
        question: Text = "",
        id: Text = "",  # noqa: A002 - as the address has it
    ) -> Response:
        """Show the form for a new answer, or for the answer with an id."""
        user = user_of(request)
        known = await self.find(user) if id else []
        chosen = next((answer for answer in known if answer.kept.answer.id == id), None)
        if chosen is None:
            name = user.choose(tenant, assistant)
            return await self._show_form(request, name, {"question": question})
        answer = chosen.kept.answer
        fields = {"id": answer.id, "question": answer.question, "answer": answer.answer}
        ids = tuple(page.document_id for page in answer.pages)
        return await self._show_form(request, chosen.assistant, fields, ids)

    @require(ConsoleRole.EDITOR, post="verified/save")
    async def save(self, request: Request) -> Response:
        """Store an answer with the current state of its pages, or only search for pages."""
        form = await receive(request, ConsoleRole.EDITOR)
        ids = [value for name, value in form.fields.items() if name.startswith(PAGE_FIELD)]
        ids = list(dict.fromkeys(ids))
        if form.read("do") == "find":
            return await self._show_form(request, form.assistant, form.fields, ids)
        try:
            await self._save(form, ids)
        except ConsoleRefusedError as refusal:
            return await self._show_form(request, form.assistant, form.fields, ids, refusal)
        return await self._lead_back(form.assistant, "saved")

    async def _save(self, form: SentForm, ids: Sequence[str]) -> None:
        question = form.read("question", most=LONGEST_QUESTION)
        answer = form.read("answer", most=LONGEST_ANSWER)
        if not question or not answer:
            raise NotSavedError("Enter both a question and its answer.")
        pages = await self._read_pages(form.assistant, ids)
        save = partial(self._store.save, form.assistant, form.read("id"), question, answer, pages)
        try:
            saved = await self._frame.query(lambda _: save())
        except TooManyAnswersError as error:
            raise NotSavedError(f"Remove another verified answer first: {error}.") from error
        if saved is None:
            raise _no_answer()

    async def _show_form(
        self,
        request: Request,
        name: Assistant,
        fields: Mapping[str, str],
        ids: Sequence[str] = (),
        refusal: ConsoleRefusedError | None = None,
    ) -> Response:
        """Show the form with its fields, the chosen pages, and the pages that the search finds."""
        user = user_of(request)
        user.require(ConsoleRole.EDITOR, name)
        chosen = await self._list_pages(name, ids)
        find = fields.get("find", "").strip()[:LONGEST_QUESTION]
        entries: Sequence[CatalogEntry] = ()
        if find:
            wanted = CatalogSelection(text=find)
            entries, _ = await self._catalog.find(*name, wanted, limit=MOST_FOUND)
        kept = {entry.id for entry in chosen}
        return self._frame.show(
            request,
            "verified_form.html",
            refusal=refusal,
            named=fields_of(name),
            editable=user.list_assistants(ConsoleRole.EDITOR),
            written={name: fields.get(name, "") for name in ("id", "question", "answer")},
            find=find,
            pages=chosen,
            found=[entry for entry in entries if entry.id not in kept],
            longest_question=LONGEST_QUESTION,
            longest_answer=LONGEST_ANSWER,
        )

    @require(ConsoleRole.EDITOR, post="verified/remove")
    async def remove(self, request: Request) -> Response:
        """Delete an answer."""
        form = await receive(request, ConsoleRole.EDITOR)
        remove = partial(self._store.remove, form.assistant, form.read("id"))
        if not await self._frame.query(lambda _: remove()):
            raise _no_answer()
        return await self._lead_back(form.assistant, "removed")

    async def publish(self, assistant: Assistant) -> None:
        """Publish the stored answers of an assistant to the agents."""
        kept = await self._frame.query(partial(self._list, assistant))
        await self._publish(assistant, [answer.answer for answer in kept])

    async def find(self, user: ConsoleUser) -> list[ShownAnswer]:
        """Return the answers of the assistants that a person can see, the stale ones first."""
        answers = [
            ShownAnswer(name, kept, await self._find_stale(name, kept.answer))
            for name in user.list_assistants()
            for kept in await self._frame.query(partial(self._list, name))
        ]
        return sorted(answers, key=lambda item: not item.stale)

    def _list(self, assistant: Assistant, _: object) -> Sequence[RecordedAnswer]:
        return self._store.list_of(assistant)

    async def _lead_back(self, assistant: Assistant, said: str) -> Response:
        await self.publish(assistant)
        return lead("verified", said=said)

    async def _list_pages(self, name: Assistant, ids: Sequence[str]) -> Sequence[CatalogEntry]:
        """Return the documents with these ids, in this order, without those that no longer
        exist.
        """
        if not ids:
            return ()
        selection = CatalogSelection(ids=tuple(ids))
        known = {
            entry.id: entry
            for entry in (await self._catalog.find(*name, selection, limit=len(ids)))[0]
        }
        return [known[identifier] for identifier in ids if identifier in known]

    async def _read_pages(self, name: Assistant, ids: Sequence[str]) -> list[CitedPage]:
        """Return the chosen pages; raises `NotSavedError` if there are too many or one is
        missing.
        """
        if len(ids) > MOST_PAGES:
            raise NotSavedError(f"A verified answer can cite at most {MOST_PAGES} pages.")
        entries = await self._list_pages(name, ids)
        if len(entries) != len(ids):
            raise NotSavedError("A chosen page no longer exists. Choose the pages again.")
        return [
            CitedPage(
                document_id=entry.id,
                title=entry.title,
                url=entry.url,
                path=entry.source,
                content_hash=entry.content_hash,
                groups=entry.groups,
            )
            for entry in entries
        ]

    async def _find_stale(self, name: Assistant, answer: VerifiedAnswer) -> list[str]:
        ids = [page.document_id for page in answer.pages]
        now = {entry.id: entry for entry in await self._list_pages(name, ids)}
        return [page.title for page in answer.pages if _is_changed(page, now)]

    async def find_concerns(self, user: ConsoleUser) -> list[Concern]:
        """Report stale answers."""
        stale = [answer for answer in await self.find(user) if answer.stale]
        if not stale:
            return []
        text = (
            f"{len(stale)} verified answers cite pages whose text or access rights have changed: "
            f"{stale[0].kept.answer.question}"
        )
        return [Concern("Verified answers may be out of date", text, "verified", "Check them")]


def _is_changed(page: CitedPage, now: Mapping[str, Any]) -> bool:
    known = now.get(page.document_id)
    if known is None or known.content_hash != page.content_hash:
        return True
    return set(known.groups) != set(page.groups)


def _no_answer() -> ConsoleRefusedError:
    return ConsoleRefusedError(
        404, "This answer does not exist", "The answer was removed in the meantime."
    )
