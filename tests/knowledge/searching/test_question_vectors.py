from collections.abc import Sequence

from envelope.run import Run
from knowledge.search.question_vectors import KEPT_SECONDS, QuestionVectors
from tests.support.embedders import UniformEmbedder


class Counting(UniformEmbedder):
    """An embedder that counts what it is asked for."""

    name = "counting"
    dimensions = 1

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked.append([*texts])
        return [[float(len(text))] for text in texts]


class Stored:
    """A store of one question."""

    def __init__(self) -> None:
        self.frames: dict[str, bytes] = {}

    async def get(self, run: Run, key: str) -> bytes | None:
        return self.frames.get(key)

    async def put(self, run: Run, key: str, vector: bytes) -> None:
        self.frames[key] = vector


async def test_a_question_is_embedded_once_for_two_searches_and_anew_for_a_third() -> None:
    embedder = Counting()
    vectors = QuestionVectors(embedder)

    results = [await vectors.embed_questions(["one", "three"]) for _ in range(3)]

    assert results == [[[3.0], [5.0]]] * 3
    assert embedder.asked == [["one", "three"]] * 2


async def test_only_the_texts_that_are_new_are_embedded() -> None:
    embedder = Counting()
    vectors = QuestionVectors(embedder)
    await vectors.embed_questions(["one"])

    assert await vectors.embed_questions(["three", "one", "three"]) == [[5.0], [3.0], [5.0]]
    assert embedder.asked == [["one"], ["three"]]


async def test_vectors_that_nobody_takes_are_dropped() -> None:
    embedder, now = Counting(), [0.0]
    vectors = QuestionVectors(embedder, clock=lambda: now[0])
    await vectors.embed_questions(["one"])
    now[0] = KEPT_SECONDS

    await vectors.embed_questions(["one"])

    assert embedder.asked == [["one"], ["one"]]


async def test_another_process_takes_the_vectors_of_a_question_from_the_store() -> None:
    store = Stored()
    here, there = Counting(), Counting()
    vectors, others = QuestionVectors(here), QuestionVectors(there)
    vectors.share_through(store)
    others.share_through(store)
    await vectors.embed_questions(["one"])

    assert await others.embed_questions(["one", "three"]) == [[3.0], [5.0]]
    assert (here.asked, there.asked) == ([["one"]], [["three"]])


async def test_vectors_of_another_model_are_not_taken() -> None:
    store = Stored()
    here, there = Counting(), Counting()
    there.name = "another"
    vectors, others = QuestionVectors(here), QuestionVectors(there)
    vectors.share_through(store)
    others.share_through(store)
    await vectors.embed_questions(["one"])

    await others.embed_questions(["one"])

    assert there.asked == [["one"]]


async def test_vectors_of_an_ingestion_are_not_cached() -> None:
    embedder = Counting()
    vectors = QuestionVectors(embedder)
    texts = ["one", "two"]

    store = Stored()
    vectors.share_through(store)
    await vectors.embed_documents(texts)
    assert store.frames == {}
    await vectors.embed_questions(texts[:1])

    assert embedder.asked == [texts, texts[:1]]
