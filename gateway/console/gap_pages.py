"""The pages of what the documents lack, and of questions that are asked again."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from envelope.question import Question, copy_for_owner
from gateway.console.again import Again, find_repeated
from gateway.console.frame import (
    EDITOR,
    HEADERS,
    PATH,
    Form,
    Frame,
    Name,
    NoticeError,
    Visitor,
    link,
)
from gateway.console.gap_export import write_csv, write_json
from gateway.console.pages import render_answer
from gateway.console.routes import Text, name_question
from records.gaps import STATES, Gap, GapFinder
from records.record import Record
from records.store import RecordStore

MOST_AGAIN = 10
"""Questions of a gap that are asked again at once, the most typical first."""
LABELS = {"open": "open", "writing": "being written", "done": "done"}
WHY = {
    "refused": "refused",
    "unanswered": "asked back, without a later answer",
    "down": "rated down",
}


class GapPages:
    """Shows gaps, keeps their states, asks their questions again, exports them."""

    def __init__(self, frame: Frame, gaps: GapFinder, again: Again) -> None:
        self._frame = frame
        self._gaps = gaps
        self._again = again

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(include_in_schema=False)
        router.add_api_route(f"{PATH}/gaps", self.list_gaps, methods=["GET"])
        router.add_api_route(f"{PATH}/gaps.csv", self.export_csv, methods=["GET"])
        router.add_api_route(f"{PATH}/gaps.json", self.export_json, methods=["GET"])
        router.add_api_route(f"{PATH}/gap", self.show_gap, methods=["GET"])
        router.add_api_route(f"{PATH}/gap/state", self.set_state, methods=["POST"])
        router.add_api_route(f"{PATH}/gap/again", self.ask_gap_again, methods=["POST"])
        router.add_api_route(f"{PATH}/again", self.compare, methods=["GET"])
        router.add_api_route(f"{PATH}/question/again", self.ask_again, methods=["POST"])
        return router

    async def list_gaps(self, request: Request, state: Text = "") -> Response:
        """List the gaps of every assistant of the visitor, the greatest first."""

        async def read(visitor: Visitor) -> Mapping[str, Any]:
            found = await self._find(visitor)
            shown = [gap for gap in found if (gap.state == state if state else gap.state != "done")]
            return {
                "gaps": [gap for gap in shown if gap.size > 1],
                "single": [gap for gap in shown if gap.size == 1],
                "counts": {name: sum(gap.state == name for gap in found) for name in STATES},
            }

        return await self._frame.show(
            request, "gaps.html", read, chosen=state, labels=LABELS, why=WHY
        )

    async def show_gap(self, request: Request, tenant: Text, assistant: Text, id: Text) -> Response:  # noqa: A002 - as the address has it
        """Show one gap with all its questions, and what became of those that were asked again."""

        async def read(visitor: Visitor) -> Mapping[str, Any] | None:
            gap = await self._find_gap(visitor, (tenant, assistant), id)
            if gap is None:
                return None
            repeated = await self._frame.query(partial(_find_repeated, gap))
            return {"gap": gap, "repeated": repeated}

        return await self._frame.show(
            request, "gap.html", read, labels=LABELS, why=WHY, most_again=MOST_AGAIN
        )

    async def set_state(self, request: Request) -> Response:
        """Store the state of a gap."""

        async def change(form: Form) -> str:
            name, gap_id = form.read_assistant(EDITOR), form.read("id")
            state = form.read("state")
            if not await self._frame.query(lambda _: self._gaps.set_state(name, gap_id, state)):
                raise _no_gap()
            return _place(name, gap_id)

        return await self._frame.act(request, EDITOR, change)

    async def ask_gap_again(self, request: Request) -> Response:
        """Ask the most typical questions of a gap again."""

        async def change(form: Form) -> str:
            name, gap_id = form.read_assistant(EDITOR), form.read("id")
            gap = await self._find_gap(form.visitor, name, gap_id)
            if gap is None:
                raise _no_gap()
            for one in gap.questions[:MOST_AGAIN]:
                await self._ask(one.record)
            return _place(name, gap_id, said="asked")

        return await self._frame.act(request, EDITOR, change)

    async def ask_again(self, request: Request) -> Response:
        """Ask one question again, and lead to both answers."""

        async def change(form: Form) -> str:
            tenant, assistant = form.read_assistant(EDITOR)
            conversation, message = form.read("conversation"), form.read("message")
            asked = name_question(tenant, assistant, conversation, message)
            record = None if asked is None else await self._frame.query(partial(_get, asked))
            if record is None:
                raise NoticeError("No such question", "There is no record of it any more.", 404)
            again = await self._ask(record)
            return link("again", tenant=tenant, assistant=assistant, conversation=conversation,
                        message=message, again=again.message_id)  # fmt: skip

        return await self._frame.act(request, EDITOR, change)

    async def compare(
        self,
        request: Request,
        tenant: Text,
        assistant: Text,
        conversation: Text,
        message: Text,
        again: Text,
    ) -> Response:
        """Show the old answer beside the new one, for which the page waits a while."""

        async def read(visitor: Visitor) -> Mapping[str, Any] | None:
            if (tenant, assistant) not in visitor.list_assistants():
                return None
            asked = name_question(tenant, assistant, conversation, message)
            if asked is None:
                return None
            repeated = copy_for_owner(asked).model_copy(update={"message_id": again})
            before = await self._frame.query(partial(_get, asked))
            if before is None:
                return None
            now = await self._frame.query(partial(_get, repeated))
            now = await self._again.read(repeated) if now is None else now
            return {
                "before": before,
                "now": now,
                "answers": [render_answer(one.answer) if one else "" for one in (before, now)],
                "again": again,
            }

        return await self._frame.show(request, "again.html", read)

    async def export_csv(self, request: Request) -> Response:
        """Return all gaps as a table."""
        return await self._export(request, write_csv, "text/csv", "gaps.csv")

    async def export_json(self, request: Request) -> Response:
        """Return all gaps with their questions."""
        return await self._export(request, write_json, "application/json", "gaps.json")

    async def _export(self, request: Request, write: Any, kind: str, name: str) -> Response:
        async def answer() -> Response:
            gaps = await self._find(await self._frame.identify(request))
            headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
            return Response(write(gaps), media_type=kind, headers=headers)

        return await self._frame.respond(answer)

    async def _ask(self, record: Record) -> Question:
        earlier = await self._frame.query(lambda store: store.find_conversation(record.id))
        return await self._again.ask(record, earlier)

    async def _find(self, visitor: Visitor) -> list[Gap]:
        if self._frame.store is None:
            await self._frame.query(lambda _: None)
        found = [await self._gaps.find(name) for name in visitor.list_assistants()]
        return sorted((gap for gaps in found for gap in gaps), key=lambda gap: -gap.size)

    async def _find_gap(self, visitor: Visitor, name: Name, gap_id: str) -> Gap | None:
        if name not in visitor.list_assistants():
            return None
        return next((gap for gap in await self._gaps.find(name) if gap.id == gap_id), None)


def _find_repeated(gap: Gap, store: RecordStore) -> dict[str, Record]:
    """Return the last time that each question was asked again, by the id of its message."""
    found: dict[str, Record] = {}
    for one in gap.questions:
        again = find_repeated(store, one.record)
        if again:
            found[one.record.message_id] = again[0]
    return found


def _get(question: Question, store: RecordStore) -> Record | None:
    return store.get(question)


def _place(name: Name, gap_id: str, **more: str) -> str:
    return link("gap", tenant=name[0], assistant=name[1], id=gap_id, **more)


def _no_gap() -> NoticeError:
    return NoticeError("No such gap", "Its questions were erased, or joined another gap.", 404)
