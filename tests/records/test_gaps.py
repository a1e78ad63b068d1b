from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from records.gaps import ANSWER_SECONDS, DONE, GapFinder, match_groups
from records.grouping import find_least, group_vectors
from records.record import Record
from records.store import RecordStore

NOW = 1_000_000.0
DAY = 86_400.0
DESK = ("acme", "desk")
REFUSED = Record(
    tenant="acme",
    assistant="desk",
    conversation_id="c1",
    message_id="m1",
    accepted_at=NOW - 2 * DAY,
    ended_at=NOW - 2 * DAY,
    channel="http",
    question="leave one",
    outcome="refused",
    reason="insufficient_context",
    nearest=({"document_id": "hr/leave", "title": "Leave"},),
)
SUBJECTS = {"leave": 0, "car": 1, "pets": 2}


async def embed(texts: Sequence[str]) -> list[list[float]]:
    """Play a model for which the first word is what a question means."""
    return [[float(SUBJECTS.get(text.split()[0]) == at) for at in range(3)] for text in texts]


def make_finder(store: RecordStore) -> GapFinder:
    return GapFinder(store, embed, "first-word", ["leave", "car", "pets"], clock=lambda: NOW)


def ask(number: int, question: str, **more: object) -> Record:
    usual = {"message_id": f"m{number}", "conversation_id": f"c{number}", "question": question}
    return replace(REFUSED, **{**usual, **more})  # type: ignore[arg-type]


async def test_questions_without_a_good_end_are_grouped_by_their_meaning(
    store: RecordStore,
) -> None:
    store.write(
        [
            ask(1, "leave one"),
            ask(2, "leave two", outcome="clarification", reason="ambiguous_query"),
            ask(3, "car one"),
            ask(4, "leave four", outcome="answered", reason=""),
        ]
    )
    store.rate(ask(4, "").id, "down", "out of date")

    gaps = await make_finder(store).find(DESK)

    assert [(gap.title.split()[0], gap.size) for gap in gaps] == [("leave", 3), ("car", 1)]
    assert dict(gaps[0].reasons) == {"refused": 1, "unanswered": 1, "down": 1}
    assert [page["title"] for page in gaps[0].pages] == ["Leave"]


async def test_a_passages_reply_is_a_gap_only_if_rated_down(store: RecordStore) -> None:
    passages = {"outcome": "answered", "answered_by": "search", "reason": "no_model"}
    store.write([ask(1, "leave one", **passages), ask(2, "car one", **passages)])
    store.rate(ask(2, "").id, "down", "")

    gaps = await make_finder(store).find(DESK)

    assert [gap.title for gap in gaps] == ["car one"]


async def test_a_question_that_no_model_could_interpret_is_not_a_gap(store: RecordStore) -> None:
    store.write([ask(1, "leave one", reason="model_failed"), ask(2, "car one")])

    gaps = await make_finder(store).find(DESK)

    assert [gap.title for gap in gaps] == ["car one"]


async def test_an_out_of_scope_question_is_a_gap_only_if_rated_down(
    store: RecordStore,
) -> None:
    store.write([ask(1, "leave one", reason="out_of_scope"), ask(2, "car", reason="out_of_scope")])
    store.rate(ask(2, "").id, "down", "")

    gaps = await make_finder(store).find(DESK)

    assert [gap.title for gap in gaps] == ["car"]


async def test_a_clarification_is_a_gap_only_without_a_reply(
    store: RecordStore,
) -> None:
    back = {"outcome": "clarification"}
    store.write(
        [
            ask(1, "leave answered", **back),
            ask(2, "leave answer", conversation_id="c1", outcome="answered", ended_at=NOW - DAY),
            ask(3, "leave fresh", **back, ended_at=NOW - ANSWER_SECONDS / 2),
            ask(4, "leave left", **back),
        ]
    )

    gaps = await make_finder(store).find(DESK)

    assert [[question.text for question in gap.questions] for gap in gaps] == [["leave left"]]


async def test_a_gap_keeps_its_state_when_further_questions_join_it(store: RecordStore) -> None:
    store.write([ask(1, "leave one"), ask(2, "leave two")])
    finder = make_finder(store)
    (before,) = await finder.find(DESK)
    assert finder.set_state(DESK, before.id, DONE)
    assert not finder.set_state(("acme", "shop"), before.id, DONE)
    assert not finder.set_state(DESK, before.id, "forgotten")

    store.write([ask(3, "leave three", ended_at=NOW + DAY)])
    (gap,) = await make_finder(store).find(DESK)

    assert (gap.id, gap.state, gap.size) == (before.id, DONE, 3)
    assert (gap.since_change, gap.grows) == (1, True)


async def test_the_trend_compares_the_last_week_with_the_one_before(store: RecordStore) -> None:
    days = (1, 2, 3, 9)
    store.write([ask(at, "leave", ended_at=NOW - at * DAY) for at in days])

    (gap,) = await make_finder(store).find(DESK)

    assert (gap.last_week, gap.week_before, gap.grows) == (3, 1, True)


async def test_an_erased_conversation_leaves_no_vector(store: RecordStore) -> None:
    store.write([ask(1, "leave one"), ask(2, "car one")])
    finder = make_finder(store)
    await finder.find(DESK)

    store.forget(ask(1, "").id)

    with store.begin() as connection:
        left = connection.exec_driver_sql("SELECT conversation_id FROM gap_questions").all()
    assert [row[0] for row in left] == ["c2"]
    assert [gap.title for gap in await finder.find(DESK)] == ["car one"]


async def test_repeated_questions_of_the_owner_are_not_gaps_and_are_erased_with_their_conversation(
    store: RecordStore,
) -> None:
    again = ask(2, "leave one", conversation_id="console/c1", channel="console")
    store.write([ask(1, "leave one"), again])

    (gap,) = await make_finder(store).find(DESK)
    assert gap.size == 1

    assert store.forget(ask(1, "").id) == 2


async def test_questions_of_other_assistants_are_other_gaps(store: RecordStore) -> None:
    store.write([ask(1, "leave one"), ask(2, "leave two", assistant="shop")])
    finder = make_finder(store)

    assert [gap.size for gap in await finder.find(DESK)] == [1]
    assert [gap.size for gap in await finder.find(("acme", "shop"))] == [1]
    assert [gap.size for gap in await finder.find(DESK)] == [1]


async def test_a_stored_vector_is_not_computed_again(store: RecordStore) -> None:
    asked: list[str] = []

    async def count(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return await embed(texts)

    store.write([ask(1, "leave one")])
    finder = GapFinder(store, count, "first-word", ["car", "pets"], clock=lambda: NOW)
    await finder.find(DESK)
    await finder.find(DESK)

    assert asked == ["leave one", "car", "pets"]


def merge_closest(vectors: np.ndarray, least: float) -> set[frozenset[int]]:
    """Group as the definition says: merge the closest pair until none is close enough."""
    likeness = vectors @ vectors.T
    groups = [frozenset({at}) for at in range(len(vectors))]
    while len(groups) > 1:
        pairs = [
            (float(np.mean([likeness[a, b] for a in group_a for b in group_b])), group_a, group_b)
            for at, group_a in enumerate(groups)
            for group_b in groups[at + 1 :]
        ]
        best, group_a, group_b = max(pairs, key=lambda pair: pair[0])
        if best < least:
            break
        groups = [group for group in groups if group not in (group_a, group_b)] + [
            group_a | group_b
        ]
    return set(groups)


@pytest.mark.parametrize("seed", range(5))
def test_the_chain_of_neighbours_finds_the_groups_of_the_definition(seed: int) -> None:
    drawn = np.random.default_rng(seed).normal(size=(24, 6)).astype(np.float32)
    vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    for least in (-0.2, 0.2, 0.5, 0.8):
        labels = group_vectors(vectors, least)
        groups = {
            frozenset(at for at, other in enumerate(labels) if other == label) for label in labels
        }
        assert groups == merge_closest(vectors, least)


def test_the_least_similarity_follows_the_scale_of_the_model() -> None:
    unrelated = np.eye(3, dtype=np.float32)
    shifted = np.sqrt(np.float32(0.5)) * np.hstack([unrelated, np.ones((3, 1), np.float32)])

    assert find_least(unrelated, 0.4) == pytest.approx(0.4)
    assert find_least(shifted, 0.4) == pytest.approx(0.7)


def test_a_group_goes_on_as_the_gap_of_most_of_its_questions() -> None:
    before: dict[tuple[str, ...], str] = {("a",): "old", ("b",): "old", ("c",): "other"}

    first, second = match_groups([[("a",), ("b",), ("c",)], [("d",)]], before)

    assert first == "old"
    assert second not in {"old", "other"}


async def test_gaps_are_grouped_again_only_once_something_changed(store: RecordStore) -> None:
    store.write([ask(1, "leave one"), ask(2, "car two", outcome="answered", reason="")])
    finder = make_finder(store)

    first = await finder.find(DESK)
    unchanged = await finder.find(DESK)
    make_finder(store).set_state(DESK, first[0].id, DONE)
    of_state = await finder.find(DESK)
    store.rate(ask(2, "").id, "down", "")
    of_rating = await finder.find(DESK)
    store.write([ask(3, "pets three")])
    of_record = await finder.find(DESK)
    store.forget(ask(3, "").id)
    of_erasure = await finder.find(DESK)

    assert unchanged is first
    assert [gap.state for gap in of_state] == [DONE]
    assert [len(gaps) for gaps in (of_rating, of_record, of_erasure)] == [2, 3, 2]
