import asyncio
import random
from typing import Any

from agents.swarm.learning import QuestionKind, SwarmOutcome, advise, read_history, write_outcome
from envelope.memory_access import Append
from envelope.question import Question
from memory.conversation import Ended, RedisMemory
from memory.learned_outcomes import MOST_OUTCOMES, RedisOutcomeLog
from tests.memory.test_conversation import apply_writes


def ask(number: int, assistant: str = "docs") -> Question:
    return Question(
        tenant="acme",
        assistant=assistant,
        conversation_id=f"c{number % 7}",
        message_id=f"m{number}",
    )


async def end(client: Any, question: Question, outcome: SwarmOutcome, shards: int = 4) -> None:
    ended = Ended(learned=write_outcome(outcome))
    await apply_writes(client, RedisMemory(client, shards=shards).writes(question, ended))


def make(strategy: str = "parallel", judge: float = 8.0, workers: int = 4) -> SwarmOutcome:
    return SwarmOutcome(
        kind=QuestionKind.GROUP, strategy=strategy, workers=workers, judge=judge, seconds=3.0
    )


async def test_outcomes_of_all_shards_are_read_and_those_of_another_assistant_are_not(
    client: Any,
) -> None:
    for number in range(10):
        await end(client, ask(number), make())
    await end(client, ask(0, "other"), make("council"))

    log = RedisOutcomeLog(client, shards=4)
    history = read_history(await log.load("acme", "docs"))

    assert list(history.memory.strategies["group"]) == ["parallel"]
    assert (history.outcomes, history.thumbs, history.unreadable) == (10, 0, 0)
    assert len(await log.load("acme", "other")) == 1
    assert await log.load("acme", "third") == []


async def test_a_thumb_reaches_the_outcome_of_its_message_and_the_last_one_counts(
    client: Any,
) -> None:
    log = RedisOutcomeLog(client, shards=4)
    await end(client, ask(1), make())
    await end(client, ask(2), make("council"))

    await asyncio.gather(*(log.rate(ask(1), 1) for _ in range(5)))
    assert await log.rate(ask(1), -1)
    assert not await log.rate(ask(3), 1)
    assert not await log.rate(ask(1, "other"), 1)

    history = read_history(await log.load("acme", "docs"))
    rated = {name: one.mean for name, one in history.memory.strategies["group"].items()}
    assert history.thumbs == 1
    assert rated["council"] - rated["parallel"] > 0.09


async def test_the_outcomes_of_an_assistant_are_bounded_expire_and_can_be_forgotten(
    client: Any,
) -> None:
    log = RedisOutcomeLog(client, shards=1)
    ended = Ended(learned=write_outcome(make()))
    memory = RedisMemory(client, shards=1)

    writes = [memory.writes(ask(number), ended) for number in range(MOST_OUTCOMES + 50)]
    logged = [one for each in writes for one in each if isinstance(one, Append)]
    await client.rpush(logged[0].key, *(one.values[0] for one in logged))
    await apply_writes(client, writes[-1])

    assert len(await log.load("acme", "docs")) == MOST_OUTCOMES
    assert {one.ttl_seconds for one in logged} == {90 * 86_400}
    await log.forget("acme", "docs")
    assert await log.load("acme", "docs") == []


async def test_an_outcome_of_another_version_is_counted_and_left_out(client: Any) -> None:
    await apply_writes(
        client, RedisMemory(client, shards=1).writes(ask(1), Ended(learned='{"kind": "later"}'))
    )

    history = read_history(await RedisOutcomeLog(client, shards=1).load("acme", "docs"))

    assert (history.outcomes, history.unreadable) == (0, 1)


async def test_stored_noise_gives_no_advice(client: Any) -> None:
    noise = random.Random(21)
    log = RedisOutcomeLog(client, shards=2)
    advised: list[str] = []
    for number in range(200):
        outcome = SwarmOutcome(
            kind=QuestionKind.GROUP,
            strategy=noise.choice(["intelligent", "council", "parallel"]),
            workers=noise.choice([1, 2, 4, 8]),
            judge=noise.uniform(1, 10),
            cost_usd=noise.uniform(0, 0.3),
            seconds=noise.uniform(0, 200),
        )
        await end(client, ask(number), outcome, shards=2)
        if noise.random() < 0.5:
            await log.rate(ask(number), noise.choice([-1, 1]))
        if number % 10 == 9:
            memory = read_history(await log.load("acme", "docs")).memory
            advised += advise(memory, QuestionKind.GROUP, configured="intelligent")

    assert advised == []
