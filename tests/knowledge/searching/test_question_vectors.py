from collections.abc import Sequence

from knowledge.search.question_vectors import KEPT_SECONDS, MOST_TEXTS, QuestionVectors


class Counting:
    """An embedder that counts what it is asked for."""

    name = "counting"
    dimensions = 1

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked.append([*texts])
        return [[float(len(text))] for text in texts]


async def test_a_question_is_embedded_once_for_two_searches_and_anew_for_a_third() -> None:
    embedder = Counting()
    vectors = QuestionVectors(embedder)

    found = [await vectors.embed(["one", "three"]) for _ in range(3)]

    assert found == [[[3.0], [5.0]]] * 3
    assert embedder.asked == [["one", "three"]] * 2


async def test_only_the_texts_that_are_new_are_embedded() -> None:
    embedder = Counting()
    vectors = QuestionVectors(embedder)
    await vectors.embed(["one"])

    assert await vectors.embed(["three", "one", "three"]) == [[5.0], [3.0], [5.0]]
    assert embedder.asked == [["one"], ["three"]]


async def test_vectors_that_nobody_takes_are_dropped() -> None:
    embedder, now = Counting(), [0.0]
    vectors = QuestionVectors(embedder, clock=lambda: now[0])
    await vectors.embed(["one"])
    now[0] = KEPT_SECONDS

    await vectors.embed(["one"])

    assert embedder.asked == [["one"], ["one"]]


async def test_what_ingestion_embeds_is_not_kept() -> None:
    embedder = Counting()
    vectors = QuestionVectors(embedder)
    texts = [str(number) for number in range(MOST_TEXTS + 1)]

    await vectors.embed(texts)
    await vectors.embed(texts[:1])

    assert embedder.asked == [texts, texts[:1]]
