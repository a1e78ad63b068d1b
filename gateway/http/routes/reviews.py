"""The routes of reviews: start, follow, read, and cancel a review, and get its report.

A review is a message like any other, but with a longer time limit. Its events, its outcome, and its
erasure work as for other messages.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import JsonValue
from starlette.responses import JSONResponse

from envelope.question import Question
from gateway.api_keys import Scope
from gateway.desk import JobOrder, Message, erase
from gateway.http.access import Principal, choose_language, list_people, name_person
from gateway.http.admission_queue import QuestionSender
from gateway.http.context import (
    AssistantName,
    ConversationAccess,
    HttpChannel,
    check_no_chat,
    require_scope,
)
from gateway.http.errors import InvalidRequestError, unknown
from gateway.http.review_documents import NamedDocumentFinder, StoredAttachments
from gateway.http.routes.attachments import (
    LONGEST_FILE_NAME,
    read_upload,
    refuse_visitors,
    show_document,
)
from gateway.http.routes.message_follower import MessageFollower
from gateway.http.routes.messages import EVENT_STREAM, EXAMPLE, IdempotencyKey, LastEventId
from gateway.http.routes.review_form import (
    JSON_FORM,
    LONGEST_FOCUS,
    EstimatedReview,
    NewReview,
    Review,
    ReviewCounts,
    ReviewEstimate,
    ReviewName,
    ReviewSection,
    RuleNames,
    Specialists,
    digest_request,
    list_titles,
    name_review,
    read_form,
    read_review_id,
    refuse_empty,
    split_names,
    validate_review,
)
from gateway.review_ports import (
    DocumentEntry,
    ReportForm,
    ReportRenderer,
)

WAY = "specialists"
_NOT_MADE = frozenset({"failed", "not_requested", "not_judged"})
"""States of a section for which its specialist produced no result."""
BASE = "/v1/reviews"
ReviewId = Annotated[str, Path(max_length=300, description="id of the review")]
_BODIES: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON_FORM: {"schema": NewReview.model_json_schema()},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_EVENTS: dict[int | str, dict[str, object]] = {
    200: {"description": "Its events.", "content": {EVENT_STREAM: {"example": EXAMPLE}}},
    204: {"description": "The review has ended, and there are no events after `Last-Event-ID`."},
}
_REPORT: dict[int | str, dict[str, object]] = {
    200: {
        "description": "The report.",
        "content": {form.media_type.partition(";")[0]: {} for form in ReportForm},
    }
}
EstimateReview = Callable[[int, int], Awaitable[ReviewEstimate | None]]
"""Returns the estimate for a review, given the numbers of passages in the rules and documents."""


@dataclass(frozen=True, slots=True)
class Upload:
    """The file in a request that uploads a document instead of naming one."""

    name: str
    data: bytes
    review: NewReview


async def estimate_nothing(_rules: int, _documents: int) -> ReviewEstimate | None:
    """Return no estimate, because no model is in use."""
    return None


@dataclass(frozen=True, slots=True)
class ReviewParts:
    """The dependencies of reviews in addition to the channel."""

    attachments: StoredAttachments
    documents: NamedDocumentFinder
    reports: ReportRenderer
    estimate: EstimateReview = estimate_nothing


class ReviewRoutes:
    """Starts and follows reviews."""

    def __init__(
        self,
        channel: HttpChannel,
        stopping: asyncio.Event,
        sender: QuestionSender,
        parts: ReviewParts,
    ) -> None:
        self._channel = channel
        self._sender = sender
        self._parts = parts
        self._follower = MessageFollower(channel, stopping)

    def router(self) -> APIRouter:
        """Return the routes."""
        router = APIRouter(tags=["reviews"])
        caller_of = Depends(require_scope(self._channel, Scope.ASK))
        self._add_start(router, caller_of)
        self._add_readers(router, caller_of)
        return router

    def _add_start(self, router: APIRouter, caller_of: object) -> None:
        @router.post(
            BASE,
            status_code=202,
            response_model=Review,
            response_model_exclude_none=True,
            openapi_extra=_BODIES,
            summary="Start a review",
        )
        async def start_review(
            caller: Annotated[Principal, caller_of],
            request: Request,
            assistant: AssistantName = None,
            name: Annotated[
                str | None,
                Query(
                    max_length=LONGEST_FILE_NAME,
                    description="name of the file in the body; its suffix determines the format",
                ),
            ] = None,
            against: RuleNames = None,
            conversation_id: Annotated[str | None, Query(max_length=128)] = None,
            focus: Annotated[str | None, Query(max_length=LONGEST_FOCUS)] = None,
            language: Annotated[str | None, Query(max_length=3)] = None,
            specialists: Specialists = None,
            estimate_only: Annotated[
                bool,
                Query(description="return an estimate, without starting the review"),
            ] = False,
            idempotency_key: IdempotencyKey = None,
        ) -> Response:
            """Accept a review and respond immediately. The body is JSON that names documents, or
            the bytes of one file, which then belongs only to the conversation of the review. Each
            JSON field can be passed in the URL instead. With `estimate_only`, the review is not
            started, and the response (200) contains an estimate.
            """
            stated: dict[str, object] = {
                "against": against,
                "conversation_id": conversation_id,
                "focus": focus,
                "language": language,
                "specialists": split_names(specialists) or None,
                "estimate_only": estimate_only or None,
            }
            stated = {field: value for field, value in stated.items() if value is not None}
            given: NewReview | Upload
            if name is None:
                given = await read_form(request, stated)
            else:
                review = validate_review({"document": name, "against": [], **stated})
                given = Upload(name, await read_upload(request), review)
            return await self._start(caller, assistant, request, given, idempotency_key)

    def _add_readers(self, router: APIRouter, caller_of: object) -> None:
        @router.get(
            f"{BASE}/{{review_id}}",
            response_model=Review,
            response_model_exclude_none=True,
            summary="Read a review",
        )
        async def read_review(
            caller: Annotated[Principal, caller_of],
            request: Request,
            review_id: ReviewId,
            assistant: AssistantName = None,
        ) -> Review:
            """Return whether a review is still running, and its progress, or its answer once it has
            ended.
            """
            access, name = await self._enter(caller, assistant, review_id)
            return await self._read(access, name, choose_language(request))

        @router.get(
            f"{BASE}/{{review_id}}/events",
            responses=_EVENTS,
            response_class=Response,
            summary="Follow a review",
        )
        async def follow_review(
            caller: Annotated[Principal, caller_of],
            request: Request,
            review_id: ReviewId,
            assistant: AssistantName = None,
            last_event_id: LastEventId = None,
        ) -> Response:
            """Stream the events of a review after `Last-Event-ID`, in the same way as those of a
            message.
            """
            access, name = await self._enter(caller, assistant, review_id)
            language = choose_language(request)
            return await self._follower.follow(access, name.message_id, last_event_id, language)

        @router.post(
            f"{BASE}/{{review_id}}/cancel",
            response_model=Review,
            response_model_exclude_none=True,
            summary="Cancel a review",
        )
        async def cancel_review(
            caller: Annotated[Principal, caller_of],
            request: Request,
            review_id: ReviewId,
            assistant: AssistantName = None,
        ) -> Review:
            """End a running review. A review that has already ended is not changed."""
            access, name = await self._enter(caller, assistant, review_id)
            language = choose_language(request)
            await self._follower.cancel(access, name.message_id, language)
            return await self._read(access, name, language)

        @router.get(
            f"{BASE}/{{review_id}}/report",
            responses=_REPORT,
            response_class=Response,
            summary="Get the report of a review",
        )
        async def read_report(
            caller: Annotated[Principal, caller_of],
            review_id: ReviewId,
            assistant: AssistantName = None,
            form: Annotated[
                Literal["md", "html", "pdf", "docx", "json"], Query(alias="format")
            ] = "md",
        ) -> Response:
            """Return the report as Markdown, as a single HTML page, as PDF, as DOCX, or as JSON,
            which contains each requirement with its verdict, and the text and location on both
            sides.
            """
            access, name = await self._enter(caller, assistant, review_id)
            return await self._render(access, name, ReportForm(form))

        @router.get(
            f"{BASE}/{{review_id}}/checklist",
            responses={200: {"description": "The checklist.", "content": {JSON_FORM: {}}}},
            response_class=Response,
            summary="Get the checklist of a review",
        )
        async def read_checklist(
            caller: Annotated[Principal, caller_of],
            review_id: ReviewId,
            assistant: AssistantName = None,
        ) -> Response:
            """Return the requirements of the rules: `target_law`, and a `checklist` of requirements
            with `id`, `requirement`, `source_section`, `severity` and `applicability`."""
            access, name = await self._enter(caller, assistant, review_id)
            result = await self._read_result(access, name, "checklist")
            question = access.question(name.message_id)
            written = await self._parts.reports.read_checklist(question, result)
            if written is None:
                raise unknown("checklist")
            return Response(written, media_type=JSON_FORM)

    async def _start(
        self,
        caller: Principal,
        assistant: str | None,
        request: Request,
        given: NewReview | Upload,
        idempotency_key: str | None,
    ) -> Response:
        review = given.review if isinstance(given, Upload) else given
        name = name_review(caller, review, idempotency_key)
        access = await self._enter_conversation(caller, assistant, name.conversation_id)
        is_new = review.conversation_id is None
        question = access.desk.name_question(name.conversation_id, name.message_id)
        documents: Sequence[DocumentEntry] = ()
        try:
            against = await self._find(access, review.against, is_rule=True)
            documents = await self._collect(access, given)
            estimate = await self._parts.estimate(
                sum(entry.chunks for entry in against),
                sum(document.chunks for document in documents),
            )
            if review.estimate_only:
                await self._drop_unused(question, documents, is_new=is_new)
                return _show_estimate(documents, against, estimate)
            message = self._make_message(access, request, review, name, documents, against)
            await self._sender.admit(caller, question)
            await self._sender.start(caller, access.desk, message)
        except Exception:
            await self._drop_unused(question, documents, is_new=is_new)
            raise
        shown = await self._read(access, name, message.language)
        shown.documents = [show_document(document) for document in documents]
        shown.against = [show_document(entry) for entry in against]
        shown.estimate = estimate
        headers = {"Location": f"{BASE}/{name.id}", "X-Message-Id": name.message_id}
        body = shown.model_dump(mode="json", exclude_none=True)
        return JSONResponse(body, status_code=202, headers=headers)

    async def _collect(
        self, access: ConversationAccess, given: NewReview | Upload
    ) -> Sequence[DocumentEntry]:
        """Return the documents to review, one of which may be uploaded in the request."""
        if isinstance(given, Upload):
            question, groups = access.question(), access.caller.groups
            attached = await self._parts.attachments.attach(
                question, given.name, given.data, groups, access.caller.key_id
            )
            return (attached,)
        refuse_empty(given)
        return await self._find(access, given.names)

    async def _find(
        self, access: ConversationAccess, names: Sequence[str], *, is_rule: bool = False
    ) -> Sequence[DocumentEntry]:
        by_id: dict[str, DocumentEntry] = {}
        for name in names:
            for entry in await self._parts.documents.find(
                access.question(), name, access.caller.groups, is_rule=is_rule
            ):
                by_id[entry.id] = entry
        return list(by_id.values())

    def _make_message(
        self,
        access: ConversationAccess,
        request: Request,
        review: NewReview,
        name: ReviewName,
        documents: Sequence[DocumentEntry],
        against: Sequence[DocumentEntry],
    ) -> Message:
        language = choose_language(request, review.language)
        heading = self._channel.words("review_request", language)
        text = f"{heading} {list_titles(documents)} – {list_titles(against)}"
        if review.focus is not None:
            text = f"{text}\n{review.focus}"
        return Message(
            text=text,
            conversation_id=name.conversation_id,
            message_id=name.message_id,
            language=language,
            request_id=str(request.state.request_id),
            key_id=access.caller.key_id,
            groups=access.caller.groups,
            people=list_people(access.caller, None, "user_id"),
            person_name=name_person(access.caller, None),
            order=JobOrder(
                way=WAY,
                deadline_seconds=self._channel.job_seconds,
                payload={
                    "review": {
                        "documents": [document.id for document in documents],
                        "against": [entry.id for entry in against],
                        "specialists": [*review.specialists],
                        **({"language": review.language.lower()} if review.language else {}),
                    }
                },
                digest=digest_request(documents, against, review),
            ),
        )

    async def _drop_unused(
        self, question: Question, documents: Sequence[DocumentEntry], *, is_new: bool
    ) -> None:
        """Erase the uploaded file of a review that was not accepted, and the conversation if it
        contains nothing else.
        """
        for document in documents:
            if document.is_new:
                await self._parts.attachments.remove(question, document.id)
        if is_new and not await self._channel.replies.read_journal(question):
            await erase(self._channel.eraser, self._channel.conversations, question)

    async def _enter(
        self, caller: Principal, assistant: str | None, review_id: str
    ) -> tuple[ConversationAccess, ReviewName]:
        name = read_review_id(review_id)
        return await self._enter_conversation(caller, assistant, name.conversation_id), name

    async def _enter_conversation(
        self, caller: Principal, assistant: str | None, conversation_id: str
    ) -> ConversationAccess:
        access = self._channel.enter(caller, assistant, conversation_id)
        refuse_visitors(access)
        await check_no_chat(self._channel, access.question())
        return access

    async def _read(self, access: ConversationAccess, name: ReviewName, language: str) -> Review:
        status = await self._follower.read(access, name.message_id, language)
        last = (await self._follower.read_journal(access, name.message_id))[-1]
        agent = None if status.progress is None else status.progress.stage
        review = Review(id=name.id, current_agent=agent, **dict(status))
        report = last.fields.get("review_report") if last.kind == "finished" else None
        if not isinstance(report, dict):
            return review
        return review.model_copy(update=await self._read_findings(access, name, report))

    async def _read_findings(
        self, access: ConversationAccess, name: ReviewName, reported: Mapping[str, JsonValue]
    ) -> dict[str, object]:
        """Return the counts and findings of a report, or only the counts if it is no longer
        stored.
        """
        question = access.question(name.message_id)
        opens = self._channel.links.of(access.caller, question)
        report = await self._parts.reports.render(question, reported, ReportForm.JSON, opens)
        counts: dict[str, object] = {"counts": ReviewCounts.model_validate(reported)}
        if report is None:
            return counts
        findings = orjson.loads(report)
        requirements, sections = findings.get("requirements", []), findings.get("sections", {})
        by_status = {
            name: [requirement for requirement in requirements if requirement["status"] == status]
            for name, status in (("violations", "VIOLATION"), ("gaps", "GAP"))
        }
        searched = sections.get("gaps", {}).get("state") not in _NOT_MADE
        return {
            **counts,
            **by_status,
            "further_gaps": findings.get("gaps", []) if searched else None,
            "classification": findings.get("documents", []),
            "sections": {
                part: ReviewSection.model_validate(section) for part, section in sections.items()
            },
        }

    async def _render(
        self, access: ConversationAccess, name: ReviewName, form: ReportForm
    ) -> Response:
        report = await self._read_result(access, name, "review_report")
        question = access.question(name.message_id)
        opens = self._channel.links.of(access.caller, question)
        rendered = await self._parts.reports.render(question, report, form, opens)
        if rendered is None:
            raise unknown("report")
        return Response(rendered, media_type=form.media_type)

    async def _read_result(
        self, access: ConversationAccess, name: ReviewName, attribute: str
    ) -> dict[str, JsonValue]:
        """Return an attribute of the reply to a review that has ended."""
        last = (await self._follower.read_journal(access, name.message_id))[-1]
        if last.kind != "finished":
            raise InvalidRequestError(
                "this review has no result yet: wait until it has ended (GET its events)",
                code="review_not_finished",
                status=409,
            )
        result = last.fields.get(attribute)
        if not isinstance(result, dict):
            raise unknown("report" if attribute == "review_report" else attribute)
        return result


def _show_estimate(
    documents: Sequence[DocumentEntry],
    against: Sequence[DocumentEntry],
    estimate: ReviewEstimate | None,
) -> Response:
    shown = EstimatedReview(
        documents=[show_document(document) for document in documents],
        against=[show_document(entry) for entry in against],
        estimate=estimate,
    )
    return JSONResponse(shown.model_dump(mode="json", exclude_none=True))
