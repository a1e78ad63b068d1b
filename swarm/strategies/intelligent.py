"""The strategy `intelligent`: looks at the form of the question and plans what it needs."""

from collections.abc import Iterator, Mapping, Sequence

from llm.offline.criteria.read_criteria import read_set_question
from llm.offline.planning.listed_things import find_compared_list
from llm.offline.planning.question_parts import read_question
from swarm.planning.plan import QueryComplexity, SwarmPlan, WorkerPlan, name_worker
from swarm.strategies.document_comparison import make_comparison_workers, read_comparison
from swarm.strategies.document_sets import make_document_workers, select_collection
from swarm.strategies.expansion import write_item_objective
from swarm.strategies.strategy import StrategyContext, SwarmStrategy
from swarm.synthesis.report import SwarmReport, write_report
from swarm.synthesis.report_wording import ReportWording
from swarm.workers.output import WorkerOutput

_ITEM_PASSAGES = 20


class IntelligentStrategy(SwarmStrategy):
    """Checks documents for criteria, asks about each listed name or item, or searches as one.

    A question about a group whose members nobody knows yet begins with one worker that lists them.
    """

    name = "intelligent"
    description = "plans by the form of the question"

    def suits(self, question: str, complexity: QueryComplexity) -> float:
        return 0.5

    def generate_workers(
        self, question: str, complexity: QueryComplexity, context: StrategyContext
    ) -> Sequence[WorkerPlan]:
        asked = read_set_question(question)
        documents = select_collection(asked, context.documents) if asked is not None else ()
        most = min(context.most_workers, context.suggested_workers or context.most_workers)
        if asked is not None and documents:
            return list(make_document_workers(asked, documents, most))
        comparison = read_comparison(question, context.documents)
        if comparison is not None:
            return list(make_comparison_workers(comparison, most))
        names = find_compared_list(question)[:most]
        if names:
            return list(make_name_workers(question, names, context.language))
        separate = read_question(question).separate[:most]
        if len(separate) > 1:
            return list(make_question_workers(separate, context.most_passages))
        return [make_single_worker(question, context.most_passages)]

    def synthesize_results(
        self, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
    ) -> SwarmReport:
        return write_report(plan, outputs, wording)


def make_name_workers(
    question: str, names: Sequence[str], language: str = ""
) -> Iterator[WorkerPlan]:
    """Yield a worker for each name: it is asked what the question asks of all of them.

    `language` is that of the question.
    """
    listed = " ".join(names)
    for number, name in enumerate(names):
        yield WorkerPlan(
            id=name_worker(number, "research"),
            role="research",
            specialization=name,
            objective=write_item_objective(question, name, listed)[:4_000],
            output="the passage that answers this for the name",
            tools=("search",),
            subject=name,
            language=language,
            passages=_ITEM_PASSAGES,
        )


def make_question_workers(questions: Sequence[str], most_passages: int) -> Iterator[WorkerPlan]:
    """Yield a worker for each of several questions; together they may show `most_passages`."""
    share = max(1, most_passages // len(questions))
    for number, one in enumerate(questions):
        yield WorkerPlan(
            id=name_worker(number, "research"),
            role="research",
            objective=one[:4_000],
            output="the passages that answer the question",
            tools=("graph_search", "search", "lookup"),
            passages=share,
        )


def make_single_worker(question: str, most_passages: int) -> WorkerPlan:
    """Return one worker for the whole question; if it finds a list, each item gets a worker."""
    return WorkerPlan(
        id=name_worker(0, "research"),
        role="research",
        objective=question[:4_000],
        output="the passages that answer the question",
        tools=("graph_search", "search", "lookup"),
        lists_items=True,
        passages=most_passages,
    )
