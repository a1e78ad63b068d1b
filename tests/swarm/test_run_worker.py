"""Workers over a small library, with the offline planner."""

from llm.conversations.port import ModelStep
from llm.conversations.turns import ToolConversation
from llm.errors import ModelUnavailable
from swarm.planning.plan import DocumentReference
from swarm.planning.plan_checks import arrange_workers
from swarm.strategies.expansion import expand_plan
from swarm.strategies.strategy import StrategyContext
from swarm.strategies.strategy_registry import make_plan, make_strategies
from swarm.synthesis.report import SwarmReport
from swarm.workers.output import WorkerOutput, WorkerStatus
from swarm.workers.run_worker import WorkerRunner
from swarm.workers.worker_type import make_registry
from tests.swarm.builders import make_wording, make_worker
from tests.swarm.conftest import ISLANDS
from tests.tools.conftest import Parts
from tools.catalog import make_builtin
from tools.executor import ToolExecutor


async def run_swarm(
    question: str, runner: WorkerRunner, context: StrategyContext
) -> tuple[SwarmReport, dict[str, WorkerOutput]]:
    strategy = make_strategies().find("intelligent")
    plan = make_plan(question, strategy, context, make_registry())
    outputs: dict[str, WorkerOutput] = {}
    for _ in range(2):
        for wave in arrange_workers([one for one in plan.workers if one.id not in outputs]):
            for worker in wave:
                outputs[worker.id] = await runner.run(worker)
        plan = expand_plan(plan, outputs)
    return strategy.synthesize_results(plan, outputs, make_wording()), outputs


async def test_a_group_is_found_first_and_then_each_member(runner: WorkerRunner) -> None:
    question = "When does the ferry to each of the islands of the county leave?"

    report, outputs = await run_swarm(question, runner, StrategyContext(most_passages=10))

    assert len(outputs) == 1 + len(ISLANDS)
    assert report.table is not None
    assert [(row.item, row.sources) for row in report.table.rows] == [
        (name, (f"{name.lower()}#0",)) for name in ISLANDS
    ]
    assert "leaves at 8 o'clock" in report.text


async def test_documents_that_meet_one_thing_and_lack_another_are_selected(
    runner: WorkerRunner, references: tuple[DocumentReference, ...]
) -> None:
    question = "Which contracts have a right to audit the books but no cap on liability?"

    report, _ = await run_swarm(question, runner, StrategyContext(documents=references))

    assert report.documents is not None
    assert [one.document_id for one in report.documents.selected] == ["c1"]
    assert report.text.startswith("Documents that meet this: 1 of 3 that were checked.")


async def test_none_is_said_when_no_document_meets_what_was_asked(
    runner: WorkerRunner, references: tuple[DocumentReference, ...]
) -> None:
    question = "Which contracts require that source code is deposited in escrow?"

    report, _ = await run_swarm(question, runner, StrategyContext(documents=references))

    assert report.text.startswith("None of the 3 documents")


class BrokenModel:
    """A model that cannot be reached."""

    name = "broken"

    async def converse(self, conversation: ToolConversation, *, skip: int = 0) -> ModelStep:
        raise ModelUnavailable("the model did not answer")


async def test_a_model_that_fails_is_the_failure_of_its_worker(parts: Parts) -> None:
    executor = ToolExecutor(make_builtin(parts))
    runner = WorkerRunner(BrokenModel(), executor, (), make_registry())

    output = await runner.run(make_worker("w"))

    assert output.status is WorkerStatus.FAILED
    assert "did not answer" in output.error


async def test_a_worker_reads_only_what_its_tools_allow(runner: WorkerRunner) -> None:
    output = await runner.run(make_worker("w", tools=(), objective="the ferry to Amrum"))

    assert (output.calls, output.passages) == (0, ())
