"""The example of a regulation in two versions: the client's questions, with and without a model."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from knowledge.embedding import Embedder
from llm.port import Model, ModelMessage, ToolUse, UserMessage
from llm.tasks.search import RespondOutput
from tests.desk.conftest import ingest_example
from tests.desk.test_tool_way import DONE, cite_first, list_tools, research
from tests.support.app_harness import (
    Fields,
    PartlyScriptedModel,
    judge_all,
    open_knowledge_with,
    refdesk,
    run_app,
    settings_of,
)
from tests.support.empty_redis import play_redis
from tests.support.shared_folder import provide_folder

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
ROBOT = "It must stop when a person comes closer than 50 centimetres."
TOOL_SET = EXAMPLES / "freight_act_tools.toml"


@pytest.fixture(scope="session")
def regulation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return provide_folder(tmp_path_factory, "freight", partial(ingest_example, "freight_act"))


def make_settings(regulation: Path, **changes: object) -> Settings:
    return settings_of(
        regulation,
        way="tools",
        tool_set=TOOL_SET,
        domain_name="Freight Act desk",
        domain_scope="",
        **changes,
    )


@pytest.fixture
async def open_regulation(regulation: Path, embedder: Embedder) -> AsyncIterator[Any]:
    settings = make_settings(regulation)
    endpoint = play_redis()
    async with open_knowledge_with(settings, embedder) as known:
        yield lambda model=None: run_app(settings, endpoint, known, model)


async def ask(open_regulation: Any, text: str, model: Model | None = None) -> Fields:
    async with open_regulation(model) as harness:
        reply: Fields = await harness.driver().say(text)
    return reply


def list_paths(reply: Fields) -> set[str]:
    return {str(source["path"]) for source in reply["sources"]}


@pytest.mark.parametrize(
    ("question", "path"),
    [
        (
            "Summarize technical regulations for delivery robots",
            "2025/article-09-delivery-robots.md",
        ),
        (
            "What are the safety requirements and the penalties for violations?",
            "2025/article-08-penalties.md",
        ),
        ("Find safety rules for drones", "2025/article-06-drones.md"),
        ("How long is a licence valid?", "2025/article-03-licence.md"),
        ("Who signs the report of an accident?", "2025/article-05-accidents.md"),
        ("Compare 2024 vs 2025: how long are records kept?", "2025/article-04-records.md"),
    ],
)
async def test_without_a_model_a_question_ends_in_passages_of_the_article_that_says_it(
    open_regulation: Any, question: str, path: str
) -> None:
    reply = await ask(open_regulation, question)

    assert reply["outcome"] == "answered"
    assert path in list_paths(reply)
    assert set(list_tools(reply)) == {"search"}


async def test_without_a_model_two_questions_are_looked_for_in_parallel(
    open_regulation: Any,
) -> None:
    reply = await ask(
        open_regulation, "What is the fee for a licence? How long must records be kept?"
    )

    assert {"2025/article-03-licence.md", "2025/article-04-records.md"} <= list_paths(reply)
    assert list_tools(reply) == ["search", "search"]


def call(tool: str, **arguments: Any) -> ModelMessage:
    return ModelMessage(calls=(ToolUse(call_id="a", name=tool, arguments=arguments),))


async def test_two_tools_of_a_model_answer_in_one_round(open_regulation: Any) -> None:
    """Scenario T-14: the rule and the penalty, found side by side."""
    both = ModelMessage(
        text="The requirement and its penalty.",
        calls=(
            ToolUse(
                call_id="a",
                name="regulation_search",
                arguments={
                    "query": "safety officer",
                    "plan_intent": "search",
                    "plan_next": "write",
                },
            ),
            ToolUse(
                call_id="b",
                name="penalty_lookup",
                arguments={"query": "late report", "plan_intent": "penalty", "plan_next": "write"},
            ),
        ),
    )
    model = PartlyScriptedModel(
        reason=[both],
        respond=[cite_first("up to 10,000 marks", "A late report costs up to 10,000 marks.")],
        judge=[judge_all("approve")],
    )

    reply = await ask(
        open_regulation, "What are the safety requirements and penalties for violations?", model
    )

    [first] = reply["plan_rounds"]
    assert reply["text"] == "A late report costs up to 10,000 marks. [1]"
    assert list_paths(reply) == {"2025/article-08-penalties.md"}
    assert (first["intent"], first["is_multi_tool"]) == ("multi_tool", True)


async def test_a_comparison_of_a_model_reads_both_versions(open_regulation: Any) -> None:
    def compare(inputs: Any) -> RespondOutput:
        numbers = {
            source.version: source.number for source in inputs.sources if "Records" in source.place
        }
        text = f"24 months in 2024 [{numbers['2024']}], 12 months in 2025 [{numbers['2025']}]."
        return RespondOutput(status="answered", answer=text, confidence=0.9)

    model = PartlyScriptedModel(
        reason=[
            call("regulation_comparison", old="2024", new="2025", plan_intent="comparison"),
            DONE,
        ],
        respond=[compare],
        judge=[judge_all("approve")],
    )

    reply = await ask(open_regulation, "Compare 2024 vs 2025: how long are records kept?", model)

    assert {"2024/article-04-records.md", "2025/article-04-records.md"} == list_paths(reply)
    assert reply["plan_rounds"][0]["intent"] == "comparison"


async def test_three_rounds_below_the_threshold_end_with_the_best_answer(
    open_regulation: Any,
) -> None:
    """Scenario T-16."""
    rounds = [
        call("regulation_search", query=text)
        for text in ("boat licence", "licence", "ship licence")
    ]
    written = [cite_first("licence", f"{word} draft.", "boats") for word in ("A", "My", "Our")]
    model = PartlyScriptedModel(
        reason=[message for made in rounds for message in (made, DONE)],
        respond=written,
        judge=[
            research("boats").model_copy(update={"completeness": share})
            for share in (0.2, 0.6, 0.4)
        ],
    )

    reply = await ask(open_regulation, "What is the fee for a boat licence in Yonder?", model)

    planned = [item for item in reply["plan_rounds"] if item["tools"]]
    assert [item["strategy"] for item in planned] == [None, "REFINE_QUERY", "REFINE_QUERY"]
    assert "My draft. [1]" in reply["text"]
    model.script.assert_complete()


async def test_a_second_round_refines_the_query_of_the_first(open_regulation: Any) -> None:
    """Also with the names of the tool set, which the model is given."""

    def use(query: str) -> ModelMessage:
        call = ToolUse(call_id="a", name="regulation_search", arguments={"query": query})
        return ModelMessage(calls=(call,))

    model = PartlyScriptedModel(
        reason=[use("robots"), DONE, use("distance at which a delivery robot stops"), DONE],
        respond=[cite_first("50 centimetres", ROBOT, "the distance")] * 2,
        judge=[research("the distance"), judge_all("approve")],
    )

    reply = await ask(open_regulation, "When must a delivery robot stop?", model)

    first, _, second, _ = model.find_asked("reason")
    names = {tool.name for tool in first.tools}
    assert {"regulation_search", "penalty_lookup", "general_rag"} <= names
    assert isinstance(second.messages[-1], UserMessage)
    remark = second.messages[-1].remark
    assert remark is not None
    assert (remark.is_incomplete, remark.lacks) == (True, ("the distance",))
    assert list_tools(reply) == ["regulation_search", "regulation_search"]


def test_a_combination_of_a_tool_that_does_not_exist_ends_the_start_with_its_name(
    regulation: Path, tmp_path: Path
) -> None:
    tool_set = tmp_path / "tools.toml"
    tool_set.write_text(TOOL_SET.read_text().replace(
        "[combinations]", '[combinations]\nwrong = ["penalty_lookup", "regulation_serch"]'
    ))  # fmt: skip

    asked = refdesk(regulation, "ask", "How long is a licence valid?", tool_set=str(tool_set))

    assert asked.returncode == 1
    assert "wrong: expected one of" in asked.stderr
    assert "found 'regulation_serch' (nearest: regulation_search)" in asked.stderr


def test_the_command_line_asks_by_tools_and_by_one_search(regulation: Path) -> None:
    asked = ("ask", "--json", "How long is a licence valid?", "--way")

    by_tools = refdesk(regulation, *asked, "tools", tool_set=str(TOOL_SET))
    by_search = refdesk(regulation, *asked, "search")
    wrong = refdesk(regulation, *asked, "swim")

    assert '"way": "tools"' in by_tools.stdout
    assert '"way"' not in by_search.stdout
    assert wrong.returncode != 0
    assert "search" in wrong.stderr
