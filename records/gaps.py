"""Finds gaps in the documents: questions without a satisfactory answer, grouped by meaning.

These are questions that were refused, that led to a clarification without a later answer in the
conversation, or whose answer was rated down. Passages shown without a model count only if they were
rated down, because they were not judged in any other way.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from sqlalchemy import delete, func, insert, select, update

from envelope.conversation import ClarificationReason
from records.grouping import Matrix, find_least, group_vectors, normalise
from records.record import Record
from records.store import (
    ID,
    OUT_OF_SCOPE,
    RecordStore,
    Selection,
    gap_questions,
    gaps,
    messages,
)

Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
Name = tuple[str, str]
Key = tuple[str, ...]
"""The values of `records.store.ID`."""

OPEN, WRITING, DONE = "open", "writing", "done"
STATES = (OPEN, WRITING, DONE)
MOST_QUESTIONS = 2_000
"""Maximum number of questions per assistant that are grouped; older ones are ignored."""
DAY_SECONDS = 86_400
TREND_DAYS = 7
FRESH_SECONDS = 300
"""How long gaps are cached if no record changes; the time limit is needed because trends depend on
the time.
"""
Version = tuple[tuple[object, ...], tuple[object, ...]]
_HEAVY = ("answer", "sources", "steps", "stage_seconds")
"""Columns that are not needed to find gaps."""
ANSWER_SECONDS = 3_600
"""How long a clarification waits for a reply before the question counts as unanswered."""


@dataclass(frozen=True, slots=True)
class GapQuestion:
    """A question without a satisfactory answer; `why` is `refused`, `unanswered` or `down`."""

    record: Record
    why: str

    @property
    def key(self) -> Key:
        """The identity of the message."""
        return tuple(getattr(self.record, name) for name in ID)

    @property
    def text(self) -> str:
        """The question in its standalone form, if there is one."""
        return self.record.canonical or self.record.question


@dataclass(frozen=True, slots=True)
class Gap:
    """Questions with similar meaning and without a satisfactory answer, most typical first.

    `pages` contains the best locations that the search found for them. `last_week` and
    `week_before` count questions; `since_change` counts those that were asked after the state was
    set.
    """

    id: str
    tenant: str
    assistant: str
    state: str
    changed_at: float
    questions: Sequence[GapQuestion]
    pages: Sequence[Mapping[str, Any]]
    last_week: int
    week_before: int
    since_change: int

    @property
    def title(self) -> str:
        """The most typical question."""
        return self.questions[0].text

    @property
    def size(self) -> int:
        """The number of questions."""
        return len(self.questions)

    @property
    def grows(self) -> bool:
        """Whether there were more questions last week than the week before or, for a gap marked as
        done, any since then.
        """
        is_new = self.last_week > self.week_before and self.last_week > 1
        return self.since_change > 0 if self.state == DONE else is_new

    @property
    def reasons(self) -> Mapping[str, int]:
        """The number of questions by `why`."""
        return Counter(question.why for question in self.questions)


class GapFinder:
    """Groups the questions of assistants, and stores the groups with their states.

    `embed` returns vectors from the embedding model `model`; `unrelated` contains questions about
    different topics, with which the similarity is calibrated.
    """

    def __init__(
        self,
        store: RecordStore,
        embed: Embed,
        model: str,
        unrelated: Sequence[str],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._embed = embed
        self._model = model
        self._unrelated = unrelated
        self._clock = clock
        self._least: float | None = None
        self._turn = asyncio.Lock()
        self._found: dict[Name, tuple[Version, Sequence[Gap]]] = {}

    async def find(self, name: Name) -> Sequence[Gap]:
        """Return the gaps of an assistant, largest first.

        They are grouped again when a record, a rating or a state has changed, and after
        `FRESH_SECONDS`.
        """
        now = self._clock()
        async with self._turn:
            version = await asyncio.to_thread(self._read_version, name, now)
            before, gaps_before = self._found.get(name, (None, ()))
            if version == before:
                return gaps_before
            questions = await asyncio.to_thread(self._read_questions, name, now)
            vectors = await self._add_vectors(questions)
            gaps_of_assistant = await asyncio.to_thread(self._group, name, questions, vectors, now)
            # Grouping may have created gaps, which changes the version.
            version = await asyncio.to_thread(self._read_version, name, now, of_records=version)
            self._found[name] = version, gaps_of_assistant
            return gaps_of_assistant

    def set_state(self, name: Name, gap_id: str, state: str) -> bool:
        """Store the state of a gap; return False if the gap or the state does not exist."""
        if state not in STATES:
            return False
        condition = (
            (gaps.c.id == gap_id) & (gaps.c.tenant == name[0]) & (gaps.c.assistant == name[1])
        )
        values = {"state": state, "changed_at": self._clock()}
        with self._store.begin() as connection:
            return connection.execute(update(gaps).where(condition).values(values)).rowcount > 0

    def _read_version(
        self, name: Name, now: float, *, of_records: "Version | None" = None
    ) -> "Version":
        """Return a value that changes whenever gaps may change, which covers records and states.

        The first half is taken from `of_records` if given, because records may have changed in the
        meantime.
        """
        is_own = (messages.c.tenant == name[0]) & (messages.c.assistant == name[1])
        recorded = select(
            func.count(),
            func.max(messages.c.ended_at),
            func.sum(messages.c.ended_at),
            *(func.count().filter(messages.c.rating == rating) for rating in ("up", "down")),
        ).where(is_own)
        of_gaps = (gaps.c.tenant == name[0]) & (gaps.c.assistant == name[1])
        states = select(
            func.count(), func.max(gaps.c.changed_at), *(
                func.count().filter(gaps.c.state == state) for state in STATES
            ),
        ).where(of_gaps)  # fmt: skip
        with self._store.begin() as connection:
            first: tuple[object, ...] = (int(now // FRESH_SECONDS),)
            if of_records is None:
                first += tuple(connection.execute(recorded).one())
            else:
                first = of_records[0]
            return first, tuple(connection.execute(states).one())

    def _read_questions(self, name: Name, now: float) -> list[GapQuestion]:
        by_key: dict[Key, GapQuestion] = {}
        for why, records in (
            ("down", self._find(name, rating="down")),
            ("refused", self._find_refused(name)),
            ("unanswered", self._find_unanswered(name, now)),
        ):
            for record in records:
                question = GapQuestion(record, why)
                is_foreign = why == "refused" and record.reason == OUT_OF_SCOPE
                if question.text and not is_foreign:
                    by_key.setdefault(question.key, question)
        newest = sorted(by_key.values(), key=lambda question: -question.record.ended_at)
        return newest[:MOST_QUESTIONS]

    def _find_refused(self, name: Name) -> list[Record]:
        """Return the refused questions, except those for which the model failed."""
        refused = self._find(name, outcome="refused")
        return [record for record in refused if record.reason != ClarificationReason.MODEL_FAILED]

    def _find(self, name: Name, **wanted: str) -> Sequence[Record]:
        selection = Selection(assistants=(name,), **wanted)  # type: ignore[arg-type]
        return self._store.find(selection, limit=MOST_QUESTIONS, without=_HEAVY)

    def _find_unanswered(self, name: Name, now: float) -> list[Record]:
        """Return the questions that led to a clarification and were not answered later."""
        asked = self._find(name, outcome="clarification")
        answered = (
            select(messages.c.conversation_id, func.max(messages.c.ended_at))
            .where(
                messages.c.tenant == name[0],
                messages.c.assistant == name[1],
                messages.c.outcome == "answered",
                messages.c.rating != "down",
            )
            .group_by(messages.c.conversation_id)
        )
        with self._store.begin() as connection:
            ends = {row.conversation_id: row[1] for row in connection.execute(answered)}
        return [
            record
            for record in asked
            if record.ended_at <= now - ANSWER_SECONDS
            and ends.get(record.conversation_id, 0.0) < record.ended_at
        ]

    async def _add_vectors(self, questions: Sequence[GapQuestion]) -> dict[Key, Matrix]:
        """Return the vector of each question, computing the missing ones."""
        known = await asyncio.to_thread(self._read_vectors, questions)
        missing = [question for question in questions if question.key not in known]
        if missing:
            made = await self._embed([question.text for question in missing])
            for question, vector in zip(missing, made, strict=True):
                known[question.key] = normalise(vector)
        if self._least is None and questions:
            unrelated = await self._embed(self._unrelated)
            self._least = find_least(np.array([normalise(vector) for vector in unrelated]))
        return known

    def _read_vectors(self, questions: Sequence[GapQuestion]) -> dict[Key, Matrix]:
        if not questions:
            return {}
        record = questions[0].record
        wanted = select(*(gap_questions.c[name] for name in ID), gap_questions.c.vector).where(
            gap_questions.c.tenant == record.tenant,
            gap_questions.c.assistant == record.assistant,
            gap_questions.c.model == self._model,
        )
        with self._store.begin() as connection:
            return {
                tuple(key): np.frombuffer(vector, dtype=np.float32)
                for *key, vector in connection.execute(wanted)
            }

    def _group(
        self,
        name: Name,
        questions: Sequence[GapQuestion],
        vectors: Mapping[Key, Matrix],
        now: float,
    ) -> Sequence[Gap]:
        groups: defaultdict[int, list[GapQuestion]] = defaultdict(list)
        if questions and self._least is not None:
            matrix = np.array([vectors[question.key] for question in questions])
            for label, question in zip(group_vectors(matrix, self._least), questions, strict=True):
                groups[label].append(question)
        states = self._keep(name, list(groups.values()), vectors, now)
        described = [
            _describe(gap, _sort_typical(group, vectors), now)
            for gap, group in zip(states, groups.values(), strict=True)
        ]
        return sorted(described, key=lambda gap: (-gap.size, gap.title))

    def _keep(
        self,
        name: Name,
        groups: Sequence[Sequence[GapQuestion]],
        vectors: Mapping[Key, Matrix],
        now: float,
    ) -> list[Mapping[str, Any]]:
        """Store the gap of each question; return the gap of each group.

        A group continues the gap with which it has the most questions in common.
        """
        own = (gap_questions.c.tenant == name[0]) & (gap_questions.c.assistant == name[1])
        wanted = select(*(gap_questions.c[column] for column in ID), gap_questions.c.gap_id).where(
            own
        )
        is_own = (gaps.c.tenant == name[0]) & (gaps.c.assistant == name[1])
        with self._store.begin() as connection:
            before = {tuple(key): gap_id for *key, gap_id in connection.execute(wanted)}
            known = {
                row["id"]: dict(row)
                for row in connection.execute(select(gaps).where(is_own)).mappings()
            }
            ids = match_groups([[question.key for question in group] for group in groups], before)
            states: list[Mapping[str, Any]] = [
                known.get(gap_id) or _make_gap(name, gap_id, now) for gap_id in ids
            ]
            if new := [state for state in states if state["id"] not in known]:
                connection.execute(insert(gaps), new)
            if gone := set(known) - set(ids):
                connection.execute(delete(gaps).where(gaps.c.id.in_(gone)))
            connection.execute(delete(gap_questions).where(own))
            if rows := _make_rows(groups, ids, vectors, self._model):
                connection.execute(insert(gap_questions), rows)
        return states


def match_groups(groups: Sequence[Sequence[Key]], before: Mapping[Key, str]) -> list[str]:
    """Return the id of each group: the id of the gap with which it has the most questions in
    common, or a new id.
    """
    shared = [
        (count, at, gap_id)
        for at, group in enumerate(groups)
        for gap_id, count in Counter(before[key] for key in group if key in before).items()
    ]
    ids: dict[int, str] = {}
    for _, at, gap_id in sorted(shared, key=lambda row: (-row[0], row[1], row[2])):
        if at not in ids and gap_id not in ids.values():
            ids[at] = gap_id
    return [ids.get(at) or uuid4().hex for at in range(len(groups))]


def _make_gap(name: Name, gap_id: str, now: float) -> dict[str, Any]:
    return {
        "id": gap_id,
        "tenant": name[0],
        "assistant": name[1],
        "state": OPEN,
        "created_at": now,
        "changed_at": now,
    }


def _make_rows(
    groups: Sequence[Sequence[GapQuestion]],
    ids: Sequence[str],
    vectors: Mapping[Key, Matrix],
    model: str,
) -> list[dict[str, Any]]:
    return [
        {
            **dict(zip(ID, question.key, strict=True)),
            "model": model,
            "vector": vectors[question.key].tobytes(),
            "gap_id": gap_id,
        }
        for gap_id, group in zip(ids, groups, strict=True)
        for question in group
    ]


def _sort_typical(
    group: Sequence[GapQuestion], vectors: Mapping[Key, Matrix]
) -> Sequence[GapQuestion]:
    """Sort questions by their similarity to the mean of their vectors, with the highest first."""
    mean = np.sum([vectors[question.key] for question in group], axis=0)
    return sorted(group, key=lambda question: (-float(vectors[question.key] @ mean), question.key))


def _describe(gap: Mapping[str, Any], questions: Sequence[GapQuestion], now: float) -> Gap:
    asked = [question.record.ended_at for question in questions]
    week = TREND_DAYS * DAY_SECONDS
    return Gap(
        id=gap["id"],
        tenant=gap["tenant"],
        assistant=gap["assistant"],
        state=gap["state"],
        changed_at=gap["changed_at"],
        questions=questions,
        pages=_count_pages(question.record for question in questions),
        last_week=sum(at > now - week for at in asked),
        week_before=sum(now - 2 * week < at <= now - week for at in asked),
        since_change=sum(at > gap["changed_at"] for at in asked),
    )


def _count_pages(records: Iterable[Record]) -> list[Mapping[str, Any]]:
    """Return the three pages that the search ranked best across all records."""
    scores: defaultdict[str, float] = defaultdict(float)
    pages: dict[str, Mapping[str, Any]] = {}
    for record in records:
        for rank, place in enumerate(record.nearest, start=1):
            key = str(place.get("document_id") or place.get("title"))
            pages.setdefault(key, place)
            scores[key] += 1 / rank
    best = sorted(pages, key=lambda key: (-scores[key], key))
    return [pages[key] for key in best[:3]]
