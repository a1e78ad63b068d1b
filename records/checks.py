"""Questions for checking changes to the documents, and the last check of each source.

These are the most frequent questions, questions that the owner marked, verified answers, and gaps.
A stored check refers to recorded questions only by ID, so that no text remains after an erasure.
"""

import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import numpy as np
from pydantic import TypeAdapter
from sqlalchemy import delete, insert, select

from envelope.json_values import read_list
from envelope.question import Question
from envelope.verified import OWNERS_PAGE, VerifiedAnswer
from knowledge.checks import CheckQuestion, CheckResult, Citation, QuestionResult
from knowledge.sections import document_of
from records.gaps import DONE, Gap
from records.grouping import find_least, group_vectors, normalise
from records.record import Record, redact
from records.store import RecordStore, Selection, checks, marked_questions
from records.verified import Name, is_owned_by

Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
MOST_ASKED = 100
MOST_GAPS = 100
"""Maximum number of gaps in one check."""
DAYS = 30
MOST_MARKED = 500
LONGEST_QUESTION = 500
MOST_FACTS = 20
_MOST_READ = 5_000
_MOST_TEXTS = 400
"""Maximum number of distinct texts that are grouped by meaning, starting with the most frequent."""
_DAY_SECONDS = 86_400
_PERSONAL = ("email", "number", "address")
_UNUSED = ("answer", "steps", "stage_seconds", "nearest", "models")
_RESULT = TypeAdapter(CheckResult)
_QUESTION = TypeAdapter(CheckQuestion)


class TooManyMarkedError(Exception):
    """An assistant has reached the limit of marked questions."""


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """The last check of a source; times in Unix seconds."""

    source: str
    at: float
    result: CheckResult


class CheckStore:
    """The marked questions and the last checks; raises `RecordsUnavailableError`."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def mark(self, name: Name, question: CheckQuestion) -> None:
        """Store a question as a test, replacing one with the same text.

        Raises `TooManyMarkedError`.
        """
        if len(self.list_marked(name)) >= MOST_MARKED:
            raise TooManyMarkedError(f"at most {MOST_MARKED} questions can be marked")
        made = replace(question, id=uuid4().hex)
        row = {
            "id": made.id, "tenant": name[0], "assistant": name[1], "question": made.text,
            "expected": _QUESTION.dump_json(made).decode(), "created_at": time.time(),
        }  # fmt: skip
        with self._store.begin() as connection:
            same = is_owned_by(marked_questions, name) & (marked_questions.c.question == made.text)
            connection.execute(delete(marked_questions).where(same))
            connection.execute(insert(marked_questions), [row])

    def unmark(self, name: Name, question_id: str) -> bool:
        """Remove a marked question; return False if it does not exist."""
        condition = is_owned_by(marked_questions, name) & (marked_questions.c.id == question_id)
        with self._store.begin() as connection:
            return connection.execute(delete(marked_questions).where(condition)).rowcount > 0

    def list_marked(self, name: Name) -> list[CheckQuestion]:
        """Return the marked questions of an assistant, sorted by text."""
        table = marked_questions.c
        wanted = (
            select(table.expected)
            .where(is_owned_by(marked_questions, name))
            .order_by(table.question)
        )
        with self._store.begin() as connection:
            return [_QUESTION.validate_json(row.expected) for row in connection.execute(wanted)]

    def save(self, name: Name, sources: Iterable[str], result: CheckResult) -> None:
        """Store the check of an ingestion as the last one of its sources."""
        kept = replace(result, results=tuple(map(_without_text, result.results)))
        own = {"tenant": name[0], "assistant": name[1], "at": time.time(),
               "result": _RESULT.dump_json(kept).decode()}  # fmt: skip
        with self._store.begin() as connection:
            for source in sources:
                condition = is_owned_by(checks, name) & (checks.c.source == source)
                connection.execute(delete(checks).where(condition))
                connection.execute(insert(checks), [{**own, "source": source}])

    def list_checks(self, name: Name) -> dict[str, StoredCheck]:
        """Return the last check of each source, without the texts of recorded questions."""
        with self._store.begin() as connection:
            rows = connection.execute(select(checks).where(is_owned_by(checks, name))).all()
        return {
            row.source: StoredCheck(row.source, row.at, _RESULT.validate_json(row.result))
            for row in rows
        }

    def show_texts(self, check: StoredCheck) -> StoredCheck:
        """Add the texts of recorded questions to a check, if they still exist."""
        results = tuple(map(self._show_text, check.result.results))
        return replace(check, result=replace(check.result, results=results))

    def _show_text(self, result: QuestionResult) -> QuestionResult:
        if result.question.text:
            return result
        record = self._store.get(_read_id(result.question.id))
        text = "" if record is None else _find_text(record)
        return replace(result, question=replace(result.question, text=text))


async def find_asked(
    answered: Iterable[Record], embed: Embed, unrelated: Sequence[str]
) -> list[CheckQuestion]:
    """Return the most frequent questions, one for each meaning, without personal data."""
    by_text: defaultdict[str, list[Record]] = defaultdict(list)
    for record in answered:
        by_text[" ".join(_find_text(record).casefold().split())].append(record)
    most = sorted(by_text.values(), key=len, reverse=True)[:_MOST_TEXTS]
    if not most:
        return []
    vectors = await embed([_find_text(records[0]) for records in most])
    least = find_least(np.array([normalise(vector) for vector in await embed(unrelated)]))
    labels = group_vectors(np.array([normalise(vector) for vector in vectors]), least)
    groups: defaultdict[int, list[list[Record]]] = defaultdict(list)
    for label, records in zip(labels, most, strict=True):
        groups[label].append(records)
    asked = [_make_asked(group) for group in groups.values()]
    return sorted(asked, key=lambda question: -question.asked)[:MOST_ASKED]


def read_answered(store: RecordStore, name: Name, now: float) -> Sequence[Record]:
    """Return the recent questions that were answered and not rated down."""
    selection = Selection(assistants=(name,), since=now - DAYS * _DAY_SECONDS, outcome="answered")
    records = store.find(selection, limit=_MOST_READ, without=_UNUSED)
    return [
        record
        for record in records
        if record.rating != "down" and record.sources and _find_text(record)
    ]


def list_verified(answers: Iterable[VerifiedAnswer]) -> list[CheckQuestion]:
    """Return the questions with verified answers, which cite whole pages."""
    return [
        CheckQuestion(
            id=answer.id,
            text=answer.question,
            origin="verified",
            citations=tuple(Citation(page.document_id, is_page=True) for page in answer.pages),
        )
        for answer in answers
    ]


def list_gaps(gaps: Iterable[Gap]) -> list[CheckQuestion]:
    """Return the most typical question of each of the largest open gaps."""
    open_gaps = [gap for gap in gaps if gap.state != DONE]
    return [
        CheckQuestion(
            id=_write_id(gap.questions[0].record.id),
            text=redact(gap.title, _PERSONAL),
            origin="gap",
            asked=gap.size,
            groups=gap.questions[0].record.groups,
        )
        for gap in open_gaps[:MOST_GAPS]
    ]


def list_citations(sources: Iterable[Mapping[str, Any]]) -> Iterator[Citation]:
    """Yield the distinct locations in the sources of a record."""
    seen = set()
    for source in sources:
        chunk = str(source.get("chunk_id") or "")
        citation = Citation(
            document_id=document_of(chunk),
            heading_path=tuple(map(str, read_list(source.get("heading_path")))),
            anchor=source.get("anchor") or None,
            is_page=chunk.endswith(OWNERS_PAGE),
        )
        if citation.document_id and citation not in seen:
            seen.add(citation)
            yield citation


def _make_asked(group: Sequence[Sequence[Record]]) -> CheckQuestion:
    """Represent a group of records by the most recent question with its most frequent text."""
    newest = max(group[0], key=lambda record: record.ended_at)
    return CheckQuestion(
        id=_write_id(newest.id),
        text=redact(_find_text(newest), _PERSONAL),
        origin="recorded",
        language=newest.language,
        citations=tuple(list_citations(newest.sources)),
        asked=sum(map(len, group)),
        groups=newest.groups,
    )


def _find_text(record: Record) -> str:
    """Return the question in its standalone form, if there is one."""
    return record.canonical or record.question


def _without_text(result: QuestionResult) -> QuestionResult:
    if result.question.origin not in ("recorded", "gap"):
        return result
    return replace(result, question=replace(result.question, text=""))


def _write_id(question: Question) -> str:
    return json.dumps([question.tenant, question.assistant, question.conversation_id,
                       question.message_id])  # fmt: skip


def _read_id(text: str) -> Question:
    tenant, assistant, conversation, message = json.loads(text)
    return Question(
        tenant=tenant, assistant=assistant, conversation_id=conversation, message_id=message
    )
