"""The time and the memory of built-in tools for the largest arguments that a model may write."""

import time
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest

from tools.builtin.calculator import compute
from tools.calls import ToolCall, ToolCaller
from tools.catalog import ToolCatalog
from tools.errors import InvalidInput
from tools.executor import MOST_ARGUMENT_BYTES, ToolExecutor

MOST_SECONDS = 5.0
"""Of processor time; the slowest takes a tenth of it."""
MOST_BYTES = 64_000_000
FILLINGS = (
    "a",
    "a ",
    "the fee of 150 euros. ",
    "9",
    "1e",
    "(",
    "\u0301",
    "\U0001f600",
    "\n",
    "|",
    "-1 ",
)
"""What texts are filled with: one word, many words, sentences, numbers, signs of a format."""
KNOWN = {
    "document_id": "alfa@2025", "chunk_id": "alfa@2025#1", "old": "2024", "new": "2025",
    "chunk_ids": ["alfa@2025#1"], "start": ["alfa@2025#1"], "title_prefix": "Article",
    "page": 1,
}  # fmt: skip
"""Names of something that exists: a tool that finds nothing does nothing with the rest."""
READER = ToolCaller(agent="reason", groups=("board",))
LARGE_NUMBERS = (
    "round(1, 1e400000)", "round(1, -1e400000)", "1e99999999", "1e-99999999", "1e9999999 // 1",
    "1e9999999 % 7", "abs(-1e99999999)", "min(1, 1e99999999)", "sqrt(1e99999999)", "1 - 1e99999999",
    "9 ** 9 ** 9", "1e99 ** 1e99", "0.1 ** 1e99999999", "1" * 200, "9" * 99 + "**99",
)  # fmt: skip


@pytest.mark.parametrize("expression", LARGE_NUMBERS)
def test_no_exponent_costs_time_or_memory(expression: str) -> None:
    with measure_cost(most_seconds=0.5, most_bytes=1_000_000), pytest.raises(InvalidInput):
        compute(expression)


async def test_no_size_of_an_argument_costs_time_or_memory(
    executor: ToolExecutor, catalog: ToolCatalog
) -> None:
    names = catalog.names()
    answered = set()

    for name in names:
        tool = catalog.find(name)
        assert tool is not None
        for filling in FILLINGS:
            arguments = fill_schema(tool.describe_inputs(), filling)
            call = ToolCall(call_id="1", tool=name, arguments=arguments)
            with measure_cost(MOST_SECONDS, MOST_BYTES, f"{name} filled with {filling!r}"):
                result = await executor.execute(call, READER)
            answered |= {name} if result.success else set()

    assert answered == set(names)


def fill_schema(schema: Mapping[str, Any], filling: str) -> dict[str, Any]:
    """Return arguments that a schema allows, each as large as it may be."""
    room = MOST_ARGUMENT_BYTES // 2
    properties = schema["properties"]
    share = room // len(properties)
    return {
        name: KNOWN.get(name) or fill(property_schema, schema, filling, share)
        for name, property_schema in properties.items()
    }


def fill(part: Mapping[str, Any], schema: Mapping[str, Any], filling: str, room: int) -> Any:
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rsplit("/", 1)[1]]
    if "anyOf" in part:
        part = part["anyOf"][0]
    if "enum" in part or "const" in part:
        return part.get("const", part.get("enum", [None])[0])
    match part.get("type"):
        case "object":
            own = part.get("properties", {})
            share = room // max(1, len(own))
            return {
                name: fill(property_schema, schema, filling, share)
                for name, property_schema in own.items()
            }
        case "array":
            count = max(part.get("minItems", 0), min(part.get("maxItems", 1_000), room // 20))
            share = room // max(1, count)
            return [fill(part["items"], schema, filling, share) for _ in range(count)]
        case "integer" | "number":
            return part.get("maximum", 10**9)
        case "boolean":
            return True
        case _:
            longest = min(part.get("maxLength", room), room // max(1, len(filling.encode())))
            return (filling * (1 + longest // len(filling)))[:longest]


def test_the_arguments_are_as_large_as_a_schema_allows() -> None:
    schema = {"properties": {"name": {"type": "string", "maxLength": 7}, "all": {"type": "string"}}}

    made = fill_schema(schema, "ab")

    assert made["name"] == "abababa"
    assert len(made["all"]) > 5_000


class measure_cost:  # noqa: N801 - reads as a verb where it is used
    """Fails if what runs inside costs more processor time or more memory."""

    def __init__(self, most_seconds: float, most_bytes: int, name: str = "") -> None:
        self._most_seconds, self._most_bytes, self._name = most_seconds, most_bytes, name

    def __enter__(self) -> None:
        tracemalloc.start()
        self._started = time.process_time()

    def __exit__(self, *raised: object) -> None:
        seconds = time.process_time() - self._started
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < self._most_seconds, f"{seconds:.1f} s {self._name}"
        assert peak < self._most_bytes, f"{peak} bytes {self._name}"
