"""The strategy `parallel`: independent sub-questions, side by side, gathered in a table."""

from collections.abc import Mapping, Sequence

from llm.offline.planning.listed_items import find_compared_names
from llm.offline.planning.listed_things import find_compared_list
from llm.offline.planning.question_parts import read_question
from swarm.planning.plan import QueryComplexity, SwarmPlan, WorkerPlan
from swarm.strategies.intelligent import (
    make_name_workers,
    make_question_workers,
    make_single_worker,
)
from swarm.strategies.strategy import StrategyContext, SwarmStrategy
from swarm.synthesis.report import SwarmReport, write_report
from swarm.synthesis.report_wording import ReportWording
from swarm.workers.output import WorkerOutput


class ParallelStrategy(SwarmStrategy):
    """One worker for each name or question; no worker waits for another one."""

    name = "parallel"
    description = "independent sub-questions, side by side"

    def suits(self, question: str, complexity: QueryComplexity) -> float:
        several = find_compared_list(question) or find_compared_names(question)
        return 0.6 if several or len(read_question(question).separate) > 1 else 0.1

    def generate_workers(
        self, question: str, complexity: QueryComplexity, context: StrategyContext
    ) -> Sequence[WorkerPlan]:
        most = min(context.most_workers, context.suggested_workers or context.most_workers)
        names = (find_compared_list(question) or find_compared_names(question))[:most]
        if names:
            return list(make_name_workers(question, names, context.language))
        separate = read_question(question).separate[:most]
        if len(separate) > 1:
            return list(make_question_workers(separate, context.most_passages))
        single = make_single_worker(question, context.most_passages)
        return [single.model_copy(update={"lists_items": False})]

    def synthesize_results(
        self, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
    ) -> SwarmReport:
        compared = tuple(worker.subject for worker in plan.workers if worker.subject)
        return write_report(
            plan.model_copy(update={"compared": plan.compared or compared}),
            outputs,
            wording,
        )
