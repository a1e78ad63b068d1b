"""Stores verified answers in the records database."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import ColumnElement, Table, and_, delete, insert, select, update

from envelope.verified import CitedPage, VerifiedAnswer
from records.store import RecordStore, verified_answers

Name = tuple[str, str]
LONGEST_QUESTION = 500
LONGEST_ANSWER = 8_000
MOST_ANSWERS = 500
"""Maximum number of verified answers per assistant, because every worker keeps their vectors in
memory.
"""


class TooManyAnswersError(Exception):
    """An assistant has reached the limit of verified answers."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """A verified answer, and the time of its last change (Unix seconds)."""

    answer: VerifiedAnswer
    changed_at: float


class VerifiedStore:
    """The verified answers of all assistants; raises `RecordsUnavailableError`."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def list_of(self, name: Name) -> Sequence[RecordedAnswer]:
        """Return the answers of an assistant, sorted by question."""
        wanted = (
            select(verified_answers)
            .where(is_owned_by(verified_answers, name))
            .order_by(verified_answers.c.question)
        )
        with self._store.begin() as connection:
            rows = connection.execute(wanted).mappings().all()
        return [
            RecordedAnswer(
                VerifiedAnswer(
                    id=row["id"],
                    question=row["question"],
                    answer=row["answer"],
                    pages=tuple(map(CitedPage.model_validate, json.loads(row["sources"]))),
                    written_at=row["changed_at"],
                ),
                row["changed_at"],
            )
            for row in rows
        ]

    def save(
        self, name: Name, answer_id: str, question: str, answer: str, pages: Sequence[CitedPage]
    ) -> str | None:
        """Store an answer and return its id; an empty `answer_id` creates one. Returns None for an
        unknown id.

        Raises `TooManyAnswersError`.
        """
        now = time.time()
        values = {
            "question": question,
            "answer": answer,
            "sources": json.dumps([page.model_dump(mode="json") for page in pages]),
            "changed_at": now,
        }
        if answer_id:
            condition = is_owned_by(verified_answers, name) & (verified_answers.c.id == answer_id)
            with self._store.begin() as connection:
                changed = connection.execute(
                    update(verified_answers).where(condition).values(values)
                )
            return answer_id if changed.rowcount else None
        if len(self.list_of(name)) >= MOST_ANSWERS:
            raise TooManyAnswersError(f"at most {MOST_ANSWERS} verified answers can be stored")
        made = {"id": uuid4().hex, "tenant": name[0], "assistant": name[1], "created_at": now}
        with self._store.begin() as connection:
            connection.execute(insert(verified_answers), [{**made, **values}])
        return str(made["id"])

    def remove(self, name: Name, answer_id: str) -> bool:
        """Delete an answer; return False if it does not exist."""
        condition = is_owned_by(verified_answers, name) & (verified_answers.c.id == answer_id)
        with self._store.begin() as connection:
            return connection.execute(delete(verified_answers).where(condition)).rowcount > 0


def is_owned_by(table: Table, name: Name) -> ColumnElement[bool]:
    """Return the condition that a row belongs to an assistant."""
    return and_(table.c.tenant == name[0], table.c.assistant == name[1])
