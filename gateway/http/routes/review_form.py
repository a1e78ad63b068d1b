"""The request and response formats of a review."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal
from uuid import uuid4

from fastapi import Query, Request
from pydantic import BaseModel, Field, JsonValue, StringConstraints, ValidationError

from envelope.specialists import SpecialistName
from gateway.answer import Answer
from gateway.http.access import Principal
from gateway.http.context import ID
from gateway.http.errors import InvalidRequestError, describe_problem, unknown
from gateway.http.routes.attachments import ConversationDocument
from gateway.http.routes.message_follower import JobProgress
from gateway.review_ports import DocumentEntry

LONGEST_NAME = 2_000
MOST_DOCUMENTS = 5
MOST_RULES = 20
LONGEST_FOCUS = 2_000
JSON_FORM = "application/json"
_LONGEST_SHOWN = 300
_MARK = "~"
"""Separates conversation and message in the id of a review; our message ids do not contain it."""

DocumentName = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]
RuleNames = Annotated[
    list[DocumentName] | None,
    Query(
        max_length=MOST_RULES,
        description="id, file, title or folder of the rules; repeatable",
        examples=[["laws/data-protection.md"]],
    ),
]
Specialists = Annotated[
    list[str] | None,
    Query(
        max_length=len(SpecialistName),
        description="the specialists that take part; repeatable, or separated by commas",
        examples=[["compliance,risk_verifier"]],
    ),
]


class NewReview(BaseModel, frozen=True, extra="forbid"):
    """A review of documents against rules; both are specified by id, file, or title."""

    document: DocumentName | None = Field(
        None, description="document to review, from the conversation or the index"
    )
    documents: list[DocumentName] = Field([], max_length=MOST_DOCUMENTS)
    against: list[DocumentName] = Field(
        min_length=1, max_length=MOST_RULES, examples=[["Data Protection Law"]]
    )
    conversation_id: str | None = Field(
        None,
        pattern=ID,
        description="conversation to which the documents and the answer belong; default: a new "
        "conversation for each review",
    )
    focus: str | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_FOCUS,
        description="focus of the review, as a sentence",
    )
    language: str | None = Field(
        None, pattern=r"^[a-zA-Z]{2,3}$", description="language of the report, ISO 639-1"
    )
    specialists: list[SpecialistName] = Field(
        [],
        max_length=len(SpecialistName),
        description="the specialists that take part; those that they depend on are added; by "
        "default all",
    )

    estimate_only: bool = Field(
        False,
        description="return an estimate of calls, tokens, cost and time, without starting the "
        "review",
    )

    @property
    def names(self) -> list[str]:
        """The documents to review, as named in the request."""
        own = [] if self.document is None else [self.document]
        return list(dict.fromkeys((*own, *self.documents)))


class ReviewCounts(BaseModel, frozen=True, extra="ignore"):
    """The number of requirements with each verdict."""

    requirements: int
    compliant: int
    violations: int
    gaps: int
    undecided: int | None = Field(
        None, description="number of requirements without a verdict; omitted if not counted"
    )
    confidence: float | None = Field(
        None, description="mean confidence of the verdicts, 0 to 1; omitted if it was not measured"
    )


class ReviewSection(BaseModel, frozen=True, extra="ignore"):
    """Whether a part of a review was completed, which an empty list alone does not show."""

    state: str = Field(
        description="result, nothing (it ran and had nothing to report), incomplete, failed, "
        "not_requested, or not_judged (no model is in use)"
    )
    specialist: str
    reason: str = Field("", description="why the part failed or is incomplete")


class ReviewEstimate(BaseModel, frozen=True):
    """Estimates for a review: the number of model calls, their tokens and price, and the time."""

    model: str
    calls: int
    tokens: int
    cost_usd: float | None = Field(None, description="omitted if the price is unknown")
    seconds: int | None = Field(
        None, description="estimate from the model's speed in recent days; omitted if not measured"
    )


class EstimatedReview(BaseModel, frozen=True):
    """A review that has not begun: its documents, and estimates for it."""

    documents: list[ConversationDocument]
    against: list[ConversationDocument]
    estimate: ReviewEstimate | None = Field(
        None, description="name of the model; omitted if no model is in use"
    )


class Review(BaseModel):
    """A review: a job with events, whose result is one answer and a report."""

    id: str = Field(description="id of the review, used in its URLs")
    conversation_id: str
    message_id: str
    status: Literal["running", "ended"]
    text: str = Field(description="text of the review in the conversation")
    at: float = Field(description="time of acceptance, Unix seconds")
    documents: list[ConversationDocument] = Field(
        [], description="documents of the request; only in the response to it"
    )
    against: list[ConversationDocument] = []
    estimate: ReviewEstimate | None = Field(
        None,
        description="estimate of calls, tokens, cost and time; only in the response to the request",
    )
    progress: JobProgress | None = None
    counts: ReviewCounts | None = Field(
        None, description="omitted if no report was written, because nothing was counted"
    )
    current_agent: str | None = Field(
        None,
        description="specialist that is currently running; its cost is in `answer.model_usage`",
    )
    violations: list[dict[str, JsonValue]] | None = Field(
        None,
        description="violated requirements, in the same form as in the JSON report: the "
        "wording and locations of both sides, the reason, confidence, risk and recommendation",
    )
    gaps: list[dict[str, JsonValue]] | None = Field(
        None,
        description="requirements that the document does not cover, in the same form as "
        "`violations`",
    )
    further_gaps: list[dict[str, JsonValue]] | None = Field(
        None,
        description="contradictions, outdated dates and wrong citations of the document; omitted "
        "if they were not checked, see `sections`",
    )
    classification: list[dict[str, JsonValue]] | None = Field(
        None, description="type, domain, complexity, language and sensitivity of each document"
    )
    sections: dict[str, ReviewSection] | None = Field(
        None,
        description="state of each part of the review: findings, risks, gaps, citations, "
        "recommendations, classes",
    )
    answer: Answer | None = None


class ReviewName(BaseModel, frozen=True):
    """The conversation and the message of a review."""

    conversation_id: str
    message_id: str

    @property
    def id(self) -> str:
        """The id of the review."""
        return f"{self.conversation_id}{_MARK}{self.message_id}"


def read_review_id(review_id: str) -> ReviewName:
    """Return the conversation and message in a review's id; an invalid id is treated as unknown."""
    conversation_id, mark, message_id = review_id.rpartition(_MARK)
    if not mark or not conversation_id or not message_id:
        raise unknown("review")
    return ReviewName(conversation_id=conversation_id, message_id=message_id)


def digest_request(
    documents: Sequence[DocumentEntry], against: Sequence[DocumentEntry], review: NewReview
) -> str:
    """Return a digest of everything that a review depends on, so that one id identifies one
    review.
    """
    asked = [
        [document.id for document in documents],
        [entry.id for entry in against],
        review.focus,
        review.language,
        # Reviews without named specialists keep the digest of earlier versions.
        *([review.specialists] if review.specialists else []),
    ]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]


def refuse_empty(review: NewReview) -> None:
    """Raise `InvalidRequestError` for a review without documents."""
    if not review.names:
        raise InvalidRequestError(
            "the document to review is missing; specify it in `document`, or send its bytes as "
            "the body with `name` and `against` in the URL",
            code="missing_document",
            param="document",
        )


async def read_form(request: Request, stated: Mapping[str, object]) -> NewReview:
    """Return the review described in a request body, with the fields in the URL.

    Raises `InvalidRequestError`, also for a field that is in both.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON_FORM:
        raise InvalidRequestError(
            f"expected {JSON_FORM}, or the bytes of a file with its `name` in the URL",
            code="unsupported_body",
            param="name",
            status=415,
        )
    body = await request.json()
    if not isinstance(body, dict):
        return validate_review(body)
    for field in stated:
        if field in body:
            raise InvalidRequestError(
                f"`{field}` is set both in the URL and in the body; set it only once",
                code="invalid_request",
                param=field,
            )
    return validate_review({**body, **stated})


def split_names(given: list[str] | None) -> list[str]:
    """Return the names in a parameter that may be repeated, and may contain commas."""
    parts = (name.strip() for value in given or [] for name in value.split(","))
    return [part for part in parts if part]


def validate_review(fields: object) -> NewReview:
    """Return the review with these fields; raises `InvalidRequestError`."""
    try:
        return NewReview.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part)[:80] for part in first["loc"])
        param = "" if first["type"] == "extra_forbidden" else where
        raise InvalidRequestError(
            f"{param or 'review'}: {describe_problem(first)}",
            code="invalid_request",
            param=param or None,
        ) from error


def name_review(caller: Principal, review: NewReview, idempotency_key: str | None) -> ReviewName:
    """Return the name of a review; equal keys of one caller identify the same review."""
    if idempotency_key is None:
        message_id = uuid4().hex
        own = f"review-{message_id}"
    else:
        digest = hashlib.sha256(f"{caller.key_id}\x1f{idempotency_key}".encode()).hexdigest()[:32]
        message_id, own = f"i-{digest}", f"review-{digest}"
    conversation = own if review.conversation_id is None else review.conversation_id
    return ReviewName(conversation_id=conversation, message_id=message_id)


def list_titles(documents: Sequence[DocumentEntry]) -> str:
    """Return the titles of documents on one line."""
    listed = ", ".join(document.title for document in documents)
    return listed if len(listed) <= _LONGEST_SHOWN else f"{listed[: _LONGEST_SHOWN - 1]}…"
