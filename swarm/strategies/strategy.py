"""The interface of a strategy: how a question is divided, and how results become one answer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from swarm.planning.plan import (
    MOST_WORKERS,
    DocumentReference,
    QueryComplexity,
    SwarmPlan,
    WorkerPlan,
)
from swarm.planning.tool_allocation import OfferedTool
from swarm.synthesis.report import SwarmReport
from swarm.synthesis.report_wording import ReportWording
from swarm.workers.output import WorkerOutput


class StrategyContext(BaseModel, frozen=True, extra="forbid"):
    """What a strategy may know besides the question.

    `documents` are those that the person may read, `tools` those that workers may be given (none:
    the ones that the strategy names are not checked); `suggested_workers` was learned for
    this kind of question, None: nothing; `known` are facts that the user has given, `language` is
    that of the question as it is searched.
    """

    documents: tuple[DocumentReference, ...] = ()
    tools: tuple[OfferedTool, ...] = ()
    most_workers: int = Field(default=MOST_WORKERS, ge=1, le=MOST_WORKERS)
    most_passages: int = Field(default=10, ge=1, le=30)
    suggested_workers: int | None = Field(default=None, ge=1, le=MOST_WORKERS)
    known: dict[str, str] = {}
    language: str = "en"


class SwarmStrategy(ABC):
    """One way to divide a question; it keeps nothing between questions.

    `suits` says how well it suits a question, 0 to 1, when nobody has chosen a strategy.
    """

    name: str
    description: str

    @abstractmethod
    def suits(self, question: str, complexity: QueryComplexity) -> float:
        """Return how well the strategy suits a question, 0 to 1."""

    @abstractmethod
    def generate_workers(
        self, question: str, complexity: QueryComplexity, context: StrategyContext
    ) -> Sequence[WorkerPlan]:
        """Return the workers of a question, at least one."""

    @abstractmethod
    def synthesize_results(
        self, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
    ) -> SwarmReport:
        """Return one report from what workers found; missing outputs are named in it.

        `wording` has the fixed texts in the language of the answer, and the persona.
        """
