from collections.abc import Sequence

import pytest
from fakeredis import FakeAsyncRedis

from broker.keys import record_of
from config.settings import Settings
from deploy.assembly.models import share_vectors
from envelope.question import Question
from knowledge.search.question_vectors import QuestionVectors
from memory.errors import QuestionEndedError
from memory.key_names import conversation_keys
from tests.support.embedders import UniformEmbedder
from tests.support.runs import start_run

SETTINGS = Settings(_env_file=None)
TEXT = "How do I rent a number?"


class CountedEmbedder(UniformEmbedder):
    """A vendor's embedder that counts its calls."""

    name = "vectors@vendor"
    dimensions = 2

    def __init__(self) -> None:
        self.calls = 0

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.calls += 1
        return [[0.6, 0.8] for _ in texts]


class Processes:
    """Two processes with one Redis and the same vendor."""

    def __init__(self) -> None:
        self.vendor = CountedEmbedder()
        self.redis = FakeAsyncRedis(protocol=2)
        self.first, self.second = QuestionVectors(self.vendor), QuestionVectors(self.vendor)
        for vectors in (self.first, self.second):
            share_vectors(vectors, self.redis, SETTINGS.shards)


def question(message: str) -> Question:
    return Question(tenant="t", assistant="a", conversation_id="c", message_id=message)


async def test_two_processes_embed_a_question_once() -> None:
    both = Processes()

    run = start_run(question("one"), stage="guardrails", attempt=0)
    made = await both.first.embed_questions([TEXT], run)
    run = start_run(question("one"), stage="search", attempt=1)
    taken = await both.second.embed_questions([TEXT], run)

    assert both.vendor.calls == 1
    assert [*taken[0]] == pytest.approx([*made[0]])


async def test_vectors_are_used_for_their_own_question_alone_and_end_with_its_calls() -> None:
    both = Processes()

    run = start_run(question("one"), stage="guardrails", attempt=0)
    await both.first.embed_questions([TEXT], run)
    run = start_run(question("two"), stage="search", attempt=0)
    await both.second.embed_questions([TEXT], run)

    assert both.vendor.calls == 2
    calls = conversation_keys(question("one"), SETTINGS.shards).calls
    assert await both.redis.keys("*") == [calls.encode()]


async def test_nothing_is_stored_for_a_question_that_has_ended() -> None:
    both = Processes()
    await both.redis.hset(record_of(SETTINGS.shards)(question("one")), "o", "refused")

    run = start_run(question("one"), stage="search", attempt=0)
    with pytest.raises(QuestionEndedError):
        await both.first.embed_questions([TEXT], run)

    assert both.vendor.calls == 0


async def test_without_a_question_nothing_is_stored() -> None:
    both = Processes()

    await both.first.embed_questions([TEXT])

    assert await both.redis.keys("*") == []
