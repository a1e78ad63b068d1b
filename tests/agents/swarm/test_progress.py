"""When a swarm goes on, plans again, or ends."""

from agents.swarm.ledger import MOST_REPLANS, NextStep, SwarmProgress, note_round
from tests.agents.swarm.builders import make_output, make_passage

FOUND = {"w": make_output("w", make_passage("a", "A fact."))}


def test_a_good_answer_ends_a_swarm() -> None:
    decision = note_round(SwarmProgress(), FOUND, score=8.0)

    assert (decision.step, decision.reason) == (NextStep.FINISH, "good_enough")


def test_a_swarm_whose_rounds_find_nothing_new_plans_again_at_most_twice() -> None:
    progress, steps = SwarmProgress(), []

    for _ in range(20):
        decision = note_round(progress, {}, is_open=True)
        progress = decision.progress
        steps.append(decision.step)
        if decision.step is NextStep.FINISH:
            break

    assert steps.count(NextStep.REPLAN) == MOST_REPLANS
    assert steps[-1] is NextStep.FINISH


def test_progress_lowers_the_stall_counter() -> None:
    stalled = note_round(SwarmProgress(), {}, is_open=True).progress

    assert stalled.stalls == 1
    assert note_round(stalled, FOUND, is_open=True).progress.stalls == 0


def test_the_round_of_the_best_answer_is_kept() -> None:
    progress = SwarmProgress()
    for score in (5.0, 6.5, 4.0):
        progress = note_round(progress, FOUND, score=score).progress

    assert (progress.best_round, progress.best_score) == (2, 6.5)
