"""The example of a regulation in two versions: twelve questions, answered by its tool set."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from fakeredis import FakeServer

from broker.embedded.endpoint import Endpoint
from config.settings import Settings
from deploy.assembly.knowledge import Knowledge, make_searcher, open_index
from knowledge.embedding import Embedder
from llm.conversations.turns import ModelMessage, ToolUse
from llm.port import Model
from tests.deploy.test_tool_way import cite_first, list_tools, score
from tests.support.app_harness import (
    AppHarness,
    Fields,
    PartlyScriptedModel,
    refdesk,
    run_app,
    settings_of,
)

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
ROBOT = "It must stop when a person comes closer than 50 centimetres."
TOOL_SET = EXAMPLES / "freight_act_tools.toml"


@pytest.fixture(scope="session")
def regulation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("freight")
    ingested = refdesk(folder, "ingest", str(EXAMPLES / "freight_act"))
    assert ingested.returncode == 0, ingested.stderr
    return folder


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
    index = await open_index(settings, embedder)
    known = Knowledge(index, embedder, make_searcher(settings, index, embedder))
    endpoint = Endpoint(url="", durable=False, played=FakeServer())

    def open_app(model: Model | None = None) -> AbstractAsyncContextManager[AppHarness]:
        return run_app(settings, endpoint, known, model)

    yield open_app
    await index.close()


@pytest.fixture
async def open_one_by_one(regulation: Path, embedder: Embedder) -> AsyncIterator[Any]:
    """The same desk, whose rounds make one call each."""
    settings = make_settings(regulation, multi_tool_enabled=False)
    index = await open_index(settings, embedder)
    known = Knowledge(index, embedder, make_searcher(settings, index, embedder))
    endpoint = Endpoint(url="", durable=False, played=FakeServer())
    yield lambda: run_app(settings, endpoint, known)
    await index.close()


async def ask(open_regulation: Any, text: str, model: Model | None = None) -> Fields:
    async with open_regulation(model) as harness:
        reply: Fields = await harness.driver().say(text)
    return reply


def list_paths(reply: Fields) -> set[str]:
    return {str(source["path"]) for source in reply["sources"]}


@pytest.mark.parametrize(
    ("question", "said", "path"),
    [
        ("How long is a licence valid?", "3 years", "2025/article-03-licence.md"),
        ("Who signs the report of an accident?", "safety officer", "2025/article-05-accidents.md"),
        (
            "What is the penalty for a late report of an accident?",
            "up to 10,000 marks",
            "2025/article-08-penalties.md",
        ),
        (
            "What was the fine for transport without a licence in version 2024?",
            "up to 8,000 marks",
            "2024/article-08-penalties.md",
        ),
        (
            "What does the operator of a drone need, and how long is the course for it?",
            "a course of 24 hours",
            "2025/article-07-certificates.md",
        ),
        ("Summarize Article 3.", "must hold a licence", "2025/article-03-licence.md"),
    ],
)
async def test_a_question_is_answered_from_the_article_that_says_it(
    open_regulation: Any, question: str, said: str, path: str
) -> None:
    reply = await ask(open_regulation, question)

    assert reply["outcome"] == "answered"
    assert said in reply["text"]
    assert path in list_paths(reply)


async def test_two_questions_are_looked_for_in_parallel_and_both_answered(
    open_regulation: Any,
) -> None:
    reply = await ask(
        open_regulation, "What is the fee for a licence, and how long must records be kept?"
    )

    assert "450 marks" in reply["text"]
    assert "12 months" in reply["text"]
    assert list_tools(reply)[:2] == ["graph_search", "graph_search"]


async def test_a_comparison_quotes_both_versions(open_regulation: Any) -> None:
    reply = await ask(
        open_regulation,
        "What changed for the retention of records between version 2024 and version 2025?",
    )

    assert "24 months" in reply["text"]
    assert "12 months" in reply["text"]
    assert {"2024/article-04-records.md", "2025/article-04-records.md"} <= list_paths(reply)
    assert "regulation_comparison" in list_tools(reply)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("How do I bake bread?", "out_of_scope"),
        ("What is the speed limit of cargo bikes?", "insufficient_context"),
    ],
)
async def test_what_the_regulation_does_not_say_is_declined_with_the_reason(
    open_regulation: Any, question: str, reason: str
) -> None:
    reply = await ask(open_regulation, question)

    assert (reply["outcome"], reply["clarification_reason"]) == ("refused", reason)


async def test_a_calculation_is_made_and_names_the_calculator(open_regulation: Any) -> None:
    reply = await ask(open_regulation, "How much are 2 * 10000 marks?")

    assert reply["text"] == "2 * 10000 = 20000 [1]"


@pytest.mark.parametrize(
    ("question", "tools", "said"),
    [
        ("How long is a licence valid?", ["graph_search"], ["3 years"]),
        (
            "What is the penalty for a late report of an accident?",
            ["penalty_lookup"],
            ["up to 10,000 marks"],
        ),
        ("Summarize Article 3", ["regulation_summary"], ["must hold", "3 years", "450 marks"]),
        (
            "How long must records be kept, and what is the fine for missing records?",
            ["penalty_lookup", "regulation_search"],
            ["12 months", "up to 3,000 marks"],
        ),
        (
            "What must a delivery robot have, and what is the fine for a robot without it?",
            ["penalty_lookup", "regulation_search"],
            ["a white light", "up to 1,500 marks"],
        ),
    ],
)
async def test_the_tools_that_a_question_needs_answer_it_in_one_round(
    open_regulation: Any, question: str, tools: list[str], said: list[str]
) -> None:
    reply = await ask(open_regulation, question)

    assert sorted(list_tools(reply)) == tools
    assert all(reply["text"].count(one) == 1 for one in said)
    assert (reply["assessment"]["round"], len(reply["plan_rounds"])) == (1, 1)
    assert reply["assessment"]["quality"] >= 8


async def test_a_second_round_finds_the_part_that_the_first_answer_lacks(
    open_one_by_one: Any,
) -> None:
    async with open_one_by_one() as harness:
        driver = harness.driver()
        reply = await driver.say(
            "How long must records be kept, and what is the fine for missing records?"
        )
        scores = [one["assessment"]["quality"] for one in await driver.read_writes(reply, "assess")]

    assert [one["strategy"] for one in reply["plan_rounds"]] == [None, "REFINE_QUERY"]
    assert scores[0] < 7
    assert scores[1] >= 8
    assert "12 months" in reply["text"]
    assert "up to 3,000 marks" in reply["text"]


@pytest.mark.parametrize(
    "question",
    [
        "Who is the founder of the company that operates the drones?",
        "What is the fine for a missing safety officer?",
        "Are delivery robots allowed in 2024?",
        "How long was a licence valid in 2023?",
    ],
)
async def test_what_the_regulation_does_not_say_is_not_answered_by_something_like_it(
    open_regulation: Any, question: str
) -> None:
    reply = await ask(open_regulation, question)

    assert (reply["outcome"], reply["clarification_reason"]) == ("refused", "insufficient_context")


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What was the maximum weight for drones in 2024?", "more than 5 kilograms"),
        ("What is the maximum weight for drones?", "more than 8 kilograms"),
        ("How fast may a delivery robot drive?", "at most 6 kilometres an hour"),
        ("What are the rules for records?", "must keep a record"),
    ],
)
async def test_an_article_answers_in_other_words_than_the_question(
    open_regulation: Any, question: str, said: str
) -> None:
    reply = await ask(open_regulation, question)

    assert said in reply["text"]


async def test_the_fine_of_a_named_version_is_the_only_one(open_regulation: Any) -> None:
    reply = await ask(
        open_regulation, "What is the fine for a late report of an accident in version 2024?"
    )

    assert "up to 4,000 marks" in reply["text"]
    assert "10,000" not in reply["text"]
    assert list_paths(reply) == {"2024/article-08-penalties.md"}


async def test_three_rounds_ask_differently_and_the_best_answer_says_what_is_missing(
    open_regulation: Any,
) -> None:
    reply = await ask(
        open_regulation, "What is the fee for a boat licence in Yonder, and its penalties?"
    )

    rounds = reply["plan_rounds"]
    made = [(one["tool_name"], one["arguments"].get("query")) for one in reply["tool_calls"]]
    assert [one["round"] for one in rounds] == [1, 2, 3]
    assert all(one["strategy"] and "lacks" in one["reasoning"] for one in rounds[1:])
    assert len(made) == len(set(made))
    assert reply["assessment"]["quality"] < 7


async def test_a_greeting_goes_the_short_way_and_a_general_question_to_the_general_tool(
    open_regulation: Any,
) -> None:
    greeted = await ask(open_regulation, "Hello")
    general = await ask(open_regulation, "In general, who does the Act apply to?")

    assert (greeted["outcome"], "plan_rounds" in greeted) == ("answered", False)
    assert "every carrier that moves goods" in general["text"]
    assert [(one["intent"], one["tools"]) for one in general["plan_rounds"]] == [
        ("general", ["general_rag"])
    ]


async def test_a_second_round_refines_the_query_of_the_first(open_regulation: Any) -> None:
    """Also with the names of the tool set, which the model is given."""

    def use(query: str) -> ModelMessage:
        call = ToolUse(call_id="a", name="regulation_search", arguments={"query": query})
        return ModelMessage(calls=(call,))

    model = PartlyScriptedModel(
        reason=[use("robots"), use("distance at which a delivery robot stops")],
        respond=[cite_first("50 centimetres", ROBOT), cite_first("50 centimetres", ROBOT)],
        assess=[score(4.0, "the distance"), score(9.0)],
    )

    reply = await ask(open_regulation, "When must a delivery robot stop?", model)

    first, second = model.find_asked("reason")
    names = {tool.name for tool in first.tools}
    assert {"regulation_search", "penalty_lookup", "general_rag"} <= names
    assert second.messages[-1].text == "The answer so far lacks: the distance."
    assert list_tools(reply) == ["regulation_search", "regulation_search"]
    assert reply["assessment"]["round"] == 2


def test_a_combination_of_a_tool_that_does_not_exist_ends_the_start_with_its_name(
    regulation: Path,
) -> None:
    asked = refdesk(
        regulation,
        "ask",
        "How long is a licence valid?",
        tool_set=str(TOOL_SET),
        tool_combinations='{"wrong": ["penalty_lookup", "regulation_serch"]}',
    )

    assert asked.returncode == 1
    assert asked.stderr.startswith("refdesk: TOOL_COMBINATIONS: wrong: expected one of")
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
