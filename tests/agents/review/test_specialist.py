"""Other wordings of a search, by a model."""

from typing import Any

from agents.review.specialist import expand_search
from envelope.run import OUTSIDE
from llm.conversation import ToolUse
from llm.missing_model import MissingModel
from llm.scripted import ScriptedModel
from llm.tasks.hyde_expansion import Output

FOUND = Output(passage="The keeper may engage others.", queries=("sub-processor", "sub-processor"))


def use(name: str, **arguments: Any) -> ToolUse:
    return ToolUse(call_id=name, name=name, arguments=arguments)


async def test_the_first_search_gets_the_invented_passage_and_the_queries_once_each() -> None:
    calls = [
        use("get_document_info"),
        use("search", query="subcontractor"),
        use("search", query="b"),
    ]

    expanded = await expand_search(calls, ScriptedModel([FOUND]), "Is it allowed?", "en", OUTSIDE)

    assert [expanded[0], expanded[2]] == [calls[0], calls[2]]
    assert expanded[1].arguments == {
        "query": "subcontractor",
        "wordings": ["The keeper may engage others.", "sub-processor"],
    }
    assert calls[1].arguments == {"query": "subcontractor"}, "the model's own call is unchanged"


async def test_what_is_no_plain_search_is_not_expanded() -> None:
    model = ScriptedModel([])

    for call in (
        use("graph_search", query="a"),
        use("search", query="a", aspects=["b"]),
        use("search", query="a", wordings=["b"]),
        use("search", query=7),
        ToolUse(call_id="1", name="search", arguments="no object"),
    ):
        assert await expand_search([call], model, "?", "en", OUTSIDE) == [call]
    assert model.calls == []


async def test_rules_invent_no_passages_and_empty_wordings_change_nothing() -> None:
    call = use("search", query="a")

    assert await expand_search([call], MissingModel(), "?", "en", OUTSIDE) == [call]
    assert await expand_search([call], None, "?", "en", OUTSIDE) == [call]
    assert await expand_search([call], ScriptedModel([Output()]), "?", "en", OUTSIDE) == [call]
