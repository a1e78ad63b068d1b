"""Decides after each round whether a swarm goes on, plans again, or ends with what it has.

A round without progress raises the stall counter, a round with progress lowers it. Two stalls in
excess ask for a new plan; there are at most two of these.
"""

from collections.abc import Mapping
from enum import StrEnum

from pydantic import BaseModel, Field

from agents.swarm.workers.output import WorkerOutput

MOST_STALLS = 2
MOST_REPLANS = 2
ENOUGH = 7.0
"""The judge's score, 1 to 10, from which an answer is good enough."""


class NextStep(StrEnum):
    """What a swarm does after a round."""

    CONTINUE = "continue"
    REPLAN = "replan"
    FINISH = "finish"


class SwarmProgress(BaseModel, frozen=True, extra="forbid"):
    """The counters of a swarm; `best_score` is that of the best answer so far, 1 to 10."""

    rounds: int = Field(default=0, ge=0)
    stalls: int = Field(default=0, ge=0)
    replans: int = Field(default=0, ge=0)
    seen: tuple[str, ...] = Field(default=(), description="chunk ids of all rounds")
    best_score: float = 0.0
    best_round: int = 0


class ProgressDecision(BaseModel, frozen=True, extra="forbid"):
    """The counters after a round, and what follows."""

    progress: SwarmProgress
    step: NextStep
    reason: str


def note_round(
    progress: SwarmProgress,
    outputs: Mapping[str, WorkerOutput],
    *,
    score: float | None = None,
    is_open: bool = False,
) -> ProgressDecision:
    """Return the decision after a round.

    `score` is the judge's, None: nobody judged; `is_open`: workers of the plan have not run yet.
    Progress is a passage that no earlier round had, or a better score.
    """
    shown = {one.citation.chunk_id for output in outputs.values() for one in output.passages}
    is_better = score is not None and score > progress.best_score
    has_advanced = bool(shown - set(progress.seen)) or is_better
    moved = progress.model_copy(
        update={
            "rounds": progress.rounds + 1,
            "stalls": max(0, progress.stalls - 1) if has_advanced else progress.stalls + 1,
            "seen": tuple(sorted(shown | set(progress.seen)))[:1_000],
            "best_score": max(progress.best_score, score or 0.0),
            "best_round": progress.rounds + 1 if is_better else progress.best_round,
        }
    )
    return _decide(moved, score, is_open=is_open)


def _decide(moved: SwarmProgress, score: float | None, *, is_open: bool) -> ProgressDecision:
    if score is not None and score >= ENOUGH:
        return ProgressDecision(progress=moved, step=NextStep.FINISH, reason="good_enough")
    is_stalled = moved.stalls >= MOST_STALLS
    if is_open and not is_stalled:
        return ProgressDecision(progress=moved, step=NextStep.CONTINUE, reason="tasks_open")
    if score is None and not is_stalled:
        return ProgressDecision(progress=moved, step=NextStep.FINISH, reason="tasks_done")
    if moved.replans >= MOST_REPLANS:
        return ProgressDecision(progress=moved, step=NextStep.FINISH, reason="replans_used_up")
    replanned = moved.model_copy(update={"replans": moved.replans + 1, "stalls": 0})
    reason = "stalled" if is_stalled else "not_good_enough"
    return ProgressDecision(progress=replanned, step=NextStep.REPLAN, reason=reason)
