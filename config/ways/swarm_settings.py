"""Settings of the swarm: how it divides a question, and how long it tries."""

from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints

MOST_WORKERS = 32


class SwarmSettings(BaseModel):
    """The way `swarm`; a part of `Settings`."""

    swarm_strategy: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")] = Field(
        "auto",
        description="how the swarm divides a question: `intelligent`: by the form of the question; "
        "`parallel`: independent sub-questions; `council`: several perspectives; `auto`: the "
        "planner chooses",
    )
    swarm_workers: int = Field(
        MOST_WORKERS, ge=1, le=MOST_WORKERS, description="maximum number of workers of a question"
    )
    swarm_parallel_workers: int = Field(
        8, ge=1, le=64, description="maximum number of workers of a question at the same time"
    )
    swarm_retries: int = Field(
        3, ge=0, le=10, description="how often a worker that failed begins again"
    )
    swarm_enough_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="the share of workers whose results are enough to write the answer; 1: all, "
        "but for those that fail or take too long",
    )
    swarm_above_complexity: int = Field(
        70,
        ge=0,
        le=101,
        description="with `WAY=auto`: questions of a higher complexity (0 to 100) are divided "
        "among workers",
    )
