"""The strategies: what they plan, how one is chosen, and how a stranger adds another one."""

from collections.abc import Mapping, Sequence

import pytest

from swarm.errors import UnknownName
from swarm.planning.complexity import measure_complexity
from swarm.planning.plan import DocumentReference, QueryComplexity, SwarmPlan, WorkerPlan
from swarm.planning.tool_allocation import OfferedTool
from swarm.strategies.council import CouncilStrategy, load_personas
from swarm.strategies.strategy import StrategyContext, SwarmStrategy
from swarm.strategies.strategy_registry import AUTO, make_plan, make_strategies
from swarm.synthesis.report import SwarmReport, write_report
from swarm.synthesis.report_wording import ReportWording
from swarm.workers.output import WorkerOutput
from swarm.workers.worker_type import WorkerType, make_registry
from tests.swarm.builders import make_output, make_passage, make_wording, make_worker

CONTEXT = StrategyContext()


def plan(question: str, strategy: str = "intelligent", **changes: object) -> SwarmPlan:
    context = CONTEXT.model_copy(update=changes)
    return make_plan(question, make_strategies().find(strategy), context, make_registry())


def test_each_listed_name_gets_a_worker() -> None:
    made = plan("What are the retention rules of Alfa, Beta and Gamma?")

    assert [one.subject for one in made.workers] == ["Alfa", "Beta", "Gamma"]
    assert all("retention" in one.objective for one in made.workers)


def test_each_document_of_a_collection_gets_a_worker() -> None:
    documents = tuple(
        DocumentReference(document_id=f"d{n}", title=f"Contract {n}", crumbs=(f"P{n % 2}",))
        for n in range(6)
    )

    made = plan("Which contracts in portfolio P1 have an audit right?", documents=documents)

    assert [one.documents for one in made.workers] == [("d1",), ("d3",), ("d5",)]
    assert made.criteria[0].text == "have an audit right"


def test_more_documents_than_workers_share_them() -> None:
    documents = tuple(
        DocumentReference(document_id=f"d{n}", title=f"Contract {n}") for n in range(100)
    )

    made = plan("Which contracts have an audit right?", documents=documents, most_workers=8)

    assert len(made.workers) == 8
    assert sum(len(one.documents) for one in made.workers) == 100


def test_what_was_learned_bounds_the_number_of_workers() -> None:
    made = plan("What are the rules of Alfa, Beta, Gamma and Delta?", suggested_workers=2)

    assert len(made.workers) == 2


def test_two_things_that_are_compared_are_looked_up_side_by_side() -> None:
    made = plan("Which is older, Alfa or Beta?", "parallel")

    assert [one.subject for one in made.workers] == ["Alfa", "Beta"]
    assert all(not one.depends_on for one in made.workers)


def test_a_strategy_is_chosen_by_the_caller_then_the_planner_then_the_configuration() -> None:
    registry = make_strategies()
    complexity = measure_complexity("x")

    def choose(caller: str = "", planner: str = "", configured: str = "") -> str:
        question = "What should we do?"
        return registry.choose(
            question, complexity, caller=caller, planner=planner, configured=configured
        ).name

    assert choose(caller="parallel", planner="council", configured="intelligent") == "parallel"
    assert choose(planner="council", configured="intelligent") == "council"
    assert choose(configured="intelligent") == "intelligent"
    assert choose(configured=AUTO) == "council"


def test_what_was_learned_can_outweigh_the_form_of_a_question() -> None:
    registry = make_strategies()
    question = "What is the fee for parcels?"
    complexity = measure_complexity(question)

    learned = registry.choose(question, complexity, configured=AUTO, learned={"parallel": 0.5})

    assert registry.choose(question, complexity, configured=AUTO).name == "intelligent"
    assert learned.name == "parallel"


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="expected one of council, intelligent, parallel"):
        make_strategies().find("legion")


class Twice(SwarmStrategy):
    """The strategy of a stranger: asks everything twice, in two ways."""

    name = "twice"
    description = "asks twice"

    def suits(self, question: str, complexity: QueryComplexity) -> float:
        return 1.0

    def generate_workers(
        self, question: str, complexity: QueryComplexity, context: StrategyContext
    ) -> Sequence[WorkerPlan]:
        return [
            WorkerPlan(id=f"ask_{role}", role=role, objective=question, tools=("search",))
            for role in ("research", "translator")
        ]

    def synthesize_results(
        self, plan: SwarmPlan, outputs: Mapping[str, WorkerOutput], wording: ReportWording
    ) -> SwarmReport:
        return write_report(plan, outputs, wording)


def test_a_stranger_adds_a_fourth_strategy_and_a_fifth_type_of_worker() -> None:
    strategies, workers = make_strategies(), make_registry()

    strategies.register(Twice())
    workers.register(WorkerType("translator", "translates", ("search",), "Translate."))
    chosen = strategies.choose("What is it?", measure_complexity("What is it?"), configured=AUTO)
    made = make_plan("What is it?", chosen, CONTEXT, workers)

    assert strategies.names == ("council", "intelligent", "parallel", "twice")
    assert [one.role for one in made.workers] == ["research", "translator"]
    with pytest.raises(ValueError, match="found two"):
        strategies.register(Twice())


def test_a_council_has_three_perspectives_that_do_not_see_each_other() -> None:
    made = plan("Should we move to the cloud?", "council")

    assert len({one.specialization for one in made.workers}) == 3
    assert len({one.objective for one in made.workers}) == 3
    assert all(not one.depends_on for one in made.workers)
    with pytest.raises(ValueError, match="at least 3 personas"):
        CouncilStrategy(load_personas()[:2])
    with pytest.raises(ValueError, match="another perspective"):
        CouncilStrategy((*load_personas()[:3], load_personas()[0]))


@pytest.mark.parametrize("language", ["en", "de", "es", "fr", "it", "pt", "ru", "uk", "ar", "hi"])
def test_a_council_searches_in_the_language_of_the_question(language: str) -> None:
    context = CONTEXT.model_copy(update={"language": language})
    complexity = measure_complexity("?")

    made = CouncilStrategy().generate_workers("?", complexity, context)

    personas = load_personas(language)
    assert [one.specialization for one in made] == ["advocate", "critic", "practitioner"]
    assert all(one.asks in worker.objective for one, worker in zip(personas, made, strict=False))
    assert (personas == load_personas()) == (language == "en")


def test_a_council_in_another_language_has_the_english_words() -> None:
    assert load_personas("tlh") == load_personas("en")


def test_a_council_names_agreement_and_dissent_and_gives_each_member_the_same_length() -> None:
    made = plan("Should the archive move to the cloud?", "council")
    shared = make_passage("s", "The archive in the cloud should save money in every year.")
    for_it = make_passage("f", "To move the archive to the cloud takes 3 weeks of work.")
    against = make_passage("a", "To move the archive to the cloud takes 9 weeks of work.")
    first, second, third = (one.id for one in made.workers)
    outputs = {
        first: make_output(first, shared, for_it),
        second: make_output(second, shared, against),
        third: make_output(third),
    }

    council = make_strategies().find("council")
    report = council.synthesize_results(made, outputs, make_wording("Hermes"))

    assert report.text.startswith("Hermes:")
    assert "save money in every year. [1] (agreement: advocate, critic)" in report.text
    assert "different numbers: 3 and 9" in report.text
    assert any("practitioner" in one for one in report.missing)


def test_a_plan_has_only_offered_tools() -> None:
    offered = (OfferedTool(name="search"), OfferedTool(name="lookup"))

    made = plan("What is the fee?", tools=offered)

    assert made.workers[0].tools == ("search", "lookup")
    assert made.notes == (
        "graph_search is withheld from worker_0_research: no such tool is offered",
    )


def test_the_type_of_a_worker_is_inferred_and_states_what_it_needs() -> None:
    registry = make_registry()
    asked = "Which command or script restarts the service?"
    worker = make_worker("w", role=registry.infer(asked).name)

    assert worker.role == "code"
    assert registry.infer("Where is the office?").name == "research"
    assert [one.name for one in registry.list_required([worker])["w"]] == ["programming_language"]
    with pytest.raises(UnknownName, match="expected one of analysis, code, data, research"):
        registry.find("spy")
