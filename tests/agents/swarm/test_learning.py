"""What is learned from outcomes, and what is not."""

import random

from agents.swarm.learning import (
    QuestionKind,
    SwarmMemory,
    SwarmOutcome,
    advise,
    classify_question,
    describe_memory,
    note_outcome,
    round_workers,
)

STRATEGIES = ("intelligent", "council", "parallel")


def make_outcome(strategy: str, judge: float, *, workers: int = 4) -> SwarmOutcome:
    bounded = min(10.0, max(1.0, judge))
    return SwarmOutcome(kind=QuestionKind.GROUP, strategy=strategy, workers=workers, judge=bounded)


def test_noise_is_never_taken_for_advice() -> None:
    advised = 0
    for seed in range(10):
        noise = random.Random(seed)
        memory = SwarmMemory()
        for _ in range(300):
            outcome = SwarmOutcome(
                kind=QuestionKind.GROUP,
                strategy=noise.choice(STRATEGIES),
                workers=noise.choice([1, 2, 4, 8, 16]),
                judge=noise.uniform(1, 10),
                thumb=noise.choice([-1, 0, 1]),
                cost_usd=noise.uniform(0, 0.3),
                seconds=noise.uniform(0, 200),
            )
            memory = note_outcome(memory, outcome)
            advised += len(advise(memory, QuestionKind.GROUP, configured="intelligent"))

    assert advised == 0


def test_a_strategy_that_does_better_is_named_for_its_kind_of_question() -> None:
    chance = random.Random(4)
    memory = SwarmMemory()
    for number in range(300):
        strategy = STRATEGIES[number % 3]
        judge = chance.gauss(9 if strategy == "parallel" else 3, 1.0)
        memory = note_outcome(memory, make_outcome(strategy, judge))

    [reason] = advise(memory, QuestionKind.GROUP, configured="intelligent")

    assert reason.startswith("parallel did better by ")
    assert advise(memory, QuestionKind.SINGLE, configured="intelligent") == ()


def test_what_was_learned_is_forgotten_when_the_world_changes() -> None:
    memory = SwarmMemory()
    for number in range(400):
        is_first_half = number < 200
        good, bad = ("council", "parallel") if is_first_half else ("parallel", "council")
        memory = note_outcome(memory, make_outcome(good, 9.0 - number % 2))
        memory = note_outcome(memory, make_outcome(bad, 3.0 + number % 2))

    [reason] = advise(memory, QuestionKind.GROUP, configured="council")
    assert reason.startswith("parallel did better by ")


def test_the_number_of_workers_that_did_best_is_learned() -> None:
    memory = SwarmMemory()
    for number in range(60):
        memory = note_outcome(memory, make_outcome("parallel", 9 - number % 2, workers=9))
        memory = note_outcome(memory, make_outcome("parallel", 4 + number % 2, workers=1))

    [reason] = advise(memory, QuestionKind.GROUP)
    assert reason == "8 to 15 workers did best for group questions"
    assert [round_workers(count) for count in (0, 1, 3, 5, 31, 99)] == [1, 1, 2, 4, 16, 32]


def test_a_memory_stays_small_whatever_is_noted() -> None:
    memory = SwarmMemory()
    for number in range(500):
        memory = note_outcome(memory, make_outcome(f"invented {number}", 5.0))

    assert len(memory.strategies["group"]) <= 24
    assert len(memory.model_dump_json()) < 10_000
    assert all(row["outcomes"] for row in describe_memory(memory))


def test_thumbs_cost_and_time_count_besides_the_judge() -> None:
    best = make_outcome("council", 8.0)

    def rate(**changes: object) -> float:
        return best.model_copy(update=changes).value

    assert rate(thumb=1) > best.value > rate(thumb=-1)
    assert best.value > rate(cost_usd=1.0)
    assert best.value > rate(seconds=120.0)


def test_questions_are_of_one_kind_each() -> None:
    kinds = {
        "What are the fees of Alfa, Beta and Gamma?": QuestionKind.GROUP,
        "What does a licence cost? Who reads the logs?": QuestionKind.SEVERAL,
        "What is the fee?": QuestionKind.SINGLE,
    }

    assert {question: classify_question(question) for question in kinds} == kinds
