"""The swarm with offline rules, in one process: plan, workers in waves, expansion, synthesis."""

from collections.abc import Sequence
from functools import partial

from config.texts import load_texts
from deploy.evaluation.multistep.ways import EvaluationParts, FoundPages
from knowledge.sections import document_of
from llm.offline.model import OfflineModel
from llm.offline.planning.assessment import Evidence, measure_completeness
from swarm.planning.plan import DocumentReference, SwarmPlan
from swarm.planning.plan_checks import arrange_workers
from swarm.strategies.expansion import expand_plan
from swarm.strategies.strategy import StrategyContext
from swarm.strategies.strategy_registry import make_plan, make_strategies
from swarm.synthesis.report_wording import ReportWording
from swarm.synthesis.shown_passages import choose_shown
from swarm.workers.output import WorkerOutput
from swarm.workers.run_worker import WorkerRunner
from swarm.workers.worker_type import make_registry
from tools.catalog import make_builtin
from tools.executor import ToolExecutor
from tools.passage_search.passages import LINKED, FoundPassage
from tools.schemas import describe_tools


class SwarmWay:
    """Plans with the strategy of the configuration, runs all workers, and gathers."""

    def __init__(
        self,
        parts: EvaluationParts,
        documents: Sequence[DocumentReference] = (),
        strategy: str = "intelligent",
    ) -> None:
        catalog = make_builtin(parts)
        self._documents = tuple(documents)
        self._workers = make_registry()
        self._strategy = make_strategies().find(strategy)
        self._wording = ReportWording(partial(load_texts().text, language="en"))
        tools = describe_tools(catalog.select())
        self._runner = WorkerRunner(OfflineModel(), ToolExecutor(catalog), tools, self._workers)

    async def find(self, text: str, k: int) -> FoundPages:
        context = StrategyContext(documents=self._documents, most_passages=k)
        plan = make_plan(text, self._strategy, context, self._workers)
        outputs: dict[str, WorkerOutput] = {}
        rounds = await self._run_waves(plan, outputs)
        expanded = expand_plan(plan, outputs)
        if expanded is not plan:
            rounds += await self._run_waves(expanded, outputs)
        report = self._strategy.synthesize_results(expanded, outputs, self._wording)
        # As in an answer: what names another subject than the asked one is not shown.
        usable = {name: one for name, one in outputs.items() if one.is_usable}
        shown = choose_shown(expanded, usable, k)
        selected = None
        if report.documents is not None:
            selected = tuple(one.document_id for one in report.documents.selected)
        evidence = [_read_evidence(one) for one in shown]
        return FoundPages(
            document_ids=tuple(document_of(one.citation.chunk_id) for one in shown),
            texts=tuple(one.text for one in evidence),
            confidence=measure_completeness(text, evidence),
            calls=sum(one.calls for one in outputs.values()),
            rounds=rounds,
            selected=selected,
        )

    async def _run_waves(self, plan: SwarmPlan, outputs: dict[str, WorkerOutput]) -> int:
        """Run the workers that have no output yet; return the number of waves."""
        waves = arrange_workers([one for one in plan.workers if one.id not in outputs])
        for wave in waves:
            for worker in wave:
                outputs[worker.id] = await self._runner.run(worker)
        return len(waves)


async def list_references(parts: EvaluationParts) -> tuple[DocumentReference, ...]:
    """Return all documents of an evaluation as a plan knows them."""
    listed = await parts.library.list_documents()
    return tuple(
        DocumentReference(document_id=one.listed.id, title=one.listed.title, crumbs=one.crumbs)
        for one in await parts.library.read([document.id for document in listed])
    )


def _read_evidence(passage: FoundPassage) -> Evidence:
    return Evidence(
        text=f"{passage.citation.title}\n{passage.text}",
        score=passage.citation.score,
        is_linked=LINKED in passage.relation,
    )
