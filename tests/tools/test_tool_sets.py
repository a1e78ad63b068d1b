from pathlib import Path

import pytest

from tools.calls import ToolCall, ToolCaller, ToolErrorType
from tools.catalog import ToolCatalog
from tools.errors import InvalidToolSet
from tools.executor import ToolExecutor
from tools.schemas import get_tool_schema
from tools.tool_sets import load_tool_set

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
    extended = catalog.extend(load_tool_set(write(tmp_path, SET), catalog))
    executor = ToolExecutor(extended)
    schema = get_tool_schema(extended, "penalty_lookup")

    found = await executor.execute(
        ToolCall(call_id="1", tool="penalties", arguments={"query": "a breach"}), CALLER
    )
    chosen = await executor.execute(
        ToolCall(call_id="2", tool="penalty_lookup", arguments={"query": "x", "limit": 9}), CALLER
    )

    assert [one.document_id for one in found.citations] == ["penalties@2025"]
    assert chosen.error_type is ToolErrorType.VALIDATION
    assert schema is not None
    assert set(schema["input_schema"]["properties"]) == {"query", "exclude", "aspects"}  # type: ignore[index, call-overload, arg-type]
    assert schema["description"] == "Finds penalties."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a]\ntool = 'no_tool'\ndescription = 'x'", "found 'no_tool'"),
        ("[a]\ntool = 'search'", "a.description"),
        ("[search]\ntool = 'search'\ndescription = 'x'", "that no other tool has"),
        ("[a]\ntool = 'search'\ndescription = 'x'\nfixed = {limits = 1}", "found 'limits'"),
        ("[a]\ntool = 'search'\ndescription = 'x'\nextra = 1", "a.extra"),
        ("[a", "expected a tool set in 'set.toml'"),
    ],
)
def test_a_set_with_a_mistake_says_where_it_is(
    catalog: ToolCatalog, tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(InvalidToolSet, match=problem.replace(".", r"\.")):
        load_tool_set(write(tmp_path, text), catalog)


def test_a_missing_file_is_reported(catalog: ToolCatalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidToolSet):
        load_tool_set(tmp_path / "missing.toml", catalog)
