from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from tools.builtin.calculator import Calculator
from tools.calls import EffectClass, ToolCall, ToolCaller, ToolErrorType
from tools.catalog import (
    ToolCatalog,
    combine_tools,
    describe_tool,
    inline_references,
    list_builtin,
    load_tool_set,
    make_tool_set,
)
from tools.errors import InvalidToolSet
from tools.executor import ToolExecutor
from tools.tool import LibraryTool, Tool


def test_every_class_of_a_tool_below_builtin_is_a_tool_without_a_list() -> None:
    listed = list_builtin()

    classes = {tool_class for base in (Tool, LibraryTool) for tool_class in base.__subclasses__()}
    own = {
        tool_class for tool_class in classes if tool_class.__module__.startswith("tools.builtin.")
    }

    assert len(own) > 10
    assert set(listed) == own


def test_the_builtin_tools_only_read() -> None:
    assert {tool.effect for tool in list_builtin()} == {EffectClass.READ}


def test_an_alias_is_the_tool_itself(catalog: ToolCatalog) -> None:
    assert catalog.find("compare_docs") is catalog.find("compare_documents")
    assert "compare_docs" not in catalog.names()


def test_the_nearest_name_is_one_that_is_allowed(catalog: ToolCatalog) -> None:
    assert catalog.find_nearest("hybird_search") == "hybrid_search"
    assert catalog.find_nearest("hybird_search", {"lookup"}) is None
    assert catalog.find_nearest("zzzz") is None


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one tool named 'calculator'"):
        ToolCatalog([Calculator(), Calculator()])


SET = """
[penalty_lookup]
tool = "search"
description = "Finds penalties."
aliases = ["penalties"]
[penalty_lookup.fixed]
limit = 1
[penalty_lookup.templates]
query = "fine for {}"
"""
CALLER = ToolCaller(agent="reason")


def write(folder: Path, text: str) -> Path:
    path = folder / "set.toml"
    path.write_text(text)
    return path


async def test_a_tool_of_a_set_is_a_builtin_with_fixed_arguments(
    catalog: ToolCatalog, tmp_path: Path
) -> None:
    extended = load_tool_set(write(tmp_path, SET), catalog)
    executor = ToolExecutor(extended)
    tool = extended.find("penalty_lookup")
    assert tool is not None
    described = describe_tool(tool)

    result = await executor.execute(
        ToolCall(call_id="1", tool="penalties", arguments={"query": "a breach"}), CALLER
    )
    chosen = await executor.execute(
        ToolCall(call_id="2", tool="penalty_lookup", arguments={"query": "x", "limit": 9}), CALLER
    )

    assert [citation.document_id for citation in result.citations] == ["penalties@2025"]
    assert chosen.error_type is ToolErrorType.VALIDATION
    properties = described.input_schema["properties"]
    assert isinstance(properties, dict)
    assert "limit" not in properties
    assert {"query", "method"} <= set(properties)
    assert described.description == "Finds penalties."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a]\ntool = 'no_tool'\ndescription = 'x'", "found 'no_tool'"),
        ("[a]\ntool = 'search'", "a.description"),
        ("[search]\ntool = 'search'\ndescription = 'x'", "is already used by another tool"),
        ("[a]\ntool = 'search'\ndescription = 'x'\nfixed = {limits = 1}", "found 'limits'"),
        ("[a]\ntool = 'search'\ndescription = 'x'\nextra = 1", "a.extra"),
        ("[a", "the tool set in 'set.toml'"),
    ],
)
def test_an_invalid_tool_set_names_the_location(
    catalog: ToolCatalog, tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(InvalidToolSet, match=problem.replace(".", r"\.")):
        load_tool_set(write(tmp_path, text), catalog)


def test_a_missing_file_is_reported(catalog: ToolCatalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidToolSet):
        load_tool_set(tmp_path / "missing.toml", catalog)


def test_a_file_names_the_combinations_of_its_tools_by_name_or_alias(
    catalog: ToolCatalog, tmp_path: Path
) -> None:
    combined = SET + "[combinations]\nrules_and_fines = ['search_documents', 'penalties']"

    extended = load_tool_set(write(tmp_path, combined), catalog)

    assert extended.combinations == {"rules_and_fines": ("search", "penalty_lookup")}
    assert "combinations" not in extended.names()


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ((), "set.toml: pair: expected at least two tools, found none"),
        (("search",), "pair: expected at least two tools, found 'search' alone"),
        (("search", "general_search"), "pair: expected each tool once, found 'search' twice"),
        (("search", "lokup"), r"expected one of .*, found 'lokup' \(nearest: lookup\)"),
        (("search", "delete_all_files"), "found 'delete_all_files'$"),
    ],
)
def test_an_invalid_combination_is_rejected_with_the_expected_form(
    catalog: ToolCatalog, tools: tuple[str, ...], problem: str
) -> None:
    with pytest.raises(InvalidToolSet, match=problem):
        combine_tools(catalog, {"pair": tools}, "set.toml")


def test_combinations_that_are_not_lists_of_names_are_rejected(
    catalog: ToolCatalog, tmp_path: Path
) -> None:
    with pytest.raises(InvalidToolSet, match=r"set\.toml: combinations: pair"):
        load_tool_set(write(tmp_path, "[combinations]\npair = 7"), catalog)


def test_the_shipped_example_combines_its_tools_for_three_purposes(catalog: ToolCatalog) -> None:
    shipped = Path(__file__).parents[2] / "examples" / "freight_act_tools.toml"

    assert load_tool_set(shipped, catalog).combinations == {
        "safety_and_penalties": ("regulation_search", "penalty_lookup"),
        "comprehensive_analysis": ("regulation_search", "regulation_summary"),
        "comparison_analysis": ("regulation_comparison", "regulation_summary"),
    }


class Span(BaseModel):
    """A part of a text."""

    start: int = 0


class Inputs(BaseModel, extra="forbid"):
    """Takes a span, and a field that is called as a keyword of schemas."""

    span: Span
    title: str = Field(description="of the page")


class Nested(Tool[Inputs, Inputs]):
    """Has an input with a part."""

    name = "nested"
    description = "Does nothing."
    inputs = Inputs
    output = Inputs

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Inputs:
        return inputs


def test_a_schema_has_no_references_and_keeps_its_fields() -> None:
    described = describe_tool(Nested())

    assert described.model_dump() == {
        "name": "nested",
        "description": "Does nothing.",
        "input_schema": {
            "type": "object",
            "properties": {
                "span": {
                    "type": "object",
                    "description": Span.__doc__,
                    "properties": {"start": {"type": "integer", "default": 0}},
                },
                "title": {"type": "string", "description": "of the page"},
            },
            "required": ["span", "title"],
        },
    }


def test_a_tool_that_has_another_name_in_the_tool_set_is_offered_once(
    catalog: ToolCatalog,
) -> None:
    named = {
        "find_rule": {"tool": "search", "description": "Find a rule."},
        "find_fine": {"tool": "lookup", "description": "Find a fine.", "fixed": {"limit": 1}},
    }
    extended = catalog.extend(make_tool_set(named, catalog, "own.toml"))

    offered = {tool.name for tool in extended.select_distinct()}

    assert offered - {tool.name for tool in catalog.select()} == {"find_rule", "find_fine"}
    assert "search" not in offered
    assert "lookup" in offered, "the other tool fixes an argument"


def test_every_builtin_tool_has_a_schema_that_describes_each_argument(catalog: ToolCatalog) -> None:
    for tool in catalog.select():
        schema = describe_tool(tool).input_schema

        assert "$ref" not in str(schema)
        properties = schema["properties"]
        assert isinstance(properties, dict)
        assert all("description" in str(schema) for schema in properties.values())


def test_a_definition_that_contains_itself_is_refused() -> None:
    node = {"properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}

    with pytest.raises(ValueError, match="must not contain itself"):
        inline_references(schema)  # type: ignore[arg-type]
